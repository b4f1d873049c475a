#include "fleet/agent.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/bind.h"
#include "launch/handshake.h"
#include "launch/provenance.h"
#include "plan/bound_json.h"
#include "plan/json.h"
#include "preflight/ask/remote_probes.h"
#include "preflight/clocks.h"
#include "session/check.h"
#include "session/run_evidence.h"
#include "supervise/wire.h"
#include "sys/addresses.h"
#include "sys/command.h"
#include "sys/files.h"
#include "sys/proc.h"
#include "sys/spawn.h"

namespace nlaunch::fleet {
namespace {

using nlohmann::json;

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
constexpr std::uint64_t kLargestFile = 1U << 30U;
/// What is left of Slurm's KillWait when the last are killed here: to say how it ended.
constexpr Duration kToTell = std::chrono::seconds(3);

pid_t parent_of(pid_t pid) {
  const auto info = sys::process_info(pid);
  return info ? info->parent : 0;
}

/// By which the other nodes reach this one: on the site's interface, else the way that led to this
/// connection.
Result<std::string> address_for(const plan::Plan& plan, const sys::Channel& channel) {
  if (plan.node.interface.empty()) return channel.own_address();
  std::vector<std::string> seen;
  for (const auto& one : sys::ipv4_addresses()) {
    if (one.interface.starts_with(plan.node.interface)) return one.address;
    seen.push_back(fmt::format("{} {}", one.interface, one.address));
  }
  return failure("launch.interface",
                 "no interface here begins with '{}' (node.nics.interface of site '{}'): there are {}",
                 plan.node.interface, plan.site, text::join(seen, ", "));
}

}  // namespace

Agent::Agent(Options options, plan::Plan plan, const session::Caller& caller,
             const supervise::GuardianLink& guardian)
    : options_(std::move(options)),
      plan_(std::move(plan)),
      index_(options_.way.node),
      caller_(caller),
      guardian_(guardian),
      parent_(parent_of(guardian.guardian())),
      machine_(launch::find_install()) {}

Agent::~Agent() {
  if (!node_.scratch.empty()) launch::remove_scratch(node_.scratch);
}

int Agent::run() {
  listen();
  auto fingerprint = launch::fingerprint(plan_);
  auto claimed = launch::claim_ports(plan_, index_, ports_);
  for (const auto* bad :
       {fingerprint ? nullptr : &fingerprint.error(), claimed ? nullptr : &claimed.error()}) {
    if (bad == nullptr) continue;
    give_up(bad->items().front().message);
    return exit_code::bad_input;
  }
  options_.way.plan = *fingerprint;
  connection_ = std::make_unique<LeaderConnection>(
      loop_, options_.way, [this](const sys::Channel& channel) { return introduce(channel); },
      [this](LeaderConnection::End end) { admit(std::move(end)); });
  loop_.run();
  return exit_code_;
}

void Agent::give_up(const std::string& why) {
  caller_.console.say(fmt::format("nlaunch agent on {}: error: {}\n", options_.host, why));
}

json Agent::introduce(const sys::Channel& channel) {
  const auto address = address_for(plan_, channel);
  if (!address) {
    give_up(address.error().items().front().message);
    leave(exit_code::bad_input);
  }
  return {
      {"host", options_.host}, {"address", address.value_or("")}, {"ports", launch::ports_of(plan_, index_)}};
}

void Agent::admit(LeaderConnection::End end) {
  if (exit_code_ != 0) return;  // it has left already
  if (!end.channel) {
    give_up(end.why);
    return leave(end.refused ? exit_code::bad_input : exit_code::internal);
  }
  channel_ = std::move(end.channel);
  assignment_ = launch::assignment_from(end.assignment);
  guardian_.announce(launch::scratch_of(plan_, index_, assignment_.paths.id));  // see enter_agent
  if (const auto why = make_folders()) {
    give_up(*why);
    return leave(exit_code::bad_input);
  }
  channel_->set({.line = [this](std::string_view line) { hear(line); },
                 .closed = [this] { on_leader_lost("the connection to nlaunch has ended"); }});
}

void Agent::hear(std::string_view line) {
  const auto message = parse_json(line);
  if (!message.is_object()) return on_leader_lost("nlaunch said what cannot be read");
  if (message.contains("keep")) return keep(message);
  if (message.contains("bind")) return bind();
  if (message.contains("clock")) return channel_->send(json_text(preflight::ClockExchange::answer(message)));
  if (message.contains("look")) return look(level_of(message["look"].get<std::string>()));
  if (message.contains("probes")) return probe(message);
  if (message.contains("supervise")) return supervise(message["supervise"]);
  if (message.contains("do") && backend_) return backend_->perform(supervise::action_from(message));
  if (message.contains("ending") && backend_) return backend_->ending();
  if (message.contains("finish") && backend_) return finish(message["finish"]);
  if (message.contains("settle")) return answer(true);
  if (!message.contains("bye")) return;
  again_ = message["bye"].is_null();
  leave(again_ ? exit_code::ok : message["bye"].get<int>());
}

void Agent::answer(json message) {
  channel_->send(json_text(json{{"answer", std::move(message)}}));
}

// --- what is asked for ---

void Agent::bind() {
  // Nobody says anything before the answer, unless it is not wanted any more.
  const sys::CutShort cut([this] { return channel_->waiting() || !guardian_.alive(); });
  const auto nodes = sys::read_regular_file(assignment_.paths.attempt / "nodes.json", kLargestFile);
  if (!nodes) return refuse(exit_code::bad_input, nodes.error());
  launch::NodeAddresses directory;
  std::vector<json> ports;
  for (const auto& node : parse_json_or_throw(*nodes)) {
    directory.push_back({node.at("host"), node.at("address")});
    ports.push_back(node.at("ports"));
  }
  address_ = directory.at(index_).address;
  launch::take_ports(plan_, ports);
  const auto machine = machine_.get_for(plan_);
  if (!machine) return refuse(exit_code::internal, machine.error());
  auto node = launch::bind_node({plan_, index_, assignment_.paths, *machine, machine_.install(),
                                 caller_.environment, launch::claim_ras_ports(plan_, index_, ports_)},
                                directory);
  if (!node) return refuse(exit_code::bad_input, node.error());
  node_ = std::move(*node);
  if (!assignment_.share) {
    auto locks = launch::GpuLocks::take(plan_, node_, assignment_.paths.folder.string());
    if (!locks) return refuse(exit_code::bad_input, locks.error());
    locks_ = std::move(*locks);
  }
  const auto saved =
      sys::write_file_atomically(assignment_.paths.attempt / fmt::format("bound.{}.json", node_.host),
                                 json_text(plan::to_json(plan_, node_), 2) + "\n");
  if (!saved) return refuse(exit_code::internal, saved.error());
  // The variables of our own step, and the GPUs that it was given, are nobody's loss.
  std::erase_if(node_.dropped, [](const std::string& name) {
    return name.starts_with("SLURM_") || name.starts_with("NLAUNCH_") || name == "CUDA_VISIBLE_DEVICES";
  });
  json said{{"notes", node_.notes}, {"dropped", node_.dropped}, {"libraries", launch::libraries_of(node_)}};
  if (index_ == 0) said["lock"] = launch::provenance(plan_, node_);
  if (!options_.runs.empty()) said["files"] = files_for_all();
  answer(std::move(said));
}

void Agent::refuse(int exit_code, const Diagnostics& why) {
  answer({{"refused", exit_code}, {"sentence", why.items().front().message}, {"text", render(why)}});
}

void Agent::look(PreflightLevel level) {
  preflight::Look look{plan_, node_, assignment_.paths.attempt.string(), machine_.install().probe, level};
  if (const auto machine = machine_.get_for(plan_)) look.facts = machine->facts;
  look.address = address_;
  findings_ = preflight::look(look);
  answer(preflight::to_json(findings_));
}

void Agent::probe(const json& message) {
  const auto& what = message["probes"];
  if (what == "start") {
    probes_ = std::make_unique<preflight::LocalProbes>(
        loop_,
        preflight::LocalProbes::Options{node_, findings_.ranks, message.at("first"), message.at("folder"),
                                        machine_.install().probe, message.at("wanted")});
    probes_->start([this, run = message.at("run").get<unsigned>()](const preflight::ProbeNews& news) {
      channel_->send(json_text(preflight::to_message(news, run)));
    });
  } else if (probes_ && what == "say") {
    probes_->say(message.at("rank"), message.at("line"));
  } else if (probes_ && what == "kill") {
    probes_->kill();
  }
}

void Agent::supervise(const json& message) {
  const Duration kill_wait(message.at("kill_wait_ms").get<Duration::rep>());
  longest_grace_ = kill_wait - std::min(kToTell, kill_wait / 2);
  open_output();
  rules_ = supervise::rules_of(plan_);
  auditor_ = std::make_unique<session::Auditor>(plan_, node_, machine_.install().probe);
  auto hooks = auditor_->hooks();
  session::install_evidence_hooks(hooks, plan_, node_, machine_.install(), assignment_.paths.attempt);
  supervise::LocalBackend::Options options{node_,
                                           assignment_.paths.attempt / "logs",
                                           terminal_.get(),
                                           assignment_.color ? Color::always : Color::never,
                                           assignment_.name_width,
                                           std::move(hooks),
                                           plan_.watch};
  backend_ = std::make_unique<supervise::LocalBackend>(
      loop_, rules_, std::move(options), [this](const supervise::ProcessEvent& process_event) {
        if (const auto* started = std::get_if<supervise::process_event::Started>(&process_event.what))
          running_.insert(started->process);
        if (const auto* ended = std::get_if<supervise::process_event::Ended>(&process_event.what))
          running_.erase(ended->process);
        if (!leader_lost_) channel_->send(json_text(supervise::to_message(process_event)));
        if (leader_lost_ && running_.empty()) loop_.post([this] { leave(exit_code::internal); });
      });
}

void Agent::open_output() {
  if (!assignment_.output) return;
  output_ = connect_output(channel_->peer_address(), options_.way);
  if (!output_) return;
  terminal_ = std::make_unique<supervise::Terminal>(output_.get());
}

void Agent::finish(const json& of) {
  std::optional<supervise::ProcessIndex> wanted;
  if (!of.is_null()) wanted = of.get<supervise::ProcessIndex>();
  backend_->finish(wanted, [this](const supervise::BackendEnd& end) {
    const auto report = auditor_->report();
    channel_->send(json_text(json{{"audit",
                                   {{"json", launch::to_json(report)},
                                    {"lines", launch::summary(report)},
                                    {"findings", report.findings.size()}}}}));
    terminal_.reset();
    channel_->send(json_text(json{{"end", supervise::to_message(end)}}));
  });
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

/// Slurm says TERM to every task of a job that it ends, and KILL some time after. Who decides hears of it,
/// and what he does not stop in time is killed before.
void Agent::on_stop_signal(int signal) {
  const bool orphan = options_.of_slurm && parent_of(guardian_.guardian()) != parent_;
  if (orphan) return on_leader_lost("its slurmstepd is gone");
  const supervise::ProcessEvent process_event{{}, supervise::process_event::Signal{signal}};
  if (channel_) channel_->send(json_text(supervise::to_message(process_event)));
  const bool ends = signal != SIGUSR1 && signal != SIGUSR2;
  if (!backend_ || leader_lost_) return ends ? leave(128 + signal) : void();
  const auto rule = plan_.signals.find(signal);
  const bool stops = rule == plan_.signals.end() || rule->second.action == SignalRule::Action::stop;
  if (signal != SIGTERM || !stops) return;
  loop_.after(longest_grace_, [this] { backend_->perform(supervise::action::KillAll{}); });
}

/// Nobody decides any more: the node is ended as a run is that was told to stop.
void Agent::on_leader_lost(const std::string& why) {
  if (std::exchange(leader_lost_, true)) return;
  caller_.console.say(fmt::format("nlaunch agent on {}: {}; ending what runs here\n", options_.host, why));
  if (channel_) channel_->send(json_text(json{{"lost", why}}));  // who decides may still be there
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
