#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;
constexpr auto kCheck = "shared-memory";

/// A program makes its file a moment before it maps it.
constexpr std::int64_t kNew = 60;

std::uint64_t bytes_of(const std::vector<json>& files) {
  std::uint64_t sum = 0;
  for (const auto& file : files) sum += file.value("bytes", std::uint64_t{0});
  return sum;
}

/// "3 files, 33.1 MiB: nccl-AbCdEf (32.0 MiB, 2 h old), ..."
std::string list(const std::vector<json>& files) {
  constexpr std::size_t kShown = 3;
  std::string out = fmt::format("{}, {}: ", text::count(files.size(), "file"), size_text(bytes_of(files)));
  for (std::size_t i = 0; i < std::min(files.size(), kShown); ++i) {
    out += fmt::format("{}{} ({}, {} old)", i == 0 ? "" : ", ", text::printable(files[i].value("name", "")),
                       size_text(files[i].value("bytes", std::uint64_t{0})),
                       age_text(files[i].value("age", 0.0)));
  }
  return files.size() > kShown ? out + ", ..." : out;
}

/// By their beginnings where there are many.
std::string removal(const std::string& folder, const std::vector<json>& files) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> argv{"rm"};
  for (std::size_t i = 0; i < std::min(files.size(), kShown); ++i)
    argv.push_back(folder + "/" + files[i].value("name", ""));
  return text::shell_join(argv) + (files.size() > kShown ? " ..." : "");
}

}  // namespace

std::vector<Row> check_shared_memory(const NodeObservations& observations) {
  const auto* answer = observations.answer(kCheck);
  if (answer == nullptr) return {};
  if (!answer->error.empty()) return {unknown(kCheck, "/dev/shm", answer->error)};
  const auto folder = answer->said.value("folder", "");
  std::vector<json> hidden;
  std::vector<json> own;
  std::map<std::string, std::vector<json>> of_others;
  for (const auto& file : answer->said.value("files", json::array())) {
    if (file.at("used").is_null()) {
      hidden.push_back(file);
    } else if (!file.at("used").get<bool>() && file.value("age", std::int64_t{0}) >= kNew) {
      (file.value("mine", false) ? own : of_others[file.value("user", "")]).push_back(file);
    }
  }
  constexpr auto kExpected = "nothing of programs that have ended";
  std::vector<Row> rows;
  if (!own.empty())
    rows.push_back(warned(kCheck, folder, list(own), kExpected, {"remove them: " + removal(folder, own)}));
  for (const auto& [user, files] : of_others) {
    rows.push_back(warned(kCheck, fmt::format("{}, of {}", folder, user), list(files), kExpected,
                          {fmt::format("{} or an administrator can remove them", user), Responsible::admin}));
  }
  if (!hidden.empty()) {
    rows.push_back(
        skipped(kCheck, folder,
                fmt::format("{}; whether a program uses them cannot be seen from here, where other "
                            "processes are hidden",
                            list(hidden))));
  }
  if (rows.empty()) rows.push_back(passed(kCheck, folder, kExpected));
  return rows;
}

}  // namespace nlaunch::preflight
