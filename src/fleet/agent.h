#pragma once
#include <memory>
#include <optional>
#include <set>

#include "fleet/conversation.h"
#include "fleet/leader_connection.h"
#include "fleet/relay.h"
#include "launch/job/step.h"
#include "launch/machine.h"
#include "preflight/ask/local_probes.h"
#include "preflight/findings.h"
#include "session/caller.h"
#include "session/node_worker.h"
#include "supervise/guardian.h"
#include "supervise/local_backend.h"
#include "sys/channel.h"

namespace nlaunch::fleet {

/// The agent of one node: does what the leader requests, within the plan that both have. Without the leader,
/// it stops what it has started, within each process's grace period. It can be connected through the agent of
/// another node; if that one is lost, it finds another way to the leader.
class Agent {
 public:
  struct Options {
    LeaderConnection::Options way;  ///< to the leader; the plan's fingerprint is added
    std::string host;               ///< the name of this node
    std::filesystem::path runs;     ///< where this node keeps its runs; empty: in the shared directory
    bool of_slurm = true;           ///< Slurm started this and signals when it has to exit
    std::filesystem::path step{};   ///< where another leader announces itself; empty: there can be none
    /// Where an agent relays for others.
    struct Place {
      std::string host;
      std::uint16_t port = 0;
    };
    std::vector<Place> relays{};  ///< to connect through, nearest first; the last resort is the leader itself
    std::uint16_t relay_port = 0;  ///< where this agent relays; 0: it does not
  };
  Agent(Options options, plan::Plan plan, const session::Caller& caller,
        const supervise::GuardianLink& guardian);

  /// Runs until it is dismissed. Returns the exit code.
  int run();
  /// It was dismissed for another attempt, which needs a new agent.
  [[nodiscard]] bool wanted_again() const { return again_; }

 private:
  [[nodiscard]] LeaderConnection::Options way() const;
  void connect();
  void arrive(LeaderConnection::End end);
  void admit(LeaderConnection::End end);
  void open_relay();
  void lose_relay(const std::string& why);
  void come_back(LeaderConnection::End end);
  message::Hello introduce(const sys::Channel& channel);
  std::optional<std::string> make_folders();
  void on_text(std::string_view text);
  void on_message(std::string_view line);
  void on(const message::Confirm& confirm);
  void on(const message::Resume& resume);
  void on(const message::Keep& keep);
  void on(const message::Bind& bind);
  void on(const preflight::ClockQuestion& question);
  void on(const message::Look& look);
  void on(const preflight::probe_command::Start& start);
  void on(const preflight::probe_command::Say& say);
  void on(const preflight::probe_command::Kill& kill);
  void on(const message::Supervise& supervise);
  void on(const supervise::node_command::Perform& perform);
  void on(const supervise::node_command::Ending& ending);
  void on(const supervise::node_command::Finish& finish);
  void on(const message::Prepare& prepare);
  void on(const message::Adopt& adopt);
  void on(const message::Settle& settle);
  void on(const message::Bye& bye);
  void send(const Message& message);

  void refuse(const session::NodeWorker::Refused& refused);
  void open_output();
  [[nodiscard]] std::map<std::string, std::string> files_for_all() const;
  void give_up(const std::string& why);

  void listen();
  void listen_to_leader();
  void on_stop_signal(int signal);
  void take_stop_signal(int signal);
  void on_connection_lost(const std::string& why);
  void look_for_leader();
  void follow(LeaderConnection::End end);
  void on_leader_lost(const std::string& why);
  void leave_after_all(int exit_code);
  void stop_all();
  void write_own_summary(const std::string& why);
  void leave(int exit_code);

  Options options_;
  std::uint32_t index_;
  launch::Assignment assignment_;
  const session::Caller& caller_;
  const supervise::GuardianLink& guardian_;
  pid_t parent_ = 0;  ///< of the guardian, at the start: slurmstepd
  launch::MachineSource machine_;
  session::NodeWorker worker_;
  std::string id_ = launch::new_token();  ///< see message::Hello
  std::string prepared_;                  ///< the fingerprint of the prepared plan
  std::string address_;                   ///< the address at which other nodes reach this one
  preflight::Findings findings_;
  supervise::Rules rules_;

  sys::Loop loop_;
  std::unique_ptr<preflight::LocalProbes> probes_;
  std::unique_ptr<LeaderConnection> connection_;
  std::unique_ptr<SealedChannel> channel_;
  std::optional<Conversation> conversation_;  ///< while it is connected through a relay
  std::string
      returns_because_{};         ///< its relay was lost, and the leader has not resumed the conversation yet
  std::unique_ptr<Relay> relay_;  ///< for other agents
  bool told_all_ = false;         ///< the last message from above was also for the agents below
  std::optional<int> leaves_with_;  ///< its exit code, once the agents below have left
  sys::UniqueFd output_;
  std::unique_ptr<supervise::Terminal> terminal_;
  std::unique_ptr<supervise::LocalBackend> backend_;
  std::set<supervise::ProcessIndex> running_;
  Duration longest_grace_{};                    ///< before Slurm itself kills
  bool ending_ = false;                         ///< the end of the run is decided: no leader takes it over
  bool alone_ = false;                          ///< the leader is gone, and another one may come
  std::optional<sys::Loop::TimerId> patience_;  ///< for a new leader
  bool leader_lost_ = false;
  bool again_ = false;
  int exit_code_ = 0;
};

}  // namespace nlaunch::fleet
