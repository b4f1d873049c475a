#include "plan/together.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/scheduler_traits.h"
#include "base/text.h"

namespace nlaunch::plan {
namespace {

/// The nodes of each unit of a role that is kept together: of a replica, of a group of nodes, or of all.
std::vector<Together> units_of(const Plan& plan, std::uint32_t role) {
  const auto& of = plan.roles[role];
  const auto same_role = std::ranges::equal_range(plan.processes, role, {}, &Process::role);
  std::vector<Together> units;
  const auto add = [&](std::string name, std::set<std::uint32_t> nodes) {
    units.push_back({std::move(name), Closeness::domain, {nodes.begin(), nodes.end()}, ""});
  };
  std::set<std::uint32_t> nodes;
  for (const auto& process : same_role) {
    nodes.insert(process.node);
    if (of.replica && (process.index + 1) % replica_size(of) == 0)
      add(fmt::format("{}.{}", of.name, in_replica(of, process).index), std::exchange(nodes, {}));
  }
  if (of.replica) return units;
  if (!of.keep_together || !of.keep_together->nodes) {
    add(of.name, std::move(nodes));
    return units;
  }
  const auto size = *of.keep_together->nodes;
  const std::vector<std::uint32_t> all(nodes.begin(), nodes.end());
  for (std::size_t first = 0; first < all.size(); first += size) {
    const auto last = std::min<std::size_t>(first + size, all.size());
    add(fmt::format("{} (nodes {}-{})", of.name, all[first], all[last - 1]),
        {all.begin() + static_cast<std::ptrdiff_t>(first), all.begin() + static_cast<std::ptrdiff_t>(last)});
  }
  return units;
}

}  // namespace

std::string_view title_of(Closeness within) {
  constexpr std::string_view kTitles[] = {"node", "NVLink domain", "switch"};
  return kTitles[static_cast<std::size_t>(within)];
}

std::vector<Together> kept_together(const Plan& plan) {
  std::vector<Together> asked;
  std::vector<Together> better;
  for (std::uint32_t role = 0; role < plan.roles.size(); ++role) {
    const auto& keep = plan.roles[role].keep_together;
    if (!keep && !plan.roles[role].replica) continue;
    for (auto& unit : units_of(plan, role)) {
      if (unit.nodes.size() < 2) continue;
      if (keep) {
        unit.within = keep->within;
        unit.origin = keep->origin;
      }
      (keep ? asked : better).push_back(std::move(unit));
    }
  }
  asked.insert(asked.end(), better.begin(), better.end());
  return asked;
}

void check_together(const Plan& plan, const config::Experiment& experiment, Diagnostics& diagnostics) {
  const auto& scheduler = traits_of(plan.scheduler);
  for (std::uint32_t i = 0; i < plan.roles.size(); ++i) {
    const auto& keep = plan.roles[i].keep_together;
    if (!keep) continue;
    const auto& span = experiment.roles[i].keep_together->within.span;
    if (keep->within == Closeness::switch_ && plan.node.count > 1 && !scheduler.switches) {
      diagnostics
          .error("plan.keep-together", span,
                 fmt::format("{} does not report the switch of a node", scheduler.title))
          .hint = "remove 'keep_together', or write keep_together: domain, which NVML reports";
      continue;
    }
    const auto units = units_of(plan, i);
    const auto largest =
        std::ranges::max_element(units, {}, [](const Together& unit) { return unit.nodes.size(); });
    if (largest == units.end() || largest->nodes.size() < 2) continue;
    const auto most = keep->within == Closeness::node     ? std::optional(1U)
                      : keep->within == Closeness::domain ? plan.topology.domain_nodes
                                                          : plan.topology.switch_nodes;
    if (!most || largest->nodes.size() <= *most) continue;
    auto& error =
        diagnostics.error("plan.keep-together", span,
                          fmt::format("'{}' is on {}, but must be within one {}", largest->name,
                                      text::count(largest->nodes.size(), "node"), title_of(keep->within)));
    if (keep->within == Closeness::node) {
      error.hint = "use fewer processes, or keep_together: domain";
      continue;
    }
    error.notes.push_back({fmt::format("on site '{}' one has {} (topology.{}.nodes)", plan.site,
                                       text::count(*most, "node"), name_of(keep->within)),
                           {}});
    error.hint = plan.roles[i].replica
                     ? "make the replica smaller"
                     : fmt::format("write keep_together: {{within: {}, nodes: N}} for groups of N nodes each",
                                   name_of(keep->within));
  }
}

namespace {

/// A job, or a component of one.
struct Asked {
  std::uint32_t first = 0;  ///< of the plan's nodes
  std::uint32_t nodes = 0;
  std::uint32_t spares = 0;
  std::vector<Directive>& directives;
};

void ask_for_places(const Plan& plan, const std::vector<Together>& all, const Asked& part,
                    std::vector<std::string>& warnings) {
  const bool blocks = plan.topology.slurm == SlurmTopology::block;
  const std::string name = blocks ? "segment" : "switches";
  if (std::ranges::find(part.directives, name, &Directive::name) != part.directives.end()) return;
  const Together* largest = nullptr;
  for (const auto& unit : all) {
    const bool here = unit.nodes.front() >= part.first && unit.nodes.back() < part.first + part.nodes;
    if (unit.origin.empty() || !here) continue;
    // Prefer what can be requested from Slurm over what cannot.
    const auto rank = [&](const Together& one) {
      return std::pair(blocks == (one.within == Closeness::domain), one.nodes.size());
    };
    if (largest == nullptr || rank(unit) > rank(*largest)) largest = &unit;
  }
  if (largest == nullptr) return;
  const auto in_job = part.nodes + part.spares;
  const auto not_asked = [&](const std::string& why) {
    warnings.push_back(
        fmt::format("Slurm is not asked to keep '{}' within one {}: {}. If its nodes are apart, the run is "
                    "refused when it starts",
                    largest->name, title_of(largest->within), why));
  };
  if (blocks != (largest->within == Closeness::domain)) {
    not_asked(blocks ? "it knows blocks, not switches" : "it knows switches, not NVLink domains");
  } else if (blocks && in_job % largest->nodes.size() == 0) {
    part.directives.push_back({name, std::to_string(largest->nodes.size()), largest->origin});
  } else if (!blocks && largest->nodes.size() == part.nodes) {
    part.directives.push_back({name, "1", largest->origin});
  } else {
    not_asked(blocks ? fmt::format("{} are not a multiple of {} (--segment)", text::count(in_job, "node"),
                                   largest->nodes.size())
                     : fmt::format("--switches applies to all nodes of the job, but these are {} of {}",
                                   largest->nodes.size(), part.nodes));
  }
}

}  // namespace

void ask_for_places(Plan& plan) {
  if (!plan.topology.slurm || plan.slurm.submit.empty()) return;  // under another scheduler
  const auto all = kept_together(plan);
  if (plan.slurm.components.empty())
    return ask_for_places(plan, all, {0, plan.node.count, plan.slurm.spares, plan.slurm.directives},
                          plan.warnings);
  std::uint32_t first = 0;
  for (auto& component : plan.slurm.components) {
    ask_for_places(plan, all, {first, component.nodes, component.spares, component.directives},
                   plan.warnings);
    first += component.nodes;
  }
}

}  // namespace nlaunch::plan
