#include "plan/bench.h"

#include <algorithm>

#include "base/backend.h"
#include "base/text.h"
#include "plan/described_json.h"

namespace nlaunch::plan {
namespace {

std::vector<std::uint32_t> groups_for(const std::string& wanted, const Plan& plan) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < plan.groups.size(); ++i) {
    if (plan.groups[i].name == wanted || word_of(plan.groups[i].kind) == wanted) found.push_back(i);
  }
  return found;
}

void report_no_group(const config::BenchWorkload& workload, const Plan& plan, Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const auto& group : plan.groups) names.push_back(group.name);
  const auto there = names.empty() ? "no groups" : text::join(names, ", ");
  const auto& wanted = workload.group.value;
  if (value_of<GroupKind>(wanted)) {
    diagnostics
        .error("plan.bench-group", workload.group.span,
               fmt::format("no group of kind {} has two or more ranks in this plan", wanted))
        .hint = fmt::format("the plan has {}; give the roles more GPUs, or remove the workload", there);
    return;
  }
  std::vector<std::string> allowed(kWords<GroupKind>.begin(), kWords<GroupKind>.end());
  const auto kinds = text::join(allowed, ", ");
  allowed.insert(allowed.end(), names.begin(), names.end());
  const auto nearest = text::nearest(wanted, allowed);
  diagnostics.error("plan.bench-group", workload.group.span, fmt::format("unknown group '{}'", wanted)).hint =
      nearest ? fmt::format("did you mean '{}'?", *nearest)
              : fmt::format("write a kind ({}), or a group of the plan: {}", kinds, there);
}

/// Reports operations that the groups' backend does not support.
void check_operations(const config::BenchWorkload& workload, const std::vector<std::uint32_t>& groups,
                      const Plan& plan, Diagnostics& diagnostics) {
  const auto lacking = std::ranges::find_if(
      groups, [&](std::uint32_t group) { return traits_of(plan.groups[group].backend).lacks.has_value(); });
  if (lacking == groups.end()) return;
  const auto& backend = traits_of(plan.groups[*lacking].backend);
  for (std::size_t i = 0; i < workload.work.step.size(); ++i) {
    if (workload.work.step[i].op != backend.lacks) continue;
    diagnostics
        .error(fmt::format("plan.bench-{}", backend.name), workload.places[i],
               fmt::format("'{}' uses {}, which {} does not support", workload.name.value,
                           nlaunch::name_of(*backend.lacks), backend.title))
        .hint =
        "use all_reduce or all_gather, which both backends support, or --set weight_sync.backend=nccl";
  }
}

ordered_json write(const BenchWorkload& workload, const Plan& plan) {
  auto groups = ordered_json::array();
  for (const auto group : workload.groups) groups.push_back(plan.groups[group].name);
  return {{"name", workload.work.name},          {"groups", std::move(groups)},
          {"busy", workload.work.busy},          {"steps", workload.work.steps},
          {"warm_up", workload.work.warm_up},    {"step", to_value(workload.work.step)},
          {"budget", workload.targets.budget},   {"busbw", workload.targets.bus_bandwidth},
          {"scaling", workload.targets.scaling}, {"origin", workload.origin}};
}

BenchWorkload read(const json& from, const Plan& plan) {
  BenchWorkload workload;
  workload.work = {from.at("name"), {}, from.at("steps"), from.at("warm_up"), from.at("busy")};
  read_value(from.at("step"), workload.work.step);
  for (const auto& name : from.at("groups")) {
    const auto group = std::ranges::find(plan.groups, name.get<std::string>(), &Group::name);
    if (group == plan.groups.end()) throw std::domain_error("a workload names no group");
    workload.groups.push_back(static_cast<std::uint32_t>(group - plan.groups.begin()));
  }
  workload.targets = {from.at("budget"), from.at("busbw"), from.at("scaling")};
  workload.origin = from.at("origin");
  return workload;
}

}  // namespace

Bench make_bench(const config::Bench& bench, const Plan& plan, Diagnostics& diagnostics) {
  Bench out{{}, bench.timeout};
  for (const auto& workload : bench.workloads) {
    auto groups = groups_for(workload.group.value, plan);
    if (groups.empty()) report_no_group(workload, plan, diagnostics);
    check_operations(workload, groups, plan, diagnostics);
    out.workloads.push_back({workload.work, std::move(groups), workload.targets, workload.name.span.where()});
  }
  return out;
}

ordered_json to_json(const Bench& bench, const Plan& plan) {
  ordered_json out{{"timeout_ms", bench.timeout.count()}, {"workloads", ordered_json::array()}};
  for (const auto& workload : bench.workloads) out["workloads"].push_back(write(workload, plan));
  return out;
}

Bench bench_from_json(const json& from, const Plan& plan) {
  Bench bench{{}, value_from<Duration>(from.at("timeout_ms"))};
  for (const auto& workload : from.at("workloads")) bench.workloads.push_back(read(workload, plan));
  return bench;
}

}  // namespace nlaunch::plan
