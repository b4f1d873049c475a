#include "fleet/leader.h"
#include "session/run_evidence.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "base/exit_code.h"
#include "base/text.h"
#include "launch/job/handshake.h"
#include "launch/job/step.h"
#include "launch/run_dir/provenance.h"
#include "plan/tolerance.h"
#include "session/interrupts.h"
#include "session/status_lines.h"
#include "supervise/run_attempt.h"
#include "sys/command.h"
#include "sys/files.h"
#include "sys/spawn.h"

namespace nlaunch::fleet {
namespace {

using namespace std::chrono_literals;

/// Modules, secrets and libraries on a slow file system.
constexpr Duration kToBind = 5min;
constexpr Duration kToLeave = 10s;
/// srun waits for the tasks of a lost node, whether they exist or not.
constexpr Duration kToLeaveTheOthers = 1s;
constexpr Duration kGlance = 50ms;
/// An agent has two connections.
constexpr std::uint64_t kFilesForEach = 2;
constexpr std::uint64_t kFilesForAll = 64;

std::size_t longest_name(const plan::Plan& plan) {
  std::size_t width = 0;
  for (const auto& process : plan.processes) width = std::max(width, plan.name_of(process).size());
  return width;
}

}  // namespace

Leader::Leader(const plan::Plan& plan, bool share, std::unique_ptr<AgentLauncher> gathering,
               const session::Caller& caller, const supervise::GuardianLink& guardian)
    : plan_(plan),
      share_(share),
      launcher_(std::move(gathering)),
      caller_(caller),
      guardian_(guardian),
      token_(launcher_->token()) {
  if (token_.empty()) token_ = launch::new_token();
  for (const auto& host : launcher_->nodes()) agents_.push_back({.host = host});
  for (auto node = plan_.node.count; node < plan_.all_nodes(); ++node)
    agents_.push_back({.host = plan_.name_of_borrowed(node), .lost = "no node has joined in its place yet"});
}

Leader::~Leader() {
  wait_for_adrift();
  admission_.reset();  // agents that connect now are for the next attempt
  if (!led_by_another_ && !concluded_) send_all(message::Bye{});
  // An agent that has not connected yet can only be stopped through its starter.
  for (const auto& [node, joining] : joining_)
    if (joining.starter >= 0 && !agents_[node].joins) ::kill(joining.starter, SIGTERM);
  auto running = starters_again_;
  running.insert(starters_.begin(), starters_.end());
  const auto is_awaited = [](const Agent& agent) { return !agent.has_connected() && agent.lost.empty(); };
  if (std::ranges::any_of(own(), is_awaited)) {
    for (const auto starter : starters_) ::kill(starter, SIGTERM);
  }
  const bool all =
      starters_again_.empty() &&
      (left_ || std::ranges::all_of(own(), [](const Agent& agent) { return agent.lost.empty(); }));
  give_back_all();
  if (starter_ < 0 && !led_by_another_) wait_for_agents_to_exit();
  const auto begin = std::chrono::steady_clock::now();
  while (!running.empty()) {
    std::erase_if(running, [&](pid_t pid) {
      int status = 0;
      if (::waitpid(pid, &status, WNOHANG) != 0) return true;
      const auto patience = starters_.contains(pid) && !all ? kToLeaveTheOthers : kToLeave;
      if (std::chrono::steady_clock::now() - begin > patience) ::kill(pid, SIGKILL);
      return false;
    });
    if (!running.empty()) std::this_thread::sleep_for(1ms);
  }
}

/// For a run that was taken over: no program here exits with its agents.
void Leader::wait_for_agents_to_exit() {
  const auto deadline = std::chrono::steady_clock::now() + kToLeave;
  const auto gone = [](const Agent& agent) { return !agent.takes_part(); };
  while (!std::ranges::all_of(agents_, gone) && std::chrono::steady_clock::now() < deadline)
    run_loop_briefly();
}

// --- until all nodes are bound ---

void Leader::begin(const launch::RunPaths& paths) {
  paths_ = paths;
  if (!caller_.console.quiet) terminal_ = std::make_unique<supervise::RunTerminal>();
}

std::optional<session::AttemptHost::Refused> Leader::bind(const launch::RunPaths& paths) {
  begin(paths);
  const sys::CutShort cut([this] { return session::Interrupts::received() != 0 || !guardian_.alive(); });
  if (auto refused = open_reception()) return refused;
  if (auto refused = start_agents()) return refused;
  return introduce();
}

std::optional<session::AttemptHost::Refused> Leader::open_reception() {
  // Another leader could take the run over, and then all connect to it.
  const auto relayed = taken_over_ || plan::outlives_leader(plan_) ? 0 : launcher_->relayed();
  if (const auto wanted = kFilesForAll + kFilesForEach * (agents_.size() - relayed),
      most = sys::permit_many_files();
      most < wanted) {
    return refuse(fmt::format("{} need {} open files, but this process may have only {} (ulimit -Hn)",
                              text::count(agents_.size(), "node"), wanted, most));
  }
  const auto fingerprint = launch::fingerprint(plan_);
  if (!fingerprint) return refuse(fingerprint.error().first_message());
  const launch::Assignment assignment{paths_, share_, !caller_.console.quiet,
                                      caller_.console.result_paint.on(), longest_name(plan_)};
  auto admission = AdmissionServer::open(
      loop_, {launcher_->port(), launcher_->address()},
      {token_, *fingerprint, static_cast<std::uint32_t>(agents_.size()), assignment},
      {[this](AdmissionServer::AdmittedAgent agent_connection) { admit(std::move(agent_connection)); },
       [this](const std::string& why) {
         if (!admission_) return;
         if (std::ranges::find(rejected_, why) != rejected_.end()) return;
         rejected_.push_back(why);
         caller_.console.say(fmt::format("nlaunch: {}\n", why));
       },
       [this](const std::string& why) {
         if (taken_over_)
           return caller_.console.say(fmt::format("nlaunch: {}\n", why));  // other agents may fit
         misfit_ = why;
         if (waiting_) loop_.stop();
       }});
  if (!admission) return refuse(admission.error().first_message());
  admission_ = std::move(*admission);
  return std::nullopt;
}

std::optional<session::AttemptHost::Refused> Leader::start_agents() {
  if (const auto why = launcher_->unfit(); !why.empty()) return refuse(why, exit_code::preflight_refused);
  const auto starts = launcher_->start(paths_, admission_->port(), token_);
  if (!starts) return refuse(starts.error().first_message());
  for (const auto& start : *starts) {
    const auto pid = start_program(start);
    if (!pid) return refuse(pid.error().first_message());
    if (starters_.empty()) starter_ = *pid;
    starters_.insert(*pid);
    loop_.on_child(*pid, [this, pid = *pid](sys::WaitStatus status) { starter_ended(pid, status); });
  }
  kill_wait_ = launcher_->kill_wait();  // while they start
  if (wait_for([this] { return all_met(); }, launcher_->patience())) return std::nullopt;
  return refuse_unmet();
}

/// Its output goes to the log of the agents' starter.
Result<pid_t> Leader::start_program(const AgentLauncher::Start& start) {
  const auto log = paths_.attempt / launcher_->log();
  const sys::UniqueFd out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  sys::SpawnRequest request;
  request.argv = start.argv;
  request.env = start.env;
  request.out = request.err = out.get();
  request.die_with_parent = !plan::outlives_leader(plan_);  // what it has started would be killed with it
  return sys::spawn(request);
}

bool Leader::all_met() const {
  return std::ranges::all_of(own(), [](const Agent& agent) { return agent.has_connected(); });
}

/// Tells every node where all nodes are, and has it bind itself.
std::optional<session::AttemptHost::Refused> Leader::introduce() {
  name_nodes();
  const std::string file = "nodes.json";  // in one file: separate messages would be nodes times nodes
  if (const auto written = sys::write_file_atomically(paths_.attempt / file, launch::nodes_text(directory()));
      !written) {
    return refuse(written.error().first_message());
  }
  if (const auto why = distribute(file)) return refuse(*why);
  send_all(message::Bind{});
  const auto answered = [](const Agent& agent) { return agent.bound || agent.refused; };
  if (!wait_for([&] { return std::ranges::all_of(own(), answered); }, kToBind)) return refuse(trouble());
  if (auto refused = refused_by_nodes()) return refused;
  collect_files();
  const auto& first = *agents_.front().bound;
  bound_.dropped = first.dropped;
  lock_ = first.lock;
  for (const auto& agent : own()) {
    launch::add_libraries(lock_, agent.host, agent.bound->libraries);
    for (const auto& note : agent.bound->notes) {
      const auto text = agent.host + ": " + note;
      if (std::ranges::find(bound_.notes, text) == bound_.notes.end()) bound_.notes.push_back(text);
    }
  }
  return std::nullopt;
}

std::optional<session::AttemptHost::Refused> Leader::refused_by_nodes() const {
  std::vector<preflight::Suspect> suspects;
  std::optional<Refused> first;
  for (const auto& agent : agents_) {
    if (!agent.refused) continue;
    const auto& [exit_code, sentence, text] = *agent.refused;
    suspects.push_back({agent.host, sentence});
    if (first) continue;
    caller_.console.say(fmt::format("on {}:\n{}", agent.host, text));
    first = not_bound(exit_code, fmt::format("{}: {}", agent.host, sentence));
  }
  // If every node refuses, the plan is at fault, not a node.
  if (first && suspects.size() < own().size()) first->suspects = std::move(suspects);
  return first;
}

// --- the processes ---

supervise::Outcome Leader::supervise(unsigned attempt, supervise::EventLog& events) {
  const auto logs = supervise::attempt_folder(paths_.folder, attempt) / "logs";
  supervise::Supervisor supervisor(
      loop_, {.plan = plan_,
              .attempt = attempt,
              .logs = logs,
              .hosts = hosts(),
              .events = events,
              .guardian = guardian_,
              .messages = terminal_ ? &terminal_->messages() : nullptr,
              .output = terminal_ ? &terminal_->output() : nullptr,
              .judge = session::judge_of(plan_),
              .address_of = [this](const plan::Process& process) { return address_of(process); },
              .distribute =
                  [this](const std::string& file) {
                    if (const auto why = distribute(file)) tell_trouble(*why);
                  },
              .rebinder = {[this](const auto& rebinding, auto done) { prepare(rebinding, std::move(done)); },
                           [this] { adopt(); }},
              .goes_on = taken_over_});
  tell_ = [&](const supervise::ProcessEvent& process_event) { supervisor.on(process_event); };
  supervise::RemoteBackend backend(
      loop_, plan_, supervisor.rules(),
      {.hosts = hosts(),
       .send = [this](std::uint32_t node,
                      const supervise::NodeCommand& command) { send(node, as_message(command)); },
       .tell = tell_,
       .recover = [this](std::uint32_t node) { recover(node); },
       .release = [this](std::uint32_t node) { release(node); },
       .for_the_end =
           supervise::RemoteBackend::kForTheEnd + (launcher_->relayed() > 0 ? kToComeBack : Duration())});
  supervised_since_ = std::chrono::steady_clock::now();
  send_all(message::Supervise{kill_wait_});
  backend_ = &backend;
  for (std::uint32_t node = 0; node < agents_.size(); ++node) {
    if (!agents_[node].lost.empty()) loop_.post([this, node] { backend_->lose(node, agents_[node].lost); });
  }
  std::optional<session::StatusLines> status;
  if (terminal_) status.emplace(paths_.folder, *terminal_, caller_.console);
  auto outcome = supervisor.run(backend);
  if (terminal_ && launcher_->relayed() > 0) run_loop_briefly();  // the last output passes through relays
  status.reset();
  backend_ = nullptr;
  if (preparing_) loop_.cancel(preparing_->timer);
  preparing_.reset();  // nobody waits for it any more
  terminal_.reset();
  return outcome;
}

// --- messages ---

void Leader::admit(AdmissionServer::AdmittedAgent arrived) {
  const auto node = arrived.node;
  auto& agent = agents_[node];
  if (arrived.output) {
    arrived.output->set({.line =
                             [this](std::string_view text) {
                               if (terminal_) terminal_->output().write(std::string(text) + "\n", 1);
                             },
                         .closed = {}});
    agent.output = std::move(arrived.output);
    return;
  }
  if (agent.relayed && agent.lost.empty() && arrived.hello.received &&
      agent.hello.agent == arrived.hello.agent)
    return resume(std::move(arrived));
  if (begins_again(arrived)) return start_over(std::move(arrived));
  const bool is_second = backend_ == nullptr && agent.has_connected() && !taken_over_;
  if (arrived.hello.received && !is_second)
    return dismiss(std::move(arrived));  // it is lost, or this is another leader
  if (joining_.contains(node) && !agent.joins && !preparing_) return begin_join(std::move(arrived));
  if (backend_ != nullptr) return dismiss(std::move(arrived));
  // Its job started when there was no leader: what it would replace is not known here.
  const auto job = jobs_.find(node);
  if (plan_.is_borrowed(node) &&
      (job == jobs_.end() || job->second.host != arrived.hello.host || agent.has_connected()))
    return dismiss(std::move(arrived));
  if (agent.has_connected() && taken_over_) return dismiss(std::move(arrived));
  if (agent.has_connected()) {
    misfit_ = fmt::format("{} and {} both claim to be node {}", arrived.hello.host, agent.hello.host, node);
  } else {
    set_channel(node, std::move(arrived));
  }
  if (waiting_) loop_.stop();
}

/// The run continues without this agent, which had lost its connection. If another agent has its place, or is
/// about to get it, that one stays. Its own processes end with it.
void Leader::dismiss(AdmissionServer::AdmittedAgent arrived) {
  const bool has_the_place = agents_[arrived.node].hello.agent == arrived.hello.agent;
  if (has_the_place) lose(arrived.node, "its agent lost the connection");
  const auto bye = encode(message::Bye{exit_code::internal});
  if (arrived.relay)
    return agents_[*arrived.relay].channel->send(addressed({Address::To::node, arrived.node}, bye));
  arrived.channel->send(bye);
  loop_.after(kToLeave, [gone = std::shared_ptr<SealedChannel>(std::move(arrived.channel))] {});
}

void Leader::set_channel(std::uint32_t node, AdmissionServer::AdmittedAgent arrived) {
  auto& agent = agents_[node];
  agent.hello = std::move(arrived.hello);
  drop_relayed(node);
  if (arrived.relay)
    agent.relayed = {.relay = arrived.relay};
  else
    take_channel(node, std::move(arrived.channel));
}

void Leader::take_channel(std::uint32_t node, std::unique_ptr<SealedChannel> channel) {
  channel->set(
      {.message = [this, node](std::string_view text) { on_text(node, text); },
       .closed = [this, node](const std::string& why) { lose(node, "the connection to its agent " + why); }});
  agents_[node].channel = std::move(channel);
}

void Leader::on_message(std::uint32_t node, std::string_view line) {
  auto message = decode(line);
  if (!message) {
    return lose(node, fmt::format("its agent sent an invalid message: {}", message.error().first_message()));
  }
  if (auto& relayed = agents_[node].relayed;
      relayed && is_counted(*message) && relayed->conversation.receive())
    carry(node, encode(message::Confirm{relayed->conversation.received()}), true);
  std::visit(
      [this, node]<class What>(What& what) {
        if constexpr (requires { on(node, std::move(what)); }) {
          on(node, std::move(what));
        } else {
          lose(node, "its agent sent a message that only a leader may send");
        }
      },
      *message);
}

void Leader::on(std::uint32_t node, message::Bound bound) {
  agents_[node].bound = std::move(bound);
  answered(node);
}

void Leader::on(std::uint32_t node, message::NotBound refused) {
  agents_[node].refused = std::move(refused);
  answered(node);
}

void Leader::on(std::uint32_t node, preflight::Findings findings) {
  agents_[node].findings = std::move(findings);
  answered(node);
}

void Leader::on(std::uint32_t node, const message::Settled& /*settled*/) {
  agents_[node].settled = true;
  check_if_done();
}

void Leader::on(std::uint32_t /*node*/, const message::ProbeNews& probe) {
  if (probes_ != nullptr) probes_->on_news(probe.run, probe.news);
}

void Leader::on(std::uint32_t node, supervise::ProcessEvent process_event) {
  if (backend_ != nullptr) return backend_->on_event(node, std::move(process_event));
  const auto* signal = std::get_if<supervise::process_event::Signal>(&process_event.what);
  if (signal == nullptr || signal->signal != SIGTERM) return;
  // Slurm ends the job: an agent may notice before we do, and exits.
  if (all_met()) {
    ::raise(SIGTERM);
  } else {
    step_terminated_ = true;
  }
  if (waiting_) loop_.stop();
}

void Leader::on(std::uint32_t node, supervise::BackendEnd end) {
  if (backend_ != nullptr) backend_->on_end(node, std::move(end));
}

void Leader::on(std::uint32_t node, const message::Audit& audit) {
  audit_.json[agents_[node].host] = audit.json;
  audit_.findings += audit.findings;
  for (const auto& line : audit.lines) audit_.lines.push_back(agents_[node].host + ": " + line);
}

void Leader::on(std::uint32_t node, const message::Lost& lost) {
  lose(node, lost.why);
}

void Leader::answered(std::uint32_t node) {
  if (agents_[node].joins) return continue_join(node);
  check_if_done();
}

void Leader::check_if_done() {
  if (waiting_ && waiting_()) loop_.stop();
}

void Leader::lose(std::uint32_t node, const std::string& why) {
  auto& agent = agents_[node];
  if (!agent.lost.empty()) return;
  if (agent.joins) return join_failed(node, why);
  agent.lost = why;
  lose_relay(node);
  stop_preparing(node);
  if (backend_ != nullptr) backend_->lose(node, why);
  if (probes_ != nullptr) probes_->lose(node, why);
  if (waiting_) loop_.stop();
}

/// The agents may still be there for a while: they are told to stop their processes.
void Leader::starter_ended(pid_t pid, sys::WaitStatus status) {
  starters_.erase(pid);
  if (backend_ != nullptr && pid != starter_) return;  // connections report what was lost with it
  starter_end_ = status;
  if (backend_ != nullptr)
    tell_({{},
           supervise::process_event::Abort{launcher_->starter() + " " + status.str(), status.shell_code()}});
  if (waiting_) loop_.stop();
}

bool Leader::wait_for(const std::function<bool()>& done, Duration limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const auto hopeless = [&] {
    return starter_end_ || step_terminated_ || !misfit_.empty() || session::Interrupts::received() != 0 ||
           !guardian_.alive() || std::chrono::steady_clock::now() > deadline ||
           std::ranges::any_of(own(), [](const Agent& agent) { return !agent.lost.empty(); });
  };
  waiting_ = done;
  while (!done() && !hopeless()) run_loop_briefly();
  waiting_ = nullptr;
  return done();
}

void Leader::run_loop_briefly() {
  const auto timer = loop_.after(kGlance, [this] { loop_.stop(); });
  loop_.run();
  loop_.cancel(timer);
}

}  // namespace nlaunch::fleet
