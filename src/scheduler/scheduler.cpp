#include "scheduler/scheduler.h"

#include <fmt/format.h>

#include <algorithm>

namespace nlaunch::scheduler {

const Scheduler* find(std::string_view name) {
  const auto all = Registered<SchedulerEntry>::all();
  const auto found = std::ranges::find(all, name, [](const auto* entry) { return entry->name; });
  return found == all.end() ? nullptr : &(*found)->get();
}

Result<std::unique_ptr<CurrentJob>> current_job(std::string_view name,
                                                const std::vector<std::string>& environment) {
  const auto* scheduler = find(name);
  if (scheduler == nullptr) return nullptr;
  return scheduler->detect(environment);
}

Result<std::unique_ptr<CurrentJob>> current_allocation(std::string_view name,
                                                       const std::vector<std::string>& environment) {
  if (traits_of(name).allocate.empty()) return nullptr;
  return current_job(name, environment);
}

std::string describe(const plan::Plan& plan) {
  const auto& traits = traits_of(plan.scheduler);
  return fmt::format("site '{}' is reached through {}, and this is {}", plan.site, traits.title,
                     traits.allocate.empty() ? "not one of its jobs" : "not an allocation");
}

}  // namespace nlaunch::scheduler
