#include "plan/scope.h"

#include <algorithm>
#include <array>

#include "base/secrets.h"
#include "base/text.h"

namespace nlaunch::plan {
namespace {

using config::Text;

constexpr std::size_t kDeepestVars = 100;  // each takes some of the stack
const std::vector<std::string> kFamilies{"vars",    "self", "run", "node",        "role",
                                         "library", "site", "env", "weight_sync", "newest"};
const std::vector<std::string> kSelf{"name", "rank", "index", "host", "node", "gpus", "ports", "sync_rank"};
const std::vector<std::string> kRun{"dir", "attempt_dir", "id", "name"};
const std::vector<std::string> kRole{"addrs", "addrs_file", "hosts", "count", "gpus", "env_file"};
const std::vector<std::string> kWeightSync{"backend", "host", "port", "world_size"};
const std::vector<std::string> kSite{"name", "gpus", "gpu", "arch", "cpus", "interface", "scratch"};

Unknown unknown(std::string_view name, std::string_view bad, const std::vector<std::string>& known) {
  auto message = fmt::format("unknown name '${{{}}}'", name);
  if (const auto near = text::nearest(bad, known)) {
    const auto at = name.rfind(bad);
    auto better = std::string(name);
    better.replace(at, bad.size(), *near);
    message += fmt::format(": did you mean '${{{}}}'?", better);
  } else if (known.empty()) {
    message += ": none of that kind is defined";
  } else {
    message += fmt::format(": '{}' is none of {}", bad, text::join(known, ", "));
  }
  return {std::move(message)};
}

/// HOME, SLURM_JOB_ID
bool looks_like_variable(std::string_view name) {
  return std::ranges::all_of(
      name, [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::vector<std::string> names_of(const std::vector<std::pair<Text, Text>>& pairs) {
  std::vector<std::string> names;
  for (const auto& [name, value] : pairs) names.push_back(name.value);
  return names;
}

std::vector<std::string> names_of(const std::vector<config::Role>& roles) {
  std::vector<std::string> names;
  for (const auto& role : roles) names.push_back(role.name.value);
  return names;
}

}  // namespace

/// A role that starts others has their GPUs, which are not as many on each node.
bool NameScope::spawns(const config::Role& role) const {
  return std::ranges::any_of(experiment_.roles, [&](const auto& other) {
    return std::ranges::any_of(other.spawned_by, [&](const Text& by) { return by.value == role.name.value; });
  });
}

NameScope::NameScope(const config::Experiment& experiment, const config::Site& site,
                     const std::map<std::string, std::string>& caller)
    : experiment_(experiment), site_(site), caller_(caller) {}

void NameScope::resolve_vars(Diagnostics& diagnostics) {
  for (const auto& [name, value] : experiment_.vars) {
    std::vector<std::string> open;
    resolve_var(name.value, open, diagnostics);
  }
}

std::optional<std::string> NameScope::resolve_var(const std::string& name, std::vector<std::string>& open,
                                                  Diagnostics& diagnostics) {
  if (const auto known = vars_.find(name); known != vars_.end()) return known->second;
  const auto found =
      std::ranges::find_if(experiment_.vars, [&](const auto& var) { return var.first.value == name; });
  if (found == experiment_.vars.end()) return std::nullopt;
  const auto& text = found->second;
  if (open.size() >= kDeepestVars) {
    diagnostics.error("plan.deep-vars", text.span,
                      fmt::format("vars refer to each other through more than {} others", kDeepestVars));
    return vars_[name] = "";
  }
  open.push_back(name);
  for (const auto& reference : references(text.value)) {
    if (!reference.name.starts_with("vars.")) continue;
    const auto inner = reference.name.substr(5);
    if (const auto loop = std::ranges::find(open, inner); loop != open.end()) {
      std::vector<std::string> cycle(loop, open.end());
      cycle.push_back(inner);
      diagnostics.error("plan.cyclic-vars",
                        part_of(text.span, text.value, reference.offset, reference.length),
                        fmt::format("vars refer to each other in a circle: {}", text::join(cycle, " → ")));
      vars_[name] = "";
      open.pop_back();
      return "";
    }
    resolve_var(inner, open, diagnostics);
  }
  open.pop_back();
  // A cycle that ran through this one has settled it.
  if (const auto known = vars_.find(name); known != vars_.end()) return known->second;
  return vars_[name] = resolve(text, nullptr, diagnostics);
}

std::string NameScope::resolve(const Text& text, const config::Role* role, Diagnostics& diagnostics) const {
  const auto expanded = expand(
      text.value, [&](std::string_view name) { return look_up(name, role); }, Pass::middle);
  if (expanded) return *expanded;
  const auto& error = expanded.error();
  diagnostics.error("plan.reference", part_of(text.span, text.value, error.offset, error.length),
                    error.message);
  return text.value;
}

Lookup NameScope::look_up(std::string_view name, const config::Role* role) const {
  if (name.starts_with("newest:")) return Keep{};
  const auto dot = name.find('.');
  const auto family = name.substr(0, dot);
  if (looks_like_variable(name)) {
    return Unknown{fmt::format(
        "unknown name '${{{0}}}': did you mean '${{env.{0}}}', or '$${{{0}}}' for a shell?", name)};
  }
  if (!has(kFamilies, family)) return unknown(name, family, kFamilies);
  if (dot == std::string_view::npos) {
    return Unknown{fmt::format("'${{{}}}' is incomplete: write ${{{}.NAME}}", name, name)};
  }
  const auto rest = name.substr(dot + 1);
  if (family == "vars") {
    const auto known = vars_.find(std::string(rest));
    if (known != vars_.end()) return known->second;
    if (!experiment_.vars_whole) return Keep{};
    auto nothing = unknown(name, rest, names_of(experiment_.vars));
    nothing.unset = true;  // --set can give it
    return nothing;
  }
  if (family == "self") return look_up_self(rest, role);
  if (family == "role") return look_up_role(rest);
  if (family == "env") return look_up_env(std::string(rest));
  if (family == "run") return has(kRun, rest) ? Lookup(Keep{}) : Lookup(unknown(name, rest, kRun));
  if (family == "node") return rest == "scratch" ? Lookup(Keep{}) : Lookup(unknown(name, rest, {"scratch"}));
  if (family == "weight_sync") {
    if (rest == "backend") return std::string(name_of(experiment_.weight_sync.value));
    return has(kWeightSync, rest) ? Lookup(Keep{}) : Lookup(unknown(name, rest, kWeightSync));
  }
  if (family == "library") {
    std::vector<std::string> paths;
    for (const auto& [library, definition] : site_.libraries) paths.push_back(library + ".path");
    if (has(paths, rest)) return Keep{};
    if (paths.empty()) {
      return Unknown{fmt::format("'${{{}}}': the site '{}' defines no libraries", name, site_.name.value)};
    }
    return unknown(name, rest, paths);
  }
  const auto text_or_empty = [](const auto& text) { return text ? text->value : std::string(); };
  if (rest == "name") return site_.name.value;
  if (rest == "gpu") return text_or_empty(site_.gpu);
  if (rest == "arch") return text_or_empty(site_.arch);
  if (rest == "interface") return site_.nics.interface;
  if (rest == "scratch") return text_or_empty(site_.scratch);
  if (rest == "gpus") return site_.gpus ? std::to_string(site_.gpus->value) : std::string();
  if (rest == "cpus") return site_.cpus ? std::to_string(*site_.cpus) : std::string();
  return unknown(name, rest, kSite);
}

Lookup NameScope::look_up_self(std::string_view rest, const config::Role* role) const {
  if (role == nullptr) return Unknown{fmt::format("'${{self.{}}}' has a meaning within a role only", rest)};
  const auto dot = rest.find('.');
  const auto word = rest.substr(0, dot);
  if (!has(kSelf, word)) return unknown(fmt::format("self.{}", rest), word, kSelf);
  if (!role->whole) return Keep{};
  if (word == "rank" && role->rendezvous == Rendezvous::none) {
    return Unknown{
        fmt::format("'${{self.rank}}': role '{}' has no rendezvous; use ${{self.index}}", role->name.value)};
  }
  if (word == "ports") {
    std::vector<std::string> ports;
    for (const auto& port : role->ports) ports.push_back(port.value);
    const auto port = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
    if (has(ports, port)) return Keep{};
    if (ports.empty()) {
      return Unknown{fmt::format("'${{self.{}}}': role '{}' declares no ports", rest, role->name.value)};
    }
    return unknown(fmt::format("self.{}", rest), port, ports);
  }
  if (dot != std::string_view::npos) return unknown(fmt::format("self.{}", rest), rest, kSelf);
  if (word == "gpus" && !spawns(*role)) return std::to_string(role->gpus.value);
  return Keep{};
}

Lookup NameScope::look_up_role(std::string_view rest) const {
  const auto dot = rest.find('.');
  const auto role = rest.substr(0, dot);
  const auto name = fmt::format("role.{}", rest);
  const auto roles = names_of(experiment_.roles);
  if (!has(roles, role)) return experiment_.roles_whole ? Lookup(unknown(name, role, roles)) : Keep{};
  const auto what = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  if (!has(kRole, what)) return unknown(name, what, kRole);
  const auto& found =
      *std::ranges::find_if(experiment_.roles, [&](const auto& r) { return r.name.value == role; });
  if (!found.whole) return Keep{};
  if ((what == "addrs" || what == "addrs_file") && found.ports.empty()) {
    return Unknown{fmt::format("'${{{}}}': role '{}' declares no ports", name, role)};
  }
  if (what == "gpus") return std::to_string(found.gpus.value);
  return Keep{};
}

Lookup NameScope::look_up_env(const std::string& name) const {
  if (looks_like_secret(name)) {
    return Unknown{fmt::format(
        "'${{env.{0}}}' would put a secret into the plan: declare it as `secrets: {{{0}: env}}`", name)};
  }
  const auto found = caller_.find(name);
  if (found != caller_.end()) return found->second;
  return Unknown{
      fmt::format("'${{env.{0}}}' is not set where nlaunch was called: set it, or give a default with "
                  "${{env.{0}:-VALUE}}",
                  name),
      true};
}

}  // namespace nlaunch::plan
