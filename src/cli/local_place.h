#pragma once
#include "cli/auditor.h"
#include "cli/context.h"
#include "cli/load.h"
#include "cli/venue.h"
#include "launch/gpu_lock.h"

namespace nlaunch::cli {

/// This machine.
class LocalPlace : public Place {
 public:
  /// `share`: use GPUs that another run holds. All arguments outlive this.
  LocalPlace(const plan::Plan& plan, bool share, const Context& context, MachineSource& machine,
             const supervise::GuardianLink& guardian);
  ~LocalPlace() override;

  std::optional<Refused> bind(const launch::RunPaths& paths) override;
  preflight::Report check(const preflight::Options& options) override;
  Result<std::vector<preflight::Rank>> ranks() override;
  preflight::Measured measure(std::vector<preflight::GroupTrial> trials,
                              const preflight::Deadlines& deadlines) override;
  supervise::Outcome supervise(unsigned attempt, supervise::EventLog& events) override;
  Audit audit() override;
  [[nodiscard]] std::string mask(const std::string& text) const override;

 private:
  preflight::Request request(const preflight::Options& options);

  const plan::Plan& plan_;
  bool share_;
  const Context& context_;
  MachineSource& machine_;
  const supervise::GuardianLink& guardian_;
  launch::RunPaths paths_;
  std::optional<launch::GpuLocks> locks_;
  std::optional<launch::Ports> ports_;
  plan::BoundNode node_;
  std::vector<preflight::Rank> ranks_;  ///< once they were asked for
  std::optional<Auditor> auditor_;      ///< of the processes, once they were started
};

/// This machine, again and again.
class LocalVenue : public Venue {
 public:
  LocalVenue(const plan::Plan& plan, bool share, const Context& context, MachineSource& machine)
      : plan_(plan), share_(share), context_(context), machine_(machine) {}

  std::unique_ptr<Place> next(const supervise::GuardianLink& guardian) override {
    return std::make_unique<LocalPlace>(plan_, share_, context_, machine_, guardian);
  }
  void record(const std::vector<preflight::Suspect>& /*suspects*/) override {}
  bool leave_out(const std::vector<preflight::Suspect>& /*suspects*/) override { return false; }

 private:
  const plan::Plan& plan_;
  bool share_;
  const Context& context_;
  MachineSource& machine_;
};

}  // namespace nlaunch::cli
