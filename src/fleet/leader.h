#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>

#include "base/exit_code.h"
#include "fleet/admission.h"
#include "fleet/agent_launcher.h"
#include "fleet/conversation.h"
#include "fleet/node_lender.h"
#include "fleet/recovery.h"
#include "preflight/ask/remote_probes.h"
#include "preflight/clocks.h"
#include "preflight/examine.h"
#include "session/attempt_host.h"
#include "session/caller.h"
#include "supervise/remote_backend.h"
#include "sys/channel.h"
#include "sys/exec_check.h"

namespace nlaunch::fleet {

/// Several nodes with one agent each, which binds its node, checks it, and starts its processes as this
/// leader decides.
class Leader : public session::AttemptHost {
 public:
  /// `share`: use GPUs that another run holds. All other arguments except `gathering` must outlive this.
  Leader(const plan::Plan& plan, bool share, std::unique_ptr<AgentLauncher> gathering,
         const session::Caller& caller, const supervise::GuardianLink& guardian);
  /// Dismisses the agents and waits for the program that started them to exit.
  ~Leader() override;

  std::optional<Refused> bind(const launch::RunPaths& paths) override;
  std::optional<Refused> take_over(const launch::RunPaths& paths) override;
  preflight::Report check(const preflight::Options& options) override;
  Result<std::vector<preflight::Rank>> ranks() override;
  preflight::Measured measure(std::vector<preflight::GroupTrial> trials,
                              const preflight::Deadlines& deadlines) override;
  [[nodiscard]] std::string lost() const override;
  supervise::Outcome supervise(unsigned attempt, supervise::EventLog& events) override;
  Audit audit() override { return audit_; }
  void leave() override;
  void conclude(int exit_code) override;
  [[nodiscard]] supervise::Json lock() const override { return lock_; }
  [[nodiscard]] std::string mask(const std::string& text) const override { return text; }

 private:
  struct Agent {
    std::string host{};
    std::unique_ptr<SealedChannel> channel{};  ///< its own; null: it is reached through a relay, or not yet
    std::unique_ptr<sys::Channel> output{};
    /// Through a relay.
    struct Relayed {
      Conversation conversation{};
      std::optional<std::uint32_t> relay{};       ///< nullopt: that one is lost, and this agent may come back
      std::optional<sys::Loop::TimerId> timer{};  ///< until it is given up
    };
    std::optional<Relayed> relayed{};
    message::Hello hello{};
    std::string lost{};  ///< why it is lost; empty: it is connected
    // Its answers so far.
    std::optional<message::Bound> bound{};
    std::optional<message::NotBound> refused{};
    std::optional<preflight::Findings> findings{};  ///< to the last Look
    bool settled = false;
    bool joins = false;  ///< it joins a run in progress and is not supervised yet
    bool looks = false;  ///< it is checking its node before that

    [[nodiscard]] bool has_connected() const { return channel || relayed; }
    [[nodiscard]] bool takes_part() const { return has_connected() && lost.empty(); }
  };
  /// For an agent whose relay is lost. It may notice 30 s later than the leader (sys/channel.cpp), or after
  /// an unanswered message later still, and then tries each of the next ways for some seconds.
  static constexpr Duration kToComeBack = std::chrono::seconds(75);
  /// The place of a lost node, until it is filled.
  struct Joining {
    std::string host{};                         ///< the host being tried
    pid_t starter = -1;                         ///< starts an agent there
    std::optional<sys::Loop::TimerId> timer{};  ///< until the host is tried, or given up
  };

  void begin(const launch::RunPaths& paths);
  std::optional<Refused> open_reception();
  std::optional<Refused> start_agents();
  [[nodiscard]] bool all_met() const;
  Refused refuse_unmet();
  std::optional<Refused> introduce();
  [[nodiscard]] std::optional<Refused> refused_by_nodes() const;
  void name_nodes();
  [[nodiscard]] launch::NodeAddresses directory() const;
  [[nodiscard]] std::vector<std::string> hosts() const;
  void collect_files();
  std::optional<std::string> distribute(const std::string& file);
  void admit(AdmissionServer::AdmittedAgent arrived);
  void dismiss(AdmissionServer::AdmittedAgent arrived);
  void set_channel(std::uint32_t node, AdmissionServer::AdmittedAgent arrived);
  void take_channel(std::uint32_t node, std::unique_ptr<SealedChannel> channel);
  Result<pid_t> start_program(const AgentLauncher::Start& start);

  std::string find_listener(const launch::Step& step);
  Result<launch::Step> load_nodes();
  std::optional<Refused> await_agents();
  void wait_for_agents_to_exit();

  [[nodiscard]] std::string address_of(const plan::Process& process);
  void recover(std::uint32_t node);
  void release(std::uint32_t node);
  void try_next(std::uint32_t node);
  void bring(std::uint32_t node, const std::string& host);
  void give_up_later(std::uint32_t node);
  [[nodiscard]] std::string led_from(std::uint32_t node) const;
  void begin_join(AdmissionServer::AdmittedAgent arrived);
  void continue_join(std::uint32_t node);
  void join_failed(std::uint32_t node, const std::string& why);
  std::optional<preflight::Suspect> unfit_to_join(std::uint32_t node);

  /// The nodes of the run's own job; `agents_` has the borrowed ones after them.
  [[nodiscard]] std::span<const Agent> own() const;
  [[nodiscard]] std::span<Agent> own();
  [[nodiscard]] std::string place_of(std::uint32_t node, const std::string& host) const;
  [[nodiscard]] std::string unique_name(std::uint32_t node, const std::string& host) const;
  bool take_back(std::uint32_t node);
  void borrow(std::uint32_t node);
  void asked(std::uint32_t node, const std::optional<std::string>& why);
  void ask_next();
  void take_job(std::uint32_t node, const std::string& job);
  void cancel_job(const std::string& job);
  void save_jobs();
  void load_jobs();
  void look_at_queue_later();
  void look_at_queue();
  void job_ended(std::uint32_t node, const std::string& job);
  void give_back(std::uint32_t node);
  void give_back_all();

  void prepare(const supervise::Rebinding& rebinding, supervise::Rebinder::Done done);
  void stop_preparing(std::uint32_t node);
  void check_if_prepared();
  void adopt();

  void tell_trouble(const std::string& sentence);
  [[nodiscard]] Duration since_supervised() const;

  void on_text(std::uint32_t peer, std::string_view text);
  void arrive(std::uint32_t peer, std::uint32_t node, std::string_view text);
  [[nodiscard]] bool begins_again(const AdmissionServer::AdmittedAgent& arrived) const;
  void start_over(AdmissionServer::AdmittedAgent arrived);
  void drop_relayed(std::uint32_t node);
  void wait_for_adrift();
  void lose_relay(std::uint32_t relay);
  void set_adrift(std::uint32_t node);
  void resume(AdmissionServer::AdmittedAgent arrived);
  void on(std::uint32_t node, const message::Confirm& confirm);
  void on(std::uint32_t node, const message::Gone& gone);

  void on_message(std::uint32_t node, std::string_view line);
  void on(std::uint32_t node, const preflight::ClockAnswer& answer);
  void on(std::uint32_t node, message::Bound bound);
  void on(std::uint32_t node, message::NotBound refused);
  void on(std::uint32_t node, preflight::Findings findings);
  void on(std::uint32_t node, const message::Prepared& prepared);
  void on(std::uint32_t node, const message::Settled& settled);
  void on(std::uint32_t node, const message::ProbeNews& probe);
  void on(std::uint32_t node, supervise::ProcessEvent process_event);
  void on(std::uint32_t node, supervise::BackendEnd end);
  void on(std::uint32_t node, const message::Audit& audit);
  void on(std::uint32_t node, const message::Lost& lost);
  /// An answer that is waited for from this node may have arrived.
  void answered(std::uint32_t node);
  void check_if_done();

  void lose(std::uint32_t node, const std::string& why);
  void starter_ended(pid_t pid, sys::WaitStatus status);
  /// Runs the loop until `done`, or until that is no longer possible; then false.
  bool wait_for(const std::function<bool()>& done, Duration limit);
  /// Runs the loop briefly, or until something stops it.
  void run_loop_briefly();
  void send(std::uint32_t node, const Message& message);
  void send_all(const Message& message);
  void carry(std::uint32_t node, std::string_view text, bool is_one_of_many);
  /// Every node checks itself. False: one did not answer.
  bool look(const preflight::Options& options);
  [[nodiscard]] preflight::Examination examination(const preflight::Options& options);
  std::vector<std::optional<preflight::ClockOffset>> compare_clocks();
  [[nodiscard]] std::vector<preflight::Findings> findings() const;
  [[nodiscard]] preflight::Report report_of_absent() const;
  std::unique_ptr<preflight::Probes> make_probes(const preflight::ProbeStart& start);
  [[nodiscard]] std::string starter_log() const;
  /// What went wrong before all nodes were bound, as a message.
  [[nodiscard]] std::string trouble() const;
  [[nodiscard]] Refused refuse(const std::string& sentence, int code = exit_code::internal) const;

  const plan::Plan& plan_;
  bool share_;
  std::unique_ptr<AgentLauncher> launcher_;
  const session::Caller& caller_;
  const supervise::GuardianLink& guardian_;
  launch::RunPaths paths_;
  std::string token_;
  sys::Loop loop_;
  std::unique_ptr<supervise::RunTerminal> terminal_;
  std::unique_ptr<AdmissionServer> admission_;
  std::vector<std::string> rejected_;
  std::string misfit_;  ///< why an agent of this run can never take part
  std::vector<Agent> agents_;
  std::vector<preflight::Rank> ranks_;          ///< once requested
  pid_t starter_ = -1;                          ///< the first program that starts agents
  std::set<pid_t> starters_;                    ///< all of them that are still running
  std::optional<sys::WaitStatus> starter_end_;  ///< of the first, or of any before all agents were connected
  bool taken_over_ = false;                     ///< another leader led this attempt before
  bool led_by_another_ = false;   ///< the run could not be taken over: its agents are left as they are
  bool left_ = false;             ///< all agents took part to the end, and were told to exit
  bool concluded_ = false;        ///< the agents know that the run is over
  bool step_terminated_ = false;  ///< an agent got SIGTERM before all were connected
  Duration kill_wait_{};
  std::function<bool()> waiting_;
  preflight::ClockExchange* clocks_ = nullptr;  ///< while in progress
  preflight::RemoteProbes* probes_ = nullptr;   ///< while it tests groups
  unsigned probe_runs_ = 0;
  supervise::RemoteBackend* backend_ = nullptr;  ///< while it supervises
  supervise::ProcessBackend::Tell tell_;
  std::vector<preflight::Findings>
      checked_;  ///< the findings of the last preflight, by node; empty: there was none
  std::chrono::steady_clock::time_point supervised_since_{};
  /// The current nodes and the plan with their ports, once an address is requested.
  struct Bound {
    launch::NodeAddresses nodes;
    plan::Plan plan;
  };
  std::optional<Bound> bound_now_;
  HostHistory history_;
  std::map<std::uint32_t, Joining> joining_;  ///< by node
  std::set<pid_t> starters_again_;            ///< of agents that joined later
  struct Job {
    std::string id;
    std::string host{};  ///< once its agent takes part; empty: not yet
  };
  std::map<std::uint32_t, Job> jobs_;  ///< of borrowed nodes, by node
  bool lender_is_ready_ = false;
  std::deque<std::uint32_t> to_ask_;
  /// A request for a node that the scheduler has not answered yet.
  struct Ask {
    std::unique_ptr<sys::ExecCheck> program;
    sys::Loop::TimerId timer{};
    bool wanted = true;  ///< else its job is cancelled immediately
  };
  std::map<std::uint32_t, Ask> asking_;                                 ///< by node
  std::map<std::string, std::unique_ptr<sys::ExecCheck>> giving_back_;  ///< by job
  std::unique_ptr<sys::ExecCheck> listing_;
  std::optional<sys::Loop::TimerId> queue_timer_;
  /// Another plan, to which the nodes are being bound.
  struct Preparing {
    std::string file;
    std::string fingerprint;
    supervise::Rebinder::Done done;
    sys::Loop::TimerId timer{};
    std::set<std::uint32_t> awaited{};   ///< nodes that have not answered
    std::set<std::uint32_t> prepared{};  ///< nodes that are prepared
    std::string why{};                   ///< the first failure
  };
  std::optional<Preparing> preparing_;
  std::set<std::uint32_t> prepared_;  ///< nodes that may adopt the plan with this fingerprint
  std::string expected_;
  supervise::Json lock_;  ///< for lock.json
  Audit audit_;
};

}  // namespace nlaunch::fleet
