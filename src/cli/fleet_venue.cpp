#include "cli/fleet_venue.h"

#include <algorithm>

#include "base/text.h"
#include "cli/fleet_place.h"
#include "launch/ledger.h"
#include "sys/proc.h"

namespace nlaunch::cli {

FleetVenue::FleetVenue(const plan::Plan& plan, const launch::Allocation& allocation, bool share,
                       const Context& context)
    : plan_(plan), allocation_(allocation), share_(share), context_(context) {}

std::vector<std::string> FleetVenue::left() const {
  std::vector<std::string> nodes;
  std::ranges::copy_if(allocation_.nodes, std::back_inserter(nodes),
                       [this](const std::string& node) { return !out_.contains(node); });
  return nodes;
}

std::unique_ptr<Place> FleetVenue::next(const supervise::GuardianLink& guardian) {
  auto nodes = left();
  nodes.resize(plan_.node.count);
  return std::make_unique<FleetPlace>(plan_, FleetPlace::Options{share_, std::move(nodes)}, context_,
                                      allocation_, guardian);
}

bool FleetVenue::leave_out(const std::vector<preflight::Suspect>& suspects) {
  const auto before = out_;
  std::vector<std::string> names;
  for (const auto& suspect : suspects) {
    if (out_.insert(suspect.host).second) names.push_back(suspect.host);
  }
  const auto rest = left().size();
  if (names.empty() || rest < plan_.node.count) {
    out_ = before;
    return false;
  }
  say(fmt::format("nlaunch: {} {} left out; {} of job {} remain for the {} of the plan\n",
                  text::join(names, ", "), names.size() == 1 ? "is" : "are", text::count(rest, "node"),
                  allocation_.job_id, plan_.node.count));
  return true;
}

void FleetVenue::record(const std::vector<preflight::Suspect>& suspects) {
  const auto& file = plan_.slurm.bad_nodes;
  for (const auto& suspect : suspects) {
    if (file.empty() || suspect.who != preflight::Who::admin) continue;
    const auto recorded = launch::record_bad_node(file, suspect.host, suspect.reason, sys::user_name());
    say(recorded ? fmt::format("nlaunch: {} is now in {} ({})\n", suspect.host, file, suspect.reason)
                 : fmt::format("nlaunch: {}\n", recorded.error().items().front().message));
  }
}

}  // namespace nlaunch::cli
