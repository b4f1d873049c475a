#pragma once
#include <set>

#include "cli/context.h"
#include "cli/venue.h"
#include "launch/allocation.h"

namespace nlaunch::cli {

/// An allocation. Its nodes beyond those that the plan needs are spares.
class FleetVenue : public Venue {
 public:
  /// All arguments outlive this. `share`: use GPUs that another run holds.
  FleetVenue(const plan::Plan& plan, const launch::Allocation& allocation, bool share,
             const Context& context);

  std::unique_ptr<Place> next(const supervise::GuardianLink& guardian) override;
  void record(const std::vector<preflight::Suspect>& suspects) override;
  bool leave_out(const std::vector<preflight::Suspect>& suspects) override;

 private:
  [[nodiscard]] std::vector<std::string> left() const;

  const plan::Plan& plan_;
  const launch::Allocation& allocation_;
  bool share_;
  const Context& context_;
  std::set<std::string> out_;
};

}  // namespace nlaunch::cli
