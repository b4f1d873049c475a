#pragma once
#include <expected>
#include <optional>
#include <set>

#include "launch/job/allocation.h"
#include "launch/job/places.h"
#include "session/caller.h"
#include "session/run_target.h"

namespace nlaunch::scheduler {

/// An allocation. Nodes beyond those that the plan needs are spares.
class SlurmTarget : public session::RunTarget {
 public:
  /// All arguments must outlive this. `share`: use GPUs that another run holds.
  SlurmTarget(const plan::Plan& plan, const launch::Allocation& allocation, bool share,
              const session::Caller& caller);

  std::unique_ptr<session::AttemptHost> next(const supervise::GuardianLink& guardian) override;
  void record(const std::vector<preflight::Suspect>& suspects) override;
  bool leave_out(const std::vector<preflight::Suspect>& suspects) override;

 private:
  /// The nodes for the plan, in its order, or why there are none.
  std::expected<std::vector<std::string>, std::string> choose();

  const plan::Plan& plan_;
  const launch::Allocation& allocation_;
  bool share_;
  const session::Caller& caller_;
  std::set<std::string> out_;
  std::optional<launch::Answered> places_;  ///< once they have answered
};

}  // namespace nlaunch::scheduler
