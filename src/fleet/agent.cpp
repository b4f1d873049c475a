#include "fleet/agent.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "base/exit_code.h"
#include "base/text.h"
#include "launch/job/handshake.h"
#include "launch/run_dir/provenance.h"
#include "plan/json.h"
#include "sys/addresses.h"
#include "sys/command.h"
#include "sys/files.h"
#include "sys/proc.h"
#include "sys/spawn.h"

namespace nlaunch::fleet {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
constexpr std::uint64_t kLargestFile = 1U << 30U;
/// Reserved of Slurm's KillWait when the last processes are killed here: to report how it ended.
constexpr Duration kToTell = std::chrono::seconds(3);
/// While there is no leader: between two checks for a new one.
constexpr Duration kBetweenLooks = std::chrono::seconds(1);
constexpr Duration kToConnectAgain = std::chrono::seconds(3);
/// For an agent that lost its relay: the leader waits for it, and may be slow to answer.
constexpr Duration kToReachLeader = std::chrono::seconds(10);
/// For an agent that relays to accept connections: it is started at the same time as those that need it.
constexpr Duration kForARelay = std::chrono::seconds(10);
/// For the agents below to leave before this one.
constexpr Duration kForAllToLeave = std::chrono::seconds(5);
constexpr Duration kToFlush = std::chrono::milliseconds(500);
/// For each program of a node's modules when it gets another plan.
constexpr Duration kToPrepare = std::chrono::minutes(1);
/// The threads of slurmstepd exit within this time.
constexpr Duration kToShow = std::chrono::milliseconds(100);

pid_t parent_of(pid_t pid) {
  const auto info = sys::process_info(pid);
  return info ? info->parent : 0;
}

/// The address at which the other nodes reach this one: on the site's interface, else the local address of
/// this connection.
Result<std::string> address_for(const plan::Plan& plan, std::uint32_t node, const sys::Channel& channel) {
  const auto& interface = plan.node_of(node).interface;
  if (interface.empty()) return channel.own_address();
  std::vector<std::string> seen;
  for (const auto& one : sys::ipv4_addresses()) {
    if (one.interface.starts_with(interface)) return one.address;
    seen.push_back(fmt::format("{} {}", one.interface, one.address));
  }
  return failure(
      "launch.interface",
      "no network interface here starts with '{}' (node.nics.interface of site '{}'); available: {}",
      interface, plan.site, text::join(seen, ", "));
}

}  // namespace

Agent::Agent(Options options, plan::Plan plan, const session::Caller& caller,
             const supervise::GuardianLink& guardian)
    : options_(std::move(options)),
      index_(options_.way.node),
      caller_(caller),
      guardian_(guardian),
      parent_(parent_of(guardian.guardian())),
      machine_(launch::find_install()),
      worker_(std::move(plan), {.index = index_, .environment = caller.environment, .machine = machine_}) {}

int Agent::run() {
  listen();
  const auto fingerprint = launch::fingerprint(worker_.plan());
  const auto claimed = worker_.claim_ports();
  for (const auto* bad :
       {fingerprint ? nullptr : &fingerprint.error(), claimed ? nullptr : &claimed.error()}) {
    if (bad == nullptr) continue;
    give_up(bad->first_message());
    return exit_code::bad_input;
  }
  options_.way.plan = *fingerprint;
  connect();
  loop_.run();
  return exit_code_;
}

/// To the nearest relay, else to the leader.
LeaderConnection::Options Agent::way() const {
  auto way = options_.way;
  if (options_.relays.empty()) return way;
  const auto& relay = options_.relays.front();
  way.addresses = {relay.host};
  way.port = relay.port;
  way.limit = std::min(way.limit, kForARelay);
  return way;
}

void Agent::connect() {
  connection_ = std::make_unique<LeaderConnection>(
      loop_, way(), [this](const sys::Channel& channel) { return introduce(channel); },
      [this](LeaderConnection::End end) { arrive(std::move(end)); });
}

void Agent::arrive(LeaderConnection::End end) {
  if (exit_code_ != 0) return;  // it has already left
  if (end.channel || options_.relays.empty())
    return returns_because_.empty() ? admit(std::move(end)) : come_back(std::move(end));
  options_.relays.erase(options_.relays.begin());
  if (!returns_because_.empty() && options_.relays.empty()) options_.way.limit = kToReachLeader;
  loop_.post([this] { connect(); });  // not from within this call by the connection
}

void Agent::give_up(const std::string& why) {
  caller_.console.say(fmt::format("nlaunch agent on {}: error: {}\n", options_.host, why));
}

message::Hello Agent::introduce(const sys::Channel& channel) {
  const auto address = address_for(worker_.plan(), index_, channel);
  if (!address) {
    give_up(address.error().first_message());
    leave(exit_code::bad_input);
  }
  message::Hello hello{
      .host = options_.host, .address = address.value_or(""), .ports = worker_.ports(), .agent = id_};
  if (!returns_because_.empty()) hello.received = conversation_->received();
  return hello;
}

void Agent::admit(LeaderConnection::End end) {
  if (!end.channel) {
    give_up(end.why);
    return leave(end.refused ? exit_code::bad_input : exit_code::internal);
  }
  channel_ = std::move(end.channel);
  assignment_ = std::move(end.assignment);
  guardian_.announce(launch::scratch_of(worker_.plan(), index_, assignment_.paths.id));  // see enter_agent
  if (const auto why = make_folders()) {
    give_up(*why);
    return leave(exit_code::bad_input);
  }
  if (!options_.relays.empty()) conversation_.emplace();
  open_relay();
  listen_to_leader();
}

/// Agents that cannot connect to it connect to the next one above.
void Agent::open_relay() {
  if (options_.relay_port == 0) return;
  auto relay = Relay::open(loop_, {.port = options_.relay_port},
                           {options_.way.token, options_.way.plan, worker_.plan().all_nodes(), assignment_},
                           {.up = [this](const std::string& text) { channel_->queue(text); },
                            .output =
                                [this](std::string_view line) {
                                  if (terminal_) terminal_->write(std::string(line) + "\n", 1);
                                },
                            .empty =
                                [this] {
                                  if (leaves_with_) leave(*leaves_with_);
                                }});
  if (relay)
    relay_ = std::move(*relay);
  else
    caller_.console.say(fmt::format("nlaunch agent on {}: it cannot relay for other nodes: {}\n",
                                    options_.host, relay.error().first_message()));
}

void Agent::listen_to_leader() {
  channel_->set(
      {.message = [this](std::string_view text) { on_text(text); },
       .closed = [this](const std::string& why) { on_connection_lost("the connection to nlaunch " + why); }});
}

void Agent::on_text(std::string_view text) {
  const auto read = read_address(text);
  if (!read) return on_message(text);  // which says what is wrong with it
  const auto to = read->address.to;
  if (to != Address::To::peer && relay_) relay_->down(read->address, read->text);
  told_all_ = to == Address::To::all;
  if (to == Address::To::peer || told_all_) on_message(read->text);
}

void Agent::on_message(std::string_view line) {
  const auto message = decode(line);
  if (!message) {
    return on_leader_lost(
        fmt::format("nlaunch sent an invalid message: {}", message.error().first_message()));
  }
  const bool may_be_late =
      std::holds_alternative<message::Resume>(*message) || std::holds_alternative<message::Bye>(*message);
  if (!returns_because_.empty() && !may_be_late) return;  // it is sent again
  if (conversation_ && is_counted(*message) && conversation_->receive())
    send(message::Confirm{conversation_->received()});
  // All others may take long, and what has happened should be known meanwhile.
  if (!std::holds_alternative<supervise::node_command::Perform>(*message)) channel_->flush();
  std::visit(
      [this](const auto& what) {
        if constexpr (requires { on(what); }) {
          on(what);
        } else {
          on_leader_lost("nlaunch sent a message that only an agent may send");
        }
      },
      *message);
}

void Agent::send(const Message& message) {
  const bool is_one_of_many = std::holds_alternative<supervise::ProcessEvent>(message) ||
                              std::holds_alternative<message::Confirm>(message);
  const auto text = std::make_shared<const std::string>(encode(message));
  if (conversation_ && is_counted(message)) conversation_->sent(text);
  if (!returns_because_.empty()) return;  // until the leader resumes the conversation
  is_one_of_many ? channel_->queue(*text) : channel_->send(*text);
}

void Agent::on(const message::Confirm& confirm) {
  if (conversation_ && !conversation_->confirmed(confirm.count))
    on_leader_lost("nlaunch confirmed messages that were not sent");
}

/// Continues over this connection: the leader has received this much, and sends what is missing here.
void Agent::on(const message::Resume& resume) {
  if (returns_because_.empty()) return on_leader_lost("nlaunch resumed what was not interrupted");
  returns_because_.clear();
  if (!conversation_->confirmed(resume.received))
    return on_leader_lost("nlaunch resumed from messages that were not sent");
  for (const auto& text : conversation_->unconfirmed()) channel_->queue(*text);
  if (options_.relays.empty()) conversation_.reset();
  open_relay();
  if (terminal_) open_output();
}

// --- what is asked for ---

void Agent::on(const message::Bind& /*bind*/) {
  if (backend_) {
    const auto why =
        failure("fleet.continues", "its agent still runs processes that the leader has given up");
    return refuse({exit_code::internal, why.error()});
  }
  // The leader sends nothing before the answer unless it no longer wants it, nor to the agents below.
  const sys::CutShort cut([this] { return channel_->connection().waiting() || !guardian_.alive(); });
  const auto nodes = sys::read_regular_file(assignment_.paths.attempt / "nodes.json", kLargestFile);
  if (!nodes) return refuse({exit_code::bad_input, nodes.error()});
  const auto directory = launch::read_nodes(*nodes);
  if (!directory) return refuse({exit_code::bad_input, directory.error()});
  if (const auto refused = worker_.bind(assignment_.paths, *directory, assignment_.share))
    return refuse(*refused);
  address_ = directory->at(index_).address;
  // The variables of our own step, and the GPUs that it was given, need not be reported as dropped.
  auto dropped = worker_.node().dropped;
  std::erase_if(dropped, [](const std::string& name) {
    return name.starts_with("SLURM_") || name.starts_with("NLAUNCH_") || name == "CUDA_VISIBLE_DEVICES";
  });
  const auto& node = worker_.node();
  message::Bound bound{node.notes, std::move(dropped), launch::libraries_of(node), {}, {}};
  if (index_ == 0) bound.lock = launch::provenance(worker_.plan(), node);
  if (!options_.runs.empty()) bound.files = files_for_all();
  send(bound);
}

void Agent::refuse(const session::NodeWorker::Refused& refused) {
  send(message::NotBound{refused.exit_code, refused.why.first_message(), render(refused.why)});
}

void Agent::on(const preflight::ClockQuestion& question) {
  send(preflight::ClockExchange::answer(question));
}

void Agent::on(const message::Look& look) {
  auto request = worker_.preflight_request();
  request.options.level = look.level;
  request.address = address_;
  findings_ = preflight::look(request);
  send(findings_);
}

void Agent::on(const preflight::probe_command::Start& start) {
  probes_ = std::make_unique<preflight::LocalProbes>(
      loop_, preflight::LocalProbes::Options{worker_.node(), findings_.ranks, start.first, start.folder,
                                             machine_.install().probe, start.wanted});
  probes_->start([this, run = start.run](const preflight::ProbeNews& news) {
    send(message::ProbeNews{run, news});
  });
}

void Agent::on(const preflight::probe_command::Say& say) {
  if (probes_) probes_->say(say.rank, say.line);
}

void Agent::on(const preflight::probe_command::Kill& /*kill*/) {
  if (probes_) probes_->kill();
}

void Agent::on(const message::Supervise& supervise) {
  const auto kill_wait = supervise.kill_wait;
  longest_grace_ = kill_wait - std::min(kToTell, kill_wait / 2);
  open_output();
  if (backend_) return backend_->replay_events();  // what the previous leader had started
  rules_ = supervise::rules_of(worker_.plan());
  supervise::LocalBackend::Options options{
      worker_.node(),         assignment_.paths.attempt / "logs",
      terminal_.get(),        assignment_.color ? Color::always : Color::never,
      assignment_.name_width, worker_.begin_audit(),
      worker_.plan().watch,   worker_.plan().checkpoint ? worker_.plan().checkpoint->saved : ""};
  backend_ = std::make_unique<supervise::LocalBackend>(
      loop_, rules_, std::move(options), [this](const supervise::ProcessEvent& process_event) {
        if (const auto* started = std::get_if<supervise::process_event::Started>(&process_event.what))
          running_.insert(started->process);
        if (const auto* ended = std::get_if<supervise::process_event::Ended>(&process_event.what))
          running_.erase(ended->process);
        if (!leader_lost_ && !alone_) send(process_event);
        if (leader_lost_ && running_.empty()) loop_.post([this] { leave(exit_code::internal); });
      });
}

void Agent::open_output() {
  if (!assignment_.output) return;
  output_ = connect_output(channel_->connection().peer_address(), way());
  if (!output_) return;
  if (terminal_)
    terminal_->reopen(output_.get());
  else
    terminal_ = std::make_unique<supervise::Terminal>(output_.get());
}

void Agent::on(const supervise::node_command::Perform& perform) {
  if (backend_) backend_->perform(perform.action);
}

void Agent::on(const supervise::node_command::Ending& /*ending*/) {
  ending_ = true;
  if (backend_) backend_->ending();
}

void Agent::on(const supervise::node_command::Finish& finish) {
  if (!backend_) return;
  backend_->finish(finish.of, [this](const supervise::BackendEnd& end) {
    const auto report = worker_.audit();
    send(message::Audit{launch::to_json(report), launch::summary(report), report.findings.size()});
    if (terminal_) terminal_->flush(kToFlush);
    if (!relay_) terminal_.reset();
    send(end);
  });
}

void Agent::on(const message::Prepare& prepare) {
  prepared_.clear();
  const auto refuse = [&](const Diagnostics& why) {
    send(message::Prepared{prepare.file, why.first_message()});
  };
  if (prepare.file.contains('/'))
    return refuse(failure("fleet.update", "it does not name a plan file").error());
  const auto text = sys::read_regular_file(assignment_.paths.attempt / prepare.file, kLargestFile);
  if (!text) return refuse(text.error());
  auto plan = plan::from_json(*text, prepare.file);
  if (!plan) return refuse(plan.error());
  const auto nodes = sys::read_regular_file(assignment_.paths.attempt / "nodes.json", kLargestFile);
  if (!nodes) return refuse(nodes.error());
  const auto directory = launch::read_nodes(*nodes);
  if (!directory) return refuse(directory.error());
  const auto fingerprint = launch::fingerprint(*plan);
  if (!fingerprint) return refuse(fingerprint.error());
  // Nothing else is done here meanwhile.
  const sys::CutShort cut([this, begin = std::chrono::steady_clock::now()] {
    return !guardian_.alive() || std::chrono::steady_clock::now() > begin + kToPrepare;
  });
  if (const auto refused = worker_.prepare(std::move(*plan), *directory, prepare.roles))
    return refuse(refused->why);
  prepared_ = *fingerprint;
  send(message::Prepared{prepare.file, ""});
}

void Agent::on(const message::Adopt& /*adopt*/) {
  if (prepared_.empty()) return;
  worker_.adopt();
  options_.way.plan = std::exchange(prepared_, "");
  if (relay_) relay_->expect(options_.way.plan);
}

void Agent::on(const message::Settle& /*settle*/) {
  send(message::Settled{});
}

void Agent::on(const message::Bye& bye) {
  channel_->set({});  // what follows in the same line is not for an agent that leaves
  again_ = !bye.exit_code;
  leave_after_all(bye.exit_code.value_or(exit_code::ok));
}

/// The agents below were told, too: they leave first, or the end of this one's connections could overtake the
/// message.
void Agent::leave_after_all(int exit_code) {
  if (!relay_ || relay_->is_empty() || !told_all_) return leave(exit_code);
  leaves_with_ = exit_code;
  loop_.after(kForAllToLeave, [this, exit_code] { leave(exit_code); });
}

// --- when things go wrong ---

void Agent::listen() {
  for (const int signal : kSignals) loop_.on_signal(signal, [this, signal] { on_stop_signal(signal); });
  if (const int guardian = guardian_.fd(); guardian >= 0) {
    loop_.watch(guardian, [this, guardian] {
      loop_.unwatch(guardian);
      if (backend_) backend_->perform(supervise::action::KillAll{});
      leave(exit_code::internal);
    });
  }
}

/// A SIGTERM also arrives when slurmstepd is killed, at the exit of its first thread: the new parent shows
/// only when all of its threads are gone.
void Agent::on_stop_signal(int signal) {
  if (signal != SIGTERM || !options_.of_slurm) return take_stop_signal(signal);
  loop_.after(kToShow, [this, signal] { take_stop_signal(signal); });
}

/// Slurm sends TERM to every task of a job that it ends, and KILL some time later. The leader is told, and
/// what it does not stop in time is killed before that.
void Agent::take_stop_signal(int signal) {
  const bool orphan = options_.of_slurm && parent_of(guardian_.guardian()) != parent_;
  if (orphan) return on_leader_lost("its slurmstepd is gone");
  const bool ends = signal != SIGUSR1 && signal != SIGUSR2;
  // The job of a borrowed node ends, but the run does not.
  if (worker_.plan().is_borrowed(index_)) {
    if (!ends) return;
    return on_leader_lost(fmt::format("its job received {}", sys::signal_name(signal)));
  }
  const supervise::ProcessEvent process_event{{}, supervise::process_event::Signal{signal}};
  if (channel_) send(process_event);
  if (alone_ && ends) return on_leader_lost(fmt::format("received {}", sys::signal_name(signal)));
  if (!backend_ || leader_lost_) return ends ? leave(128 + signal) : void();
  const auto& rules = worker_.plan().signals;
  const auto rule = rules.find(signal);
  const bool stops = rule == rules.end() || rule->second.action == SignalRule::Action::stop;
  if (signal != SIGTERM || !stops) return;
  loop_.after(longest_grace_, [this] { backend_->perform(supervise::action::KillAll{}); });
}

/// If nlaunch has exited or cannot be reached, the processes here keep running for a while, until another
/// leader takes over. If only the relay is lost, there is another way.
void Agent::on_connection_lost(const std::string& why) {
  if (conversation_ && !leader_lost_) return lose_relay(why);
  relay_.reset();  // whoever is connected through it looks for another way
  const auto& grace = worker_.plan().leader_grace;
  const bool may_go_on =
      backend_ && !ending_ && !leader_lost_ && grace > Duration() && !options_.step.empty();
  if (!may_go_on) return on_leader_lost(why);
  if (std::exchange(alone_, true)) return;
  caller_.console.say(
      fmt::format("nlaunch agent on {}: {}; processes here keep running for up to {} without it\n",
                  options_.host, why, format_duration(grace)));
  patience_ = loop_.after(grace, [this, grace] {
    patience_.reset();
    on_leader_lost(fmt::format("no nlaunch took over the run within {}", format_duration(grace)));
  });
  look_for_leader();
}

/// The leader may still be there, and waits for this agent.
void Agent::lose_relay(const std::string& why) {
  relay_.reset();
  const auto through = options_.relays.empty() ? "" : ", through " + options_.relays.front().host;
  caller_.console.say(
      fmt::format("nlaunch agent on {}: {}{}; connecting another way\n", options_.host, why, through));
  if (!options_.relays.empty()) options_.relays.erase(options_.relays.begin());
  options_.way.limit = options_.relays.empty() ? kToReachLeader : kToConnectAgain;
  returns_because_ = why;
  connect();
}

void Agent::come_back(LeaderConnection::End end) {
  if (end.channel) {
    channel_ = std::move(end.channel);
    return listen_to_leader();
  }
  conversation_.reset();
  on_connection_lost(std::exchange(returns_because_, ""));
}

void Agent::look_for_leader() {
  loop_.after(kBetweenLooks, [this] {
    if (!alone_ || leader_lost_) return;
    // The lost leader may still be there, and then says that this node has been given up.
    if (auto step = launch::read_step(options_.step)) {
      options_.way.addresses = std::move(step->addresses);
      options_.way.port = step->port;
    }
    options_.way.limit = kToConnectAgain;
    connection_ = std::make_unique<LeaderConnection>(
        loop_, options_.way, [this](const sys::Channel& channel) { return introduce(channel); },
        [this](LeaderConnection::End end) { follow(std::move(end)); });
  });
}

void Agent::follow(LeaderConnection::End end) {
  if (leader_lost_) return;
  if (end.refused) return on_leader_lost(end.why);
  if (!end.channel) return look_for_leader();
  channel_ = std::move(end.channel);
  assignment_ = std::move(end.assignment);
  alone_ = false;
  if (patience_) loop_.cancel(*patience_);
  patience_.reset();
  caller_.console.say(fmt::format("nlaunch agent on {}: another nlaunch now leads the run\n", options_.host));
  listen_to_leader();
}

/// There is no leader any more, or it has lost the node: stops the processes here as on a stop of the run.
void Agent::on_leader_lost(const std::string& why) {
  if (std::exchange(leader_lost_, true)) return;
  alone_ = false;
  caller_.console.say(
      fmt::format("nlaunch agent on {}: {}; stopping the processes here\n", options_.host, why));
  if (channel_) send(message::Lost{why});  // the leader may still be there
  relay_.reset();                          // whoever is connected through it connects another way
  if (!options_.runs.empty()) write_own_summary(why);
  if (!backend_ || running_.empty()) return leave(exit_code::internal);
  stop_all();
}

void Agent::stop_all() {
  Duration longest{};
  for (const auto process : running_) {
    const auto& stop = rules_.processes[process].stop;
    backend_->perform(supervise::action::SignalGroup{process, stop.signal});
    longest = std::max(longest, stop.grace);
  }
  loop_.after(std::min(longest, longest_grace_), [this] {
    backend_->perform(supervise::action::KillAll{});
    leave(exit_code::internal);
  });
}

void Agent::leave(int exit_code) {
  exit_code_ = exit_code;
  loop_.stop();
}

}  // namespace nlaunch::fleet
