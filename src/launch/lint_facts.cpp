#include "launch/lint_facts.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "launch/bind/bind.h"
#include "launch/bind/modules.h"
#include "launch/run_dir/wheels.h"
#include "plan/environment.h"
#include "sys/file_system.h"
#include "sys/files.h"
#include "sys/spawn.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestText = 4U << 20U;

std::shared_ptr<const SourceFile> read_text(const std::string& name, const fs::path& path) {
  auto text = sys::read_regular_file(path, kLargestText);
  if (!text) return nullptr;
  return std::make_shared<const SourceFile>(SourceFile{name, std::move(*text)});
}

/// Scripts in a role's command: they may read variables that no library reads.
void add_readings(const plan::Role& role, std::set<fs::path>& seen, std::vector<lint::Reading>& readings) {
  for (const auto& word : role.command) {
    const fs::path path = fs::path(role.workdir) / word;
    if (path.extension() != ".py" && path.extension() != ".sh") continue;
    if (!seen.insert(path).second) continue;
    if (const auto text = read_text(word, path)) readings.push_back({word, text->text});
  }
}

void add_conf(const plan::Plan& plan, const std::vector<std::string>& environment, lint::PlanFacts& facts) {
  // NCCL's own order: the named file, or else the user's, before the system's (src/misc/param.cc).
  std::vector<std::string> paths;
  for (const auto& role : plan.roles) {
    for (const auto& op : role.env) {
      if (op.name == "NCCL_CONF_FILE" && !op.value.empty()) paths.push_back(op.value);
    }
  }
  const std::string home(sys::env_value(environment, "HOME"));
  if (paths.empty() && !home.empty()) paths.push_back(home + "/.nccl.conf");
  paths.emplace_back("/etc/nccl.conf");
  for (const auto& path : paths) {
    if (auto file = read_text(path, path)) facts.conf.push_back(std::move(file));
  }
}

}  // namespace

lint::PlanFacts lint_facts(const plan::Plan& plan, const Install& install,
                           const std::vector<std::string>& environment, bool modules) {
  lint::PlanFacts facts;
  facts.source = [](const std::string& name) { return read_text(name, name); };
  for (const auto& [name, library] : plan.libraries) {
    const auto bound = bind_library(name, library, install.probe);
    if (bound && !bound->version.empty()) facts.library_versions[name] = bound->version;
  }
  std::set<fs::path> seen;
  for (const auto& role : plan.roles) {
    if (!role.venv.empty() && !facts.wheels.contains(role.venv))
      facts.wheels[role.venv] = wheels_of(role.venv);
    add_readings(role, seen, facts.readings);
  }
  add_conf(plan, environment, facts);
  if (modules) {
    auto changes = load_modules(plan.modules, plan::inherit(environment).kept);
    if (changes) facts.modules = std::move(*changes);  // elsewhere the node loads them
  }
  return facts;
}

lint::LintInput lint_input(const plan::Plan& plan, const Install& install,
                           const std::vector<std::string>& environment, bool modules,
                           const std::map<std::string, Version>& releases) {
  auto facts = lint_facts(plan, install, environment, modules);
  if (const auto nccl = releases.find("NCCL"); nccl != releases.end()) {
    facts.library_versions["nccl"] = nccl->second.str();
  }
  auto input = lint::plan_input(plan, facts);
  add_machine(input);
  return input;
}

void add_machine(lint::LintInput& input) {
  input.folder_exists = [](const std::string& path) {
    std::error_code error;
    return fs::is_directory(path, error);
  };
  input.shared_file_system = [](const std::string& path) { return sys::shared_file_system(path); };
}

}  // namespace nlaunch::launch
