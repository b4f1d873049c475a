#pragma once
#include "session/caller.h"
#include "session/node_worker.h"
#include "session/run_target.h"

namespace nlaunch::session {

/// This machine.
class LocalHost : public AttemptHost {
 public:
  /// `share`: allow GPUs that another run holds. All arguments must outlive this object.
  LocalHost(const plan::Plan& plan, bool share, const Caller& caller, launch::MachineSource& machine,
            const supervise::GuardianLink& guardian);

  std::optional<Refused> bind(const launch::RunPaths& paths) override;
  preflight::Report check(const preflight::Options& options) override;
  Result<std::vector<preflight::Rank>> ranks() override;
  preflight::Measured measure(std::vector<preflight::GroupTrial> trials,
                              const preflight::Deadlines& deadlines) override;
  supervise::Outcome supervise(unsigned attempt, supervise::EventLog& events) override;
  Audit audit() override;
  [[nodiscard]] supervise::Json lock() const override;
  [[nodiscard]] std::string mask(const std::string& text) const override;

 private:
  [[nodiscard]] bool cancelled() const;
  [[nodiscard]] preflight::Request request(const preflight::Options& options) const;
  std::string prepare(const supervise::Rebinding& rebinding);

  bool share_;
  const Caller& caller_;
  const supervise::GuardianLink& guardian_;
  launch::RunPaths paths_;
  NodeWorker worker_;
  std::vector<preflight::Rank> ranks_;  ///< after the first call of ranks()
};

/// This machine, for every attempt.
class LocalTarget : public RunTarget {
 public:
  LocalTarget(const plan::Plan& plan, bool share, const Caller& caller, launch::MachineSource& machine)
      : plan_(plan), share_(share), caller_(caller), machine_(machine) {}

  std::unique_ptr<AttemptHost> next(const supervise::GuardianLink& guardian) override {
    return std::make_unique<LocalHost>(plan_, share_, caller_, machine_, guardian);
  }
  void record(const std::vector<preflight::Suspect>& /*suspects*/) override {}
  bool leave_out(const std::vector<preflight::Suspect>& /*suspects*/) override { return false; }

 private:
  const plan::Plan& plan_;
  bool share_;
  const Caller& caller_;
  launch::MachineSource& machine_;
};

}  // namespace nlaunch::session
