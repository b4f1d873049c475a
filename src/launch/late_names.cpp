#include "launch/late_names.h"

#include <glob.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "plan/groups.h"

namespace nlaunch::launch {

namespace fs = std::filesystem;

LateNames::LateNames(const plan::Plan& plan, const NodeAddresses& directory, const plan::BoundNode& node,
                     const RunPaths& paths)
    : plan_(plan), directory_(directory), node_(node), paths_(paths) {}

std::string LateNames::resolve(const std::string& text, const plan::Process* process,
                               Diagnostics& diagnostics) const {
  auto value = expand(
      text, [&](std::string_view name) { return look_up(name, process); }, Pass::last);
  if (value) return std::move(*value);
  const auto whose = process == nullptr ? std::string("the site's libraries") : plan_.name_of(*process);
  diagnostics.error("launch.reference", {},
                    fmt::format("{}, in '{}': {}", whose, text, value.error().message));
  return text;
}

std::vector<std::string> LateNames::addresses(const plan::Role& role) const {
  std::vector<std::string> addresses;
  for (const auto& process : plan_.processes) {
    if (&plan_.role_of(process) != &role || process.ports.empty()) continue;
    addresses.push_back(fmt::format("{}:{}", address_of(directory_, process), process.ports.front()));
  }
  return addresses;
}

std::vector<std::string> LateNames::hosts(const plan::Role& role) const {
  std::vector<std::string> hosts;
  for (const auto& process : plan_.processes) {
    if (&plan_.role_of(process) != &role) continue;
    const auto& host = address_of(directory_, process);
    if (hosts.empty() || hosts.back() != host) hosts.push_back(host);
  }
  return hosts;
}

fs::path LateNames::addrs_file(const std::string& role) const {
  return paths_.attempt / "addrs" / role;
}

fs::path LateNames::env_file(const std::string& role) const {
  return paths_.attempt / "env" / (role + ".json");
}

Lookup LateNames::look_up(std::string_view name, const plan::Process* process) const {
  if (name.starts_with("newest:")) return look_up_newest(std::string(name.substr(7)));
  const auto dot = name.find('.');
  const auto family = name.substr(0, dot);
  const auto rest = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
  if (family == "self" && process != nullptr) return look_up_self(rest, *process);
  if (family == "role") return look_up_role(rest);
  if (name == "run.dir") return paths_.folder.string();
  if (name == "run.attempt_dir") return paths_.attempt.string();
  if (name == "run.id") return paths_.id;
  if (name == "run.name") return plan_.name;
  if (name == "node.scratch") return node_.scratch;
  if (name == "weight_sync.host") return directory_.at(sync_node(plan_)).address;
  if (name == "weight_sync.port") return std::to_string(plan_.weight_sync.port);
  if (name == "weight_sync.world_size") return std::to_string(plan_.weight_sync.world_size);
  if (family == "library" && rest.ends_with(".path")) {
    const auto found = node_.libraries.find(std::string(rest.substr(0, rest.size() - 5)));
    if (found != node_.libraries.end()) return found->second.path;
  }
  return Unknown{fmt::format("'${{{}}}' is not known on this node", name)};
}

Lookup LateNames::look_up_self(std::string_view word, const plan::Process& process) const {
  const auto& role = plan_.role_of(process);
  if (word == "name") return plan_.name_of(process);
  if (word == "rank") return std::to_string(process.rank);
  if (word == "index") return std::to_string(process.index);
  if (word == "node") return std::to_string(process.node);
  if (word == "gpus") return std::to_string(plan::gpus_in_reach(plan_, process).size());
  if (word == "host") return address_of(directory_, process);
  if (word == "sync_rank") {
    const auto rank = plan::sync_rank(plan_, process);
    if (rank >= 0) return std::to_string(rank);
    return Unknown{fmt::format("{} is not in the weight-sync group: learner 0 and the engines are",
                               plan_.name_of(process)),
                   true};
  }
  for (std::size_t i = 0; word.starts_with("ports.") && i < role.ports.size(); ++i) {
    if (role.ports[i] == word.substr(6)) return std::to_string(process.ports.at(i));
  }
  return Unknown{fmt::format("'${{self.{}}}' is not known", word)};
}

Lookup LateNames::look_up_role(std::string_view rest) const {
  const auto dot = rest.find('.');
  const auto* role = plan_.find_role(rest.substr(0, dot));
  const auto what = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  if (role == nullptr) return Unknown{fmt::format("no role is called '{}'", rest.substr(0, dot))};
  if (what == "count") return std::to_string(role->count);
  if (what == "addrs") return text::join(addresses(*role), ",");
  if (what == "addrs_file") return addrs_file(role->name).string();
  if (what == "env_file") return env_file(role->name).string();
  if (what == "hosts") return text::join(hosts(*role), ",");
  return Unknown{fmt::format("'${{role.{}}}' is not known", rest)};
}

Lookup LateNames::look_up_newest(const std::string& glob) const {
  glob_t found{};
  ::glob(glob.c_str(), GLOB_NOSORT, nullptr, &found);
  std::string newest;
  fs::file_time_type newest_time = fs::file_time_type::min();
  for (std::size_t i = 0; i < found.gl_pathc; ++i) {
    std::error_code error;
    const auto time = fs::last_write_time(found.gl_pathv[i], error);
    if (error || time < newest_time) continue;
    newest = found.gl_pathv[i];
    newest_time = time;
  }
  ::globfree(&found);
  if (newest.empty()) return Unknown{fmt::format("nothing fits '{}'", glob), true};
  return newest;
}

}  // namespace nlaunch::launch
