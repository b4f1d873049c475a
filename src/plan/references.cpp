#include "plan/references.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "base/text.h"
#include "plan/groups.h"
#include "plan/reference_table.h"

namespace nlaunch::plan {
// --- in a plan ---

void PlanNames::resolve_vars(Diagnostics& diagnostics) {
  for (const auto& [name, value] : experiment_.vars) {
    std::vector<std::string> open;
    resolve_var(name.value, open, diagnostics);
  }
}

std::optional<std::string> PlanNames::resolve_var(const std::string& name, std::vector<std::string>& open,
                                                  Diagnostics& diagnostics) {
  constexpr std::size_t kDeepest = 100;  // each level uses stack space
  if (const auto known = vars_.find(name); known != vars_.end()) return known->second;
  const auto found =
      std::ranges::find_if(experiment_.vars, [&](const auto& var) { return var.first.value == name; });
  if (found == experiment_.vars.end()) return std::nullopt;
  const auto& text = found->second;
  if (open.size() >= kDeepest) {
    diagnostics.error("plan.deep-vars", text.span,
                      fmt::format("vars refer to each other more than {} levels deep", kDeepest));
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
                        fmt::format("vars refer to each other in a cycle: {}", text::join(cycle, " → ")));
      vars_[name] = "";
      open.pop_back();
      return "";
    }
    resolve_var(inner, open, diagnostics);
  }
  open.pop_back();
  // A cycle through this one has already resolved it.
  if (const auto known = vars_.find(name); known != vars_.end()) return known->second;
  return vars_[name] = resolve(text, nullptr, diagnostics);
}

std::string PlanNames::resolve(const config::Text& text, const config::Role* role,
                               Diagnostics& diagnostics) const {
  constexpr std::size_t kLongest = 128 << 10;  // MAX_ARG_STRLEN of Linux: no longer argument is possible
  std::size_t length = 0;
  const auto look_up = [&](std::string_view name) -> Lookup {
    auto found = look_up_in_plan(*this, name, role);
    if (const auto* value = std::get_if<std::string>(&found)) length += value->size();
    if (const auto* whole = std::get_if<Expanded>(&found)) length += whole->text.size();
    if (length > kLongest)
      return Unknown{"the value is longer than 128 KiB here, the longest argument that Linux passes"};
    return found;
  };
  const auto expanded = expand(text.value, look_up, Pass::middle);
  if (expanded) return *expanded;
  const auto& error = expanded.error();
  diagnostics.error("plan.reference", part_of(text.span, text.value, error.offset, error.length),
                    error.message);
  return text.value;
}

// --- on a node ---

std::string NodeNames::resolve(const std::string& text, const Process* process,
                               Diagnostics& diagnostics) const {
  auto value = expand(
      text, [&](std::string_view name) { return look_up_on_node(*this, name, process); }, Pass::last);
  if (value) return std::move(*value);
  const auto whose = process == nullptr ? std::string("the site's libraries") : plan_.name_of(*process);
  diagnostics.error("launch.reference", {},
                    fmt::format("{}, in '{}': {}", whose, text, value.error().message));
  return text;
}

std::vector<std::string> NodeNames::addresses(const Role& role) const {
  std::vector<std::string> out;
  for (const auto& process : plan_.processes) {
    if (&plan_.role_of(process) != &role || process.ports.empty() || !is_reached(role, process)) continue;
    if (plan_.is_borrowed(process.node)) continue;  // it is added when its node has joined
    out.push_back(fmt::format("{}:{}", address_of(process), process.ports.front()));
  }
  return out;
}

std::vector<std::string> NodeNames::hosts(const Role& role) const {
  std::vector<std::string> out;
  std::set<std::uint32_t> seen;
  for (const auto& process : plan_.processes) {
    if (&plan_.role_of(process) == &role && seen.insert(process.node).second)
      out.push_back(address_of(process));
  }
  return out;
}

std::filesystem::path NodeNames::addrs_file(const std::string& role) const {
  return folders_.attempt / "addrs" / role;
}

std::filesystem::path NodeNames::env_file(const std::string& role) const {
  return folders_.attempt / "env" / (role + ".json");
}

bool is_reached(const Role& role, const Process& process) {
  const auto at = in_replica(role, process);
  return at.rank == 0 && at.index < active_replicas(role);
}

}  // namespace nlaunch::plan
