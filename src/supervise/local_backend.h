#pragma once
#include <filesystem>
#include <map>
#include <memory>

#include "plan/bound.h"
#include "supervise/child_watch.h"
#include "supervise/cleaner.h"
#include "supervise/liveness.h"
#include "supervise/not_ready_search.h"
#include "supervise/output.h"
#include "supervise/process_backend.h"
#include "supervise/progress.h"
#include "supervise/readiness.h"
#include "supervise/throughput.h"
#include "sys/exec_check.h"
#include "sys/net_check.h"
#include "sys/oom_kills.h"
#include "sys/shared_memory.h"
#include "sys/tcp_sockets.h"

namespace nlaunch::supervise {

/// The processes that are alive: index into Plan::processes → pid.
using LivePids = std::map<std::uint32_t, pid_t>;

struct EndedProcess {
  sys::WaitStatus status;
  Duration at{};  ///< since the start of the attempt
};

/// What has ended so far, by index into Plan::processes.
struct Ends {
  std::map<std::uint32_t, EndedProcess> processes;
  /// Of servers that run: which of their parts have been killed, and not by nlaunch: also by
  /// the server itself. "VLLM::EngineCore (pid
  /// 4711) was killed by SIGKILL 69.7s into the run"
  std::map<std::uint32_t, std::vector<std::string>> killed_parts;
};

/// Callbacks while processes run on this machine. They run on the loop: slow work belongs elsewhere.
struct Hooks {
  std::function<void(std::uint32_t process, pid_t pid)> on_started;
  /// Called every `period`. If it returns a reason, the run ends with this exit code.
  struct Abort {
    std::string reason;
    int exit_code = 0;
  };
  std::function<std::optional<Abort>(const LivePids&)> tick;
  Duration period = std::chrono::seconds(5);
  /// Called once when the end of the run is decided, while the processes that did not fail are still alive.
  std::function<void(const LivePids&)> before_stop;
  /// The program that collects what can be observed of the processes into this directory; empty if it cannot
  /// be built. Not set: nothing is collected.
  std::function<std::optional<sys::SpawnRequest>(const LivePids&, const Ends&, const std::string& folder)>
      collect;
  /// A program that runs as long as the processes do and prints nothing; nothing depends on it.
  std::optional<sys::SpawnRequest> beside;
};

/// The processes of one node, on this machine: starts them with their environment and log file, checks
/// readiness, signals, kills and cleans up. Needs a child subreaper, all of whose children are reaped.
class LocalBackend : public ProcessBackend {
 public:
  struct Options {
    const plan::BoundNode& node;
    std::filesystem::path logs;  ///< directory of the log files; is created
    Terminal* terminal = nullptr;
    Color color = Color::never;
    std::size_t name_width = 0;  ///< of the names on the terminal; 0: of the longest name here
    Hooks hooks;
    std::optional<plan::Watch> watch{};
    std::string saved{};  ///< plan::Checkpoint::saved
  };
  /// `rules` cover the whole plan; this backend acts on those of its processes that are on this node.
  LocalBackend(sys::Loop& loop, const Rules& rules, Options options, Tell tell);
  ~LocalBackend() override;

  /// Another leader takes over that knows nothing of the processes already started: for each process that it
  /// starts for the first time, it is told what has happened to it so far.
  void replay_events();

  void perform(const NodeAction& action) override;
  void ending() override;
  void finish(std::optional<ProcessIndex> of, std::function<void(BackendEnd)> done) override;

 private:
  struct Live;

  void on(const action::Start& start);
  void on(const action::AwaitReady& await);
  void on(const action::Watch& watch);
  void on(const action::AwaitFresh& await);
  void on(const action::Notify& notify);
  void on(const action::SignalGroup& send);
  void on(const action::SignalProcess& send);
  void on(const action::KillTree& kill);
  void on(const action::KillAll& kill);
  void on(const action::Collect& collect);
  void on(const action::CleanUp& clean);

  void look_at_files();
  void end_own_programs();
  void tick();
  void look_at_progress();
  void tell_progress(ProcessIndex process, const Live& live);
  Result<pid_t> spawn(Live& live);
  [[nodiscard]] std::filesystem::path record_of(const Live& live) const;
  void forget_error(const Live& live) const;
  void keep_error_folder() const;
  void tell_error(ProcessIndex process, Live& live);
  void watch_for_line(Live& live);
  void look_around(ProcessIndex process);
  [[nodiscard]] NotReadySeen seen_so_far(const Live& live, const std::vector<pid_t>& tree) const;
  [[nodiscard]] std::optional<PortTaken> port_taken(const Live& live) const;
  [[nodiscard]] const Live* live_of(pid_t pid) const;
  struct Holder {
    std::string name;
    std::string remedy;
  };
  [[nodiscard]] Holder described(sys::PortHolder holder) const;
  void notify_failed(const action::Notify& notify, const std::string& why);
  void ended(ProcessIndex process, sys::WaitStatus status);
  [[nodiscard]] std::map<std::string, std::uint64_t> log_sizes() const;
  void watch_children();
  void give_up_later(ProcessIndex process);
  void cleaned_up(ProcessIndex process, const Cleaner::Result& result);
  [[nodiscard]] std::vector<std::string> last_lines_of(const Live& live) const;
  [[nodiscard]] std::vector<std::string> last_lines_of_task(const Live& live) const;
  [[nodiscard]] LivePids live_pids() const;
  [[nodiscard]] Ends ends() const;
  [[nodiscard]] Duration since_start() const;
  template <class What>
  void tell(What what);

  sys::Loop& loop_;
  Options options_;
  Tell tell_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  /// Looked up once: a directory service that does not answer must not hold up the supervision.
  std::string own_user_ = sys::user_name();
  Cleaner cleaner_;
  sys::SharedMemory shared_memory_;
  std::unique_ptr<Output> output_;
  std::unique_ptr<ChildWatch> children_;  ///< until the run ends: what exits after that was stopped
  std::optional<ProgressPattern> pattern_;
  std::unique_ptr<RE2> saved_;                  ///< for checkpoints in learners' lines; null: none
  std::unique_ptr<sys::ExecCheck> collection_;  ///< of evidence, in progress
  std::unique_ptr<sys::ExecCheck> beside_;
  std::vector<ProgressReader> readers_;       ///< by index into the Output
  std::vector<process_event::Linked> links_;  ///< that were told
  std::map<ProcessIndex, Live> live_;
  /// Pending notifications, until they are answered.
  std::map<std::uint64_t, std::unique_ptr<sys::NetCheck>> posts_;
  std::map<std::uint64_t, std::unique_ptr<sys::ExecCheck>> tellers_;
  std::uint64_t told_ = 0;
  std::map<std::string, std::uint64_t> log_when_decided_;
  std::optional<std::uint64_t> oom_kills_before_ = sys::oom_kills();
  std::uint32_t starts_ = 0;
};

}  // namespace nlaunch::supervise
