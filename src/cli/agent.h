#pragma once
#include <memory>
#include <optional>
#include <set>

#include "cli/auditor.h"
#include "cli/context.h"
#include "cli/load.h"
#include "launch/gpu_lock.h"
#include "launch/step.h"
#include "preflight/findings.h"
#include "preflight/local_probes.h"
#include "supervise/guardian.h"
#include "supervise/local_crew.h"
#include "sys/channel.h"

namespace nlaunch::cli {

/// The agent of one node of an allocation: does what the one who decides asks for. Without him it ends what
/// it has started, within the grace of each process.
class Agent {
 public:
  Agent(launch::Step step, plan::Plan plan, std::uint32_t node, const Context& context,
        const supervise::GuardianLink& guardian);
  ~Agent();

  /// Until it is let go. The exit code.
  int run();

 private:
  void connected(std::unique_ptr<sys::Channel> channel, const std::string& why);
  void hear(std::string_view line);
  void bind(const std::string& nodes_file);
  void refuse(int exit_code, const Diagnostics& why);
  void look();
  void probe(const nlohmann::json& message);
  void supervise(const nlohmann::json& message);
  void open_output();
  void finish(const nlohmann::json& of);
  void answer(nlohmann::json message);

  void listen();
  void told_to_stop(int signal);
  void forsaken(const std::string& why);
  void stop_all();
  void leave(int exit_code);

  launch::Step step_;
  plan::Plan plan_;
  std::uint32_t index_;
  std::string host_;
  const Context& context_;
  const supervise::GuardianLink& guardian_;
  pid_t parent_ = 0;  ///< of the guardian, at the beginning: Slurm's stepd
  MachineSource machine_;
  launch::Ports ports_;
  std::optional<launch::GpuLocks> locks_;
  plan::BoundNode node_;
  preflight::Findings findings_;
  supervise::Rules rules_;

  sys::Loop loop_;
  std::unique_ptr<preflight::LocalProbes> probes_;
  std::unique_ptr<sys::Connecting> connecting_;
  std::unique_ptr<sys::Channel> channel_;
  sys::UniqueFd output_;
  std::unique_ptr<supervise::Terminal> terminal_;
  std::unique_ptr<Auditor> auditor_;
  std::unique_ptr<supervise::LocalCrew> crew_;
  std::set<supervise::ProcessIndex> running_;
  Duration longest_grace_{};  ///< before Slurm itself kills
  bool forsaken_ = false;
  int exit_code_ = 0;
};

}  // namespace nlaunch::cli
