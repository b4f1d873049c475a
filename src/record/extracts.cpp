#include "record/extracts.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/text.h"

namespace nlaunch::record {
namespace {

using Environment = std::map<std::string, std::string>;

Environment environment_of(const Json& process) {
  Environment out;
  const auto& env = at(process, "env");
  if (!env.is_object()) return out;
  for (const auto& [name, value] : env.items()) {
    if (value.is_string()) out[name] = value.get<std::string>();
  }
  return out;
}

/// By role and process.
std::map<std::string, std::map<std::string, Environment>> environments(const RunFiles& run) {
  std::map<std::string, std::map<std::string, Environment>> out;
  for (auto attempt = run.attempts.rbegin(); attempt != run.attempts.rend() && out.empty(); ++attempt) {
    for (const auto& [host, bound] : attempt->bound) {
      for (const auto& process : at(bound, "processes")) {
        const auto name = text_at(process, "name");
        out[name.substr(0, name.rfind('.'))][fmt::format("{} on {}", name, host)] = environment_of(process);
      }
    }
  }
  return out;
}

std::string line(const std::string& name, const std::string& value) {
  return fmt::format("{}={}\n", name, text::shell_quote(value));
}

std::string extract(const std::map<std::string, Environment>& processes) {
  const auto& [first, environment] = *processes.begin();
  auto out = fmt::format("# {}\n", text::printable(first));
  for (const auto& [name, value] : environment) out += line(name, value);
  for (const auto& [process, other] : processes) {
    std::string differs;
    for (const auto& [name, value] : other) {
      const auto found = environment.find(name);
      if (found == environment.end() || found->second != value) differs += line(name, value);
    }
    for (const auto& [name, value] : environment) {
      if (!other.contains(name)) differs += fmt::format("# unset {}\n", name);
    }
    if (!differs.empty())
      out += fmt::format("\n# {}, where it differs\n{}", text::printable(process), differs);
  }
  return out;
}

}  // namespace

Extracts environment_extracts(const RunFiles& run) {
  Extracts out;
  for (const auto& [role, processes] : environments(run)) {
    // The name of a role is a word; anything else is not usable as a file name.
    if (!role.empty() && role.find('/') == std::string::npos)
      out.emplace_back(fmt::format("environment/{}.env", role), extract(processes));
  }
  return out;
}

Extracts module_extracts(const RunFiles& run) {
  std::string out;
  const auto& modules = at(run.plan, "modules");
  if (const auto init = text_at(modules, "init"); !init.empty())
    out += fmt::format("initialised by {}\n", init);
  for (const auto& name : at(modules, "load")) {
    if (name.is_string()) out += fmt::format("loads {}\n", name.get<std::string>());
  }
  for (const auto& [role, processes] : environments(run)) {
    const auto& environment = processes.begin()->second;
    for (const auto* name : {"LOADEDMODULES", "_LMFILES_"}) {
      const auto found = environment.find(name);
      if (found == environment.end()) continue;
      out += fmt::format("{} of {}:\n", name, role);
      for (const auto& one : text::split(found->second, ':')) out += fmt::format("  {}\n", one);
    }
  }
  if (out.empty()) return {};
  return {{"modules.txt", out}};
}

}  // namespace nlaunch::record
