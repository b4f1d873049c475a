#pragma once
#include <memory>
#include <optional>
#include <set>

#include "cli/auditor.h"
#include "cli/context.h"
#include "cli/load.h"
#include "cli/visit.h"
#include "launch/gpu_lock.h"
#include "launch/step.h"
#include "preflight/findings.h"
#include "preflight/local_probes.h"
#include "supervise/guardian.h"
#include "supervise/local_crew.h"
#include "sys/channel.h"

namespace nlaunch::cli {

/// The agent of one node: does what the one who decides asks for, as far as it stands in the plan that both
/// have. Without him it ends what it has started, within the grace of each process.
class Agent {
 public:
  struct Options {
    Visit::Options way;          ///< to the one who decides; the plan's fingerprint is put in
    std::string host;            ///< by which name this node is known
    std::filesystem::path runs;  ///< where this node keeps its runs; empty: in the folder that all share
    bool of_slurm = true;        ///< whoever started this says when it is to end
  };
  Agent(Options options, plan::Plan plan, const Context& context, const supervise::GuardianLink& guardian);
  ~Agent();

  /// Until it is let go. The exit code.
  int run();
  /// It was let go for another attempt, which wants an agent of its own.
  [[nodiscard]] bool wanted_again() const { return again_; }

 private:
  void let_in(Visit::End end);
  nlohmann::json introduce(const sys::Channel& channel);
  std::optional<std::string> make_folders();
  void hear(std::string_view line);
  void bind();
  void keep(const nlohmann::json& message);
  void refuse(int exit_code, const Diagnostics& why);
  void look(PreflightLevel level);
  void probe(const nlohmann::json& message);
  void supervise(const nlohmann::json& message);
  void open_output();
  void finish(const nlohmann::json& of);
  void answer(nlohmann::json message);
  [[nodiscard]] nlohmann::json files_for_all() const;
  void give_up(const std::string& why);

  void listen();
  void told_to_stop(int signal);
  void forsaken(const std::string& why);
  void stop_all();
  void write_own_summary(const std::string& why);
  void leave(int exit_code);

  Options options_;
  plan::Plan plan_;
  std::uint32_t index_;
  launch::Assignment assignment_;
  const Context& context_;
  const supervise::GuardianLink& guardian_;
  pid_t parent_ = 0;  ///< of the guardian, at the beginning: Slurm's stepd
  MachineSource machine_;
  launch::Ports ports_;
  std::optional<launch::GpuLocks> locks_;
  plan::BoundNode node_;
  std::string address_;  ///< by which the other nodes reach this one
  preflight::Findings findings_;
  supervise::Rules rules_;

  sys::Loop loop_;
  std::unique_ptr<preflight::LocalProbes> probes_;
  std::unique_ptr<Visit> visit_;
  std::unique_ptr<sys::Channel> channel_;
  sys::UniqueFd output_;
  std::unique_ptr<supervise::Terminal> terminal_;
  std::unique_ptr<Auditor> auditor_;
  std::unique_ptr<supervise::LocalCrew> crew_;
  std::set<supervise::ProcessIndex> running_;
  Duration longest_grace_{};  ///< before Slurm itself kills
  bool forsaken_ = false;
  bool again_ = false;
  int exit_code_ = 0;
};

}  // namespace nlaunch::cli
