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

/// Several nodes with an agent on each, which binds its node, checks it, and starts its processes as this one
/// decides.
class Leader : public session::AttemptHost {
 public:
  /// `share`: use GPUs that another run holds. All other arguments but `gathering` outlive this.
  Leader(const plan::Plan& plan, bool share, std::unique_ptr<AgentLauncher> gathering,
         const session::Caller& caller, const supervise::GuardianLink& guardian);
  /// Lets the agents go, and waits for the end of the program that started them.
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
  void conclude(int exit_code) override;
  [[nodiscard]] std::string mask(const std::string& text) const override { return text; }

 private:
  struct Agent {
    std::string host{};
    std::unique_ptr<SealedChannel> channel{};  ///< null: has not said who it is yet
    std::unique_ptr<sys::Channel> output{};
    message::Hello hello{};
    std::string lost{};  ///< why it is gone; empty: it is there
    // What it has answered so far.
    std::optional<message::Bound> bound{};
    std::optional<message::NotBound> refused{};
    std::optional<preflight::Findings> findings{};  ///< to the last Look
    bool settled = false;
    bool joins = false;  ///< a run that goes on: it is not supervised yet
    bool looks = false;  ///< at its node, before it does
  };
  /// The place of a node that was lost, until it is taken.
  struct Joining {
    std::string host{};                         ///< that is tried
    pid_t starter = -1;                         ///< brings an agent there
    std::optional<sys::Loop::TimerId> timer{};  ///< until it is tried, or given up
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
  void take_files();
  std::optional<std::string> hand_out(const std::string& file);
  void admit(AdmissionServer::AdmittedAgent arrived);
  void let_go(AdmissionServer::AdmittedAgent arrived);
  void set_channel(std::uint32_t node, AdmissionServer::AdmittedAgent arrived);
  Result<pid_t> start_program(const AgentLauncher::Start& start);

  std::string listens(const launch::Step& step);
  Result<launch::Step> know_the_nodes();
  std::optional<Refused> await_agents();
  void await_their_end();

  [[nodiscard]] std::string address_of(const plan::Process& process);
  void recover(std::uint32_t node);
  void release(std::uint32_t node);
  void try_next(std::uint32_t node);
  void bring(std::uint32_t node, const std::string& host);
  void give_up_later(std::uint32_t node);
  [[nodiscard]] std::string led_from(std::uint32_t node) const;
  void let_join(AdmissionServer::AdmittedAgent arrived);
  void go_on_joining(std::uint32_t node);
  void did_not_join(std::uint32_t node, const std::string& why);
  std::optional<preflight::Suspect> unfit_to_join(std::uint32_t node);

  /// Of the nodes of the run's own job; behind them stand those of borrowed ones.
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
  void keep_jobs();
  void know_the_jobs();
  void look_at_queue_later();
  void look_at_queue();
  void job_ended(std::uint32_t node, const std::string& job);
  void give_back(std::uint32_t node);
  void give_back_all();

  void prepare(const supervise::Rebinding& rebinding, supervise::Rebinder::Done done);
  void stop_preparing(std::uint32_t node);
  void look_whether_prepared();
  void adopt();

  void tell_trouble(const std::string& sentence);
  [[nodiscard]] Duration since_supervised() const;

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
  /// What is waited for from this node may be there now.
  void answered(std::uint32_t node);
  void look_whether_done();

  void lose(std::uint32_t node, const std::string& why);
  void starter_ended(pid_t pid, sys::WaitStatus status);
  /// Runs the loop until `done`, or until that cannot be any more; false then.
  bool wait_for(const std::function<bool()>& done, Duration limit);
  /// Runs the loop for a moment, or until something stops it.
  void glance();
  void send(std::uint32_t node, const Message& message);
  void send_all(const Message& message);
  /// Every node looks at itself. False: one did not answer.
  bool look(const preflight::Options& options);
  [[nodiscard]] preflight::Examination examination(const preflight::Options& options);
  std::vector<std::optional<preflight::ClockOffset>> compare_clocks();
  [[nodiscard]] std::vector<preflight::Findings> findings() const;
  [[nodiscard]] preflight::Report report_of_absent() const;
  std::unique_ptr<preflight::Probes> make_probes(const preflight::ProbeStart& start);
  [[nodiscard]] std::string starter_log() const;
  /// What went wrong before all nodes were bound, in words for a person.
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
  std::unique_ptr<supervise::Terminal> terminal_;
  std::unique_ptr<AdmissionServer> admission_;
  std::vector<std::string> rejected_;
  std::string misfit_;  ///< why one of ours can never take part
  std::vector<Agent> agents_;
  std::vector<preflight::Rank> ranks_;          ///< once they were asked for
  pid_t starter_ = -1;                          ///< the first of those that bring the agents
  std::set<pid_t> starters_;                    ///< all of them that have not ended
  std::optional<sys::WaitStatus> starter_end_;  ///< of the first, or of any while not all agents were there
  bool taken_over_ = false;                     ///< another one led this attempt before
  bool is_of_another_ = false;     ///< it could not take the run over: its agents are left as they are
  bool step_told_to_end_ = false;  ///< an agent had a SIGTERM before all were there
  Duration kill_wait_{};
  std::function<bool()> waiting_;
  preflight::ClockExchange* clocks_ = nullptr;  ///< while it goes on
  preflight::RemoteProbes* probes_ = nullptr;   ///< while they try groups
  unsigned probe_runs_ = 0;
  supervise::RemoteBackend* backend_ = nullptr;  ///< while it supervises
  supervise::ProcessBackend::Tell tell_;
  std::vector<preflight::Findings>
      checked_;  ///< what a preflight was made of, by node; empty: there was none
  std::chrono::steady_clock::time_point supervised_since_{};
  /// The nodes that are there now and the plan with their ports, once somebody asks for an address.
  struct Bound {
    launch::NodeAddresses nodes;
    plan::Plan plan;
  };
  std::optional<Bound> bound_now_;
  HostHistory history_;
  std::map<std::uint32_t, Joining> joining_;  ///< by node
  std::set<pid_t> starters_again_;            ///< of agents that came later
  struct Job {
    std::string id;
    std::string host{};  ///< once its agent takes part; empty: it is awaited
  };
  std::map<std::uint32_t, Job> jobs_;  ///< of borrowed nodes, by node
  bool lender_is_ready_ = false;
  std::deque<std::uint32_t> to_ask_;
  /// A request for a node that the scheduler has not answered yet.
  struct Ask {
    std::unique_ptr<sys::ExecCheck> program;
    sys::Loop::TimerId timer{};
    bool wanted = true;  ///< else its job is given back at once
  };
  std::map<std::uint32_t, Ask> asking_;                                 ///< by node
  std::map<std::string, std::unique_ptr<sys::ExecCheck>> giving_back_;  ///< by job
  std::unique_ptr<sys::ExecCheck> listing_;
  std::optional<sys::Loop::TimerId> queue_timer_;
  /// Another plan, for which the nodes are being bound.
  struct Preparing {
    std::string file;
    std::string fingerprint;
    supervise::Rebinder::Done done;
    sys::Loop::TimerId timer{};
    std::set<std::uint32_t> awaited{};   ///< nodes that have not answered
    std::set<std::uint32_t> prepared{};  ///< those that are
    std::string why{};                   ///< the first that could not be
  };
  std::optional<Preparing> preparing_;
  std::set<std::uint32_t> prepared_;  ///< nodes that may adopt the plan of this fingerprint
  std::string expected_;
  Audit audit_;
};

}  // namespace nlaunch::fleet
