#include "launch/run_dir/provenance.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/format.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/version.h"
#include "launch/run_dir/wheels.h"
#include "sys/command.h"
#include "sys/files.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr Duration kDeadlineOfGit = std::chrono::seconds(20);
constexpr std::size_t kLargestDiff = 1U << 20U;

/// The output of a program, or empty if it fails.
std::optional<std::string> output_of(std::vector<std::string> argv, const std::string& folder) {
  sys::SpawnRequest request;
  request.argv = std::move(argv);
  request.env = sys::own_environment();
  request.cwd = folder;
  auto result = sys::run_command(std::move(request), kDeadlineOfGit, kLargestDiff);
  if (!result || result->timed_out || !result->status.ok()) return std::nullopt;
  return std::move(result->out);
}

std::optional<std::string> sha256_of(const std::string& path) {
  const auto file = sys::open_regular_file(path);
  if (!file) return std::nullopt;
  constexpr std::size_t kBlock = 128U << 10U;
  std::vector<char> block(kBlock);
  Sha256 hash;
  while (const auto got = sys::read_up_to(file->get(), block)) hash.feed({block.data(), got});
  return hash.finish();
}

/// Whether Git may find a repository there: to start it for nothing takes longer.
bool may_have_repository(const fs::path& folder) {
  if (!sys::env_value(sys::own_environment(), "GIT_DIR").empty()) return true;
  std::error_code error;
  for (auto at = fs::absolute(folder, error);; at = at.parent_path()) {
    if (fs::exists(at / ".git", error)) return true;
    if (at == at.parent_path()) return false;
  }
}

ordered_json git_state(const std::string& folder) {
  if (!may_have_repository(folder)) return nullptr;
  const auto head = output_of({"git", "rev-parse", "HEAD", "--abbrev-ref", "HEAD"}, folder);
  if (!head) return nullptr;
  const auto lines = text::split(text::trim(*head), '\n');
  ordered_json git{{"commit", lines.front()}, {"branch", lines.back()}};
  const auto diff = output_of({"git", "diff", "HEAD"}, folder);
  git["dirty"] = diff && !diff->empty();
  if (diff) git["diff"] = *diff;
  return git;
}

/// Also masks what looks like a secret: the experiment file with its value may be among the uncommitted
/// changes.
Masker masker_for(const plan::Plan& plan, const plan::BoundNode& node) {
  auto masker = node.masker;
  for (const auto& role : plan.roles) {
    for (const auto& op : role.env) {
      if (looks_like_secret(op.name)) masker.add(op.value);
    }
  }
  return masker;
}

}  // namespace

nlohmann::json libraries_of(const plan::BoundNode& node) {
  auto out = nlohmann::json::object();
  for (const auto& [name, library] : node.libraries) {
    std::error_code error;
    const auto size = fs::file_size(library.path, error);
    out[name] = {{"path", library.path}, {"version", library.version}, {"size", error ? 0 : size}};
  }
  return out;
}

ordered_json provenance(const plan::Plan& plan, const plan::BoundNode& node) {
  auto out = stamped<ordered_json>(formats::kLock);
  out["nlaunch"] = version();
  auto& files = out["files"] = ordered_json::array();
  for (const auto& path : plan.sources)
    files.push_back({{"path", path}, {"sha256", sha256_of(path).value_or("")}});
  out["git"] = git_state(fs::path(plan.experiment).parent_path().string());
  if (out["git"].contains("diff")) out["git"]["diff"] = masker_for(plan, node).mask(out["git"]["diff"]);
  out["libraries"] = libraries_of(node);
  auto& wheels = out["wheels"] = ordered_json::object();
  std::set<std::string> venvs;
  for (const auto& role : plan.roles) venvs.insert(role.venv);
  for (const auto& venv : venvs) {
    if (venv.empty()) continue;
    auto& names = wheels[venv] = ordered_json::array();
    for (const auto& [name, version] : wheels_of(venv)) names.push_back(name + " " + version);
  }
  return out;
}

void add_libraries(ordered_json& lock, const std::string& host, const nlohmann::json& libraries) {
  const nlohmann::json first = lock.at("libraries");
  auto others = nlohmann::json::object();
  for (const auto& [name, library] : libraries.items()) {
    if (first.value(name, nlohmann::json()) != library) others[name] = library;
  }
  for (const auto& [name, library] : first.items()) {
    if (!libraries.contains(name)) others[name] = nullptr;
  }
  if (!others.empty()) lock["libraries_on"][host] = others;
}

void add_library_hashes(ordered_json& lock) {
  for (auto& [name, library] : lock["libraries"].items()) {
    if (const auto hash = sha256_of(library["path"])) library["sha256"] = *hash;
  }
}

}  // namespace nlaunch::launch
