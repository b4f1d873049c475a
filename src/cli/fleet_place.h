#pragma once
#include <functional>
#include <map>
#include <memory>

#include "cli/context.h"
#include "cli/place.h"
#include "launch/allocation.h"
#include "preflight/examine.h"
#include "preflight/remote_probes.h"
#include "supervise/remote_crew.h"
#include "sys/channel.h"

namespace nlaunch::cli {

/// The nodes of an allocation: a step with an agent on each, which binds its node, checks it, and starts its
/// processes as this one decides.
class FleetPlace : public Place {
 public:
  struct Options {
    bool share = false;
    std::vector<std::string> nodes;  ///< names; as many as the plan has
  };
  FleetPlace(const plan::Plan& plan, Options options, const Context& context,
             const launch::Allocation& allocation, const supervise::GuardianLink& guardian);
  /// Lets the agents go, and waits for the end of the step.
  ~FleetPlace() override;

  std::optional<Refused> bind(const launch::RunPaths& paths) override;
  preflight::Report check(PreflightLevel level) override;
  supervise::Outcome supervise(unsigned attempt, supervise::EventLog& events) override;
  Audit audit() override { return audit_; }
  [[nodiscard]] std::string mask(const std::string& text) const override { return text; }

 private:
  struct Agent {
    std::string host;
    std::unique_ptr<sys::Channel> channel;  ///< null: has not said who it is yet
    std::unique_ptr<sys::Channel> output;
    nlohmann::json hello;
    nlohmann::json answer;  ///< to what was asked last; null: not yet
    std::string lost;       ///< why it is gone; empty: it is there
  };

  std::optional<Refused> start_step();
  [[nodiscard]] bool all_met() const;
  Refused refuse_unmet();
  std::optional<Refused> introduce();
  [[nodiscard]] std::optional<Refused> refused_by_nodes() const;
  void accept(std::unique_ptr<sys::Channel> channel);
  void hear_stranger(sys::Channel* channel, std::string_view line);
  void hear(std::uint32_t node, std::string_view line);
  void lose(std::uint32_t node, const std::string& why);
  void step_ended(sys::WaitStatus status);
  /// Runs the loop until `done`, or until that cannot be any more; false then.
  bool wait_for(const std::function<bool()>& done, Duration limit);
  void ask_all(const nlohmann::json& message);
  [[nodiscard]] std::vector<preflight::Findings> findings() const;
  [[nodiscard]] preflight::Report report_of_absent() const;
  std::unique_ptr<preflight::Probes> make_probes(const std::vector<preflight::Rank>& ranks,
                                                 const std::string& folder);
  [[nodiscard]] bool all_answered() const;
  [[nodiscard]] std::string step_log() const;
  /// What is wrong with the step, in words for a person.
  [[nodiscard]] std::string trouble() const;
  [[nodiscard]] Refused refuse(const std::string& sentence) const;

  const plan::Plan& plan_;
  Options options_;
  const Context& context_;
  const launch::Allocation& allocation_;
  const supervise::GuardianLink& guardian_;
  launch::RunPaths paths_;
  std::string token_;
  sys::Loop loop_;
  std::unique_ptr<supervise::Terminal> terminal_;
  std::unique_ptr<sys::Listener> listener_;
  std::map<sys::Channel*, std::unique_ptr<sys::Channel>> strangers_;
  std::vector<Agent> agents_;
  pid_t srun_ = -1;
  std::optional<sys::WaitStatus> srun_end_;
  bool step_told_to_end_ = false;  ///< an agent had a SIGTERM before all were there
  Duration kill_wait_{};
  std::function<bool()> waiting_;
  preflight::RemoteProbes* probes_ = nullptr;  ///< while they try the plan's groups
  supervise::RemoteCrew* crew_ = nullptr;      ///< while it supervises
  supervise::Crew::Tell tell_;
  Audit audit_;
};

}  // namespace nlaunch::cli
