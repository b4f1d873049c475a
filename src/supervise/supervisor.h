#pragma once
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "supervise/checkpoints.h"
#include "supervise/events.h"
#include "supervise/guardian.h"
#include "supervise/investigation.h"
#include "supervise/outcome.h"
#include "supervise/process_backend.h"
#include "supervise/requests.h"
#include "supervise/roster.h"
#include "supervise/stall_monitor.h"
#include "supervise/steering.h"
#include "sys/loop.h"

namespace nlaunch::supervise {

/// Feeds events through the state machine, has the backend perform the resulting actions, and keeps the
/// record: events.jsonl and the outcome.
class Supervisor {
 public:
  struct Options {
    const plan::Plan& plan;
    unsigned attempt = 0;
    std::filesystem::path logs;      ///< directory of the processes' log files
    std::vector<std::string> hosts;  ///< names of the nodes; empty on a single machine
    EventLog& events;
    const GuardianLink& guardian;
    Terminal* messages = nullptr;    ///< null: writes none
    Terminal* output = nullptr;      ///< of the processes: its skipped lines go into the outcome. Null: none
    Judge judge{};                   ///< of evidence; see Investigation
    Roster::AddressOf address_of{};  ///< of processes that others connect to
    /// Distributes a new file of the attempt, by its name there, to nodes that share no directory.
    std::function<void(const std::string& file)> distribute{};
    Rebinder rebinder{};   ///< not set: the plan cannot be updated
    bool goes_on = false;  ///< another leader led this attempt before: does not wait for borrowed nodes
  };
  Supervisor(sys::Loop& loop, Options options);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  [[nodiscard]] const Rules& rules() const { return rules_; }
  /// For the backend, which reports the results of all actions.
  void on(const ProcessEvent& process_event);
  /// Supervises until the run ends. Call it once, with a backend for these rules.
  Outcome run(ProcessBackend& backend);

 private:
  void listen();
  void watch();
  void keep_step(std::uint64_t step, std::optional<double> seconds);
  void look_at_files();
  void look_for_request();
  void look_for_run_requests();
  void note_request(const PendingRequest& pending, const Answer& given);
  void grant(const Decision& decision);
  void update(const PendingRequest& pending);
  void adopt(const PendingRequest& pending, const plan::Plan& after, const std::vector<std::string>& roles);
  [[nodiscard]] std::filesystem::path plan_file() const;
  [[nodiscard]] std::vector<std::string> hosts_now() const;
  bool hold_for_checkpoint(bool stops, std::function<void()> then);
  void look_at_checkpoint();
  void note_checkpoint();
  void note_touched(const Event& event);
  void publish();
  void load_addresses(std::uint32_t role);
  void handle(Event event);
  void take(Step step);
  void process_queues();

  void perform(const action::Start& start);
  void perform(const action::SignalGroup& send);
  void perform(const action::SignalProcess& send);
  void perform(const action::ArmGrace& arm);
  void perform(const action::ArmBackoff& arm);
  void perform(const action::ForgetRestart& forget);
  void perform(const action::Tolerate& tolerate);
  void perform(const action::Recover& recover);
  void perform(const action::Release& release);
  void perform(const action::KillTree& kill);
  void perform(const action::KillAll& kill);
  void perform(const action::Decide& decide);
  void perform(const action::Finish& finish);
  /// AwaitReady and CleanUp concern only the backend.
  template <class What>
  void perform(const What& what) {
    backend_->perform(what);
  }

  void on(Duration at, const process_event::Started& started);
  void on(Duration at, const process_event::NotStarted& not_started);
  void on(Duration at, const process_event::Ready& ready);
  void on(Duration at, const process_event::NotReady& not_ready);
  void on(Duration at, const process_event::Unresponsive& silent);
  void on(Duration at, const process_event::Fresh& fresh);
  void on(Duration at, const process_event::Raised& raised);
  void on(Duration at, const process_event::Ended& ended);
  void on(Duration at, const process_event::ChildEnded& child);
  void on(Duration at, const process_event::CleanedUp& cleaned);
  void on(Duration at, const process_event::NotKillable& stuck);
  void on(Duration at, const process_event::Signal& signal);
  void on(Duration at, const process_event::NodeLost& lost);
  void on(Duration at, const process_event::NodeBack& back);
  void on(Duration at, const process_event::Abort& abort);
  void on(Duration at, const process_event::Progress& progress);
  void on(Duration at, const process_event::Saved& saved);
  void on(Duration at, const process_event::Linked& linked);
  void on(Duration at, const process_event::Collected& collected);
  void on(Duration at, const process_event::Trouble& trouble);

  void report_pending();
  void note_ready(ProcessIndex process, Duration at);
  void note_explanation(ProcessIndex process, Explanation explanation);
  [[nodiscard]] const plan::Role& planned_role(ProcessIndex process) const;
  void say_once_all_are_ready(ProcessIndex process, Duration at);
  void say_ready_again(ProcessIndex process, Duration at);
  void conclude(BackendEnd end);
  void note_logs(std::map<std::string, std::uint64_t> sizes);
  void note_unfinished();
  void explain_end();
  void note_slowest();
  [[nodiscard]] std::optional<std::size_t> next_after(std::size_t first) const;
  [[nodiscard]] Duration since_start() const;
  [[nodiscard]] const std::string& name_of(ProcessIndex process) const;
  [[nodiscard]] std::string replica_name(ProcessIndex process) const;
  [[nodiscard]] std::string why_again(const std::vector<ProcessIndex>& replica) const;
  void record(std::string_view event, const Json& fields = Json::object());
  void say(std::string_view text);
  void later(Duration wait, std::function<void()> then);

  sys::Loop& loop_;
  std::shared_ptr<int> here_ = std::make_shared<int>();  ///< expires with this object
  Options options_;
  Rules rules_;
  State state_;
  ProcessBackend* backend_ = nullptr;
  std::unique_ptr<Investigation> investigation_;
  std::unique_ptr<StallMonitor> watching_;  ///< null: not watched
  Roster roster_;
  std::optional<CheckpointFolder> checkpoints_;  ///< empty: the plan names no directory
  std::optional<SavedCheckpoint> saved_;         ///< the last one that a learner's output named
  /// An action that waits for a checkpoint in progress.
  struct Held {
    bool stops = false;  ///< whether it stops the run
    std::function<void()> then;
  };
  std::optional<Held> held_;
  Duration held_until_{};
  bool updates_ = false;               ///< the nodes are being bound to another plan
  std::vector<ProcessIndex> touched_;  ///< since the last roster update
  std::optional<EventLog> steps_;      ///< empty: no process has reported a step
  std::deque<Event> events_;
  std::deque<Action> actions_;
  bool working_ = false;
  bool finished_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<std::string> outlived_their_grace_;
  std::vector<std::set<ProcessIndex>> not_ready_;  ///< by role: processes that have not been ready yet
  std::map<ProcessIndex, Duration>
      lost_at_;  ///< processes that the run continued without, until they serve again
  std::map<ProcessIndex, Explanation> explanations_;  ///< of failures since the last start of the process
  Outcome outcome_;
};

}  // namespace nlaunch::supervise
