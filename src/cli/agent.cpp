#include "cli/agent.h"

#include <arpa/inet.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <thread>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/bind.h"
#include "launch/provenance.h"
#include "plan/bound_json.h"
#include "plan/json.h"
#include "preflight/remote_probes.h"
#include "supervise/wire.h"
#include "sys/addresses.h"
#include "sys/command.h"
#include "sys/files.h"
#include "sys/proc.h"
#include "sys/spawn.h"

namespace nlaunch::cli {
namespace {

using nlohmann::json;

/// srun ends the step as soon as one task ends badly, and what that one wrote last is lost then, now and
/// again.
constexpr Duration kForLastWords = std::chrono::milliseconds(300);
constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
constexpr Duration kToConnect = std::chrono::minutes(2);
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

/// A plain connection for what the processes write; the terminal's thread writes to it.
sys::UniqueFd connect_output(const std::string& address, std::uint16_t port) {
  sys::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, address.c_str(), &to.sin_addr);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) fd.reset();
  return fd;
}

}  // namespace

Agent::Agent(launch::Step step, plan::Plan plan, std::uint32_t node, const Context& context,
             const supervise::GuardianLink& guardian)
    : step_(std::move(step)),
      plan_(std::move(plan)),
      index_(node),
      host_(launch::node_name(context.environment)),
      context_(context),
      guardian_(guardian),
      parent_(parent_of(guardian.guardian())),
      machine_(launch::find_install()) {}

Agent::~Agent() {
  std::error_code ignored;
  if (!node_.scratch.empty()) std::filesystem::remove_all(node_.scratch, ignored);
}

int Agent::run() {
  listen();
  connecting_ = std::make_unique<sys::Connecting>(
      loop_, step_.addresses, step_.port, kToConnect,
      [this](auto channel, const auto& why) { connected(std::move(channel), why); });
  loop_.run();
  return exit_code_;
}

void Agent::connected(std::unique_ptr<sys::Channel> channel, const std::string& why) {
  if (!channel) {
    say(fmt::format("nlaunch agent on {}: error: nlaunch cannot be reached at port {} of {}: {}\n", host_,
                    step_.port, text::join(step_.addresses, ", "), why));
    return leave(exit_code::internal);
  }
  channel_ = std::move(channel);
  channel_->set({.line = [this](std::string_view line) { hear(line); },
                 .closed = [this] { forsaken("the connection to nlaunch has ended"); }});
  const auto address = address_for(plan_, *channel_);
  if (auto claimed = launch::claim_ports(plan_, index_, ports_); !claimed || !address) {
    say(fmt::format("nlaunch agent on {}: {}", host_, render(address ? claimed.error() : address.error())));
    return leave(exit_code::bad_input);
  }
  channel_->send(json_text(json{{"token", step_.token},
                                {"node", index_},
                                {"host", host_},
                                {"address", *address},
                                {"ports", launch::ports_of(plan_, index_)}}));
}

void Agent::hear(std::string_view line) {
  const auto message = json::parse(line, nullptr, false);
  if (!message.is_object()) return forsaken("nlaunch said what cannot be read");
  if (message.contains("bind")) return bind(message["bind"]);
  if (message.contains("look")) return look();
  if (message.contains("probes")) return probe(message);
  if (message.contains("supervise")) return supervise(message["supervise"]);
  if (message.contains("do") && crew_) return crew_->perform(supervise::action_from(message));
  if (message.contains("ending") && crew_) return crew_->ending();
  if (message.contains("finish") && crew_) return finish(message["finish"]);
  if (message.contains("bye")) return leave(exit_code::ok);
}

void Agent::answer(json message) {
  channel_->send(json_text(json{{"answer", std::move(message)}}));
}

// --- what is asked for ---

void Agent::bind(const std::string& nodes_file) {
  // Nobody says anything before the answer, unless it is not wanted any more.
  const sys::CutShort cut([this] { return channel_->waiting() || !guardian_.alive(); });
  const auto nodes = sys::read_regular_file(nodes_file, kLargestFile);
  if (!nodes) return refuse(exit_code::bad_input, nodes.error());
  launch::Directory directory;
  std::vector<json> ports;
  for (const auto& node : json::parse(*nodes)) {
    directory.push_back({node.at("host"), node.at("address")});
    ports.push_back(node.at("ports"));
  }
  launch::take_ports(plan_, ports);
  const auto machine = machine_.get_for(plan_);
  if (!machine) return refuse(exit_code::internal, machine.error());
  auto node = launch::bind_node(
      {plan_, index_, step_.paths, *machine, machine_.install(), context_.environment}, directory);
  if (!node) return refuse(exit_code::bad_input, node.error());
  node_ = std::move(*node);
  if (!step_.share) {
    auto locks = launch::GpuLocks::take(plan_, node_, step_.paths.folder.string());
    if (!locks) return refuse(exit_code::bad_input, locks.error());
    locks_ = std::move(*locks);
  }
  const auto saved =
      sys::write_file_atomically(step_.paths.attempt / fmt::format("bound.{}.json", node_.host),
                                 json_text(plan::to_json(plan_, node_), 2) + "\n");
  if (!saved) return refuse(exit_code::internal, saved.error());
  // The variables of our own step, and the GPUs that it was given, are nobody's loss.
  std::erase_if(node_.dropped, [](const std::string& name) {
    return name.starts_with("SLURM_") || name == "CUDA_VISIBLE_DEVICES";
  });
  json said{{"notes", node_.notes}, {"dropped", node_.dropped}, {"libraries", launch::libraries_of(node_)}};
  if (index_ == 0) said["lock"] = launch::provenance(plan_, node_);
  answer(std::move(said));
}

void Agent::refuse(int exit_code, const Diagnostics& why) {
  answer({{"refused", exit_code}, {"sentence", why.items().front().message}, {"text", render(why)}});
}

void Agent::look() {
  preflight::Look look{plan_, node_, step_.paths.attempt.string(), machine_.install().probe};
  if (const auto machine = machine_.get_for(plan_)) look.facts = machine->facts;
  findings_ = preflight::look(look);
  answer(preflight::to_json(findings_));
}

void Agent::probe(const json& message) {
  const auto& what = message["probes"];
  if (what == "start") {
    probes_ = std::make_unique<preflight::LocalProbes>(
        loop_, preflight::LocalProbes::Options{node_, findings_.ranks, message.at("first"),
                                               message.at("folder"), machine_.install().probe});
    probes_->start(
        [this](const preflight::ProbeNews& news) { channel_->send(json_text(preflight::to_message(news))); });
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
  auditor_ = std::make_unique<Auditor>(plan_, node_, machine_.install().probe);
  supervise::LocalCrew::Options options{node_,
                                        step_.paths.attempt / "logs",
                                        terminal_.get(),
                                        step_.color ? Color::always : Color::never,
                                        step_.name_width,
                                        auditor_->hooks()};
  crew_ = std::make_unique<supervise::LocalCrew>(
      loop_, rules_, std::move(options), [this](const supervise::Notice& notice) {
        if (const auto* started = std::get_if<supervise::notice::Started>(&notice.what))
          running_.insert(started->process);
        if (const auto* ended = std::get_if<supervise::notice::Ended>(&notice.what))
          running_.erase(ended->process);
        if (!forsaken_) channel_->send(json_text(supervise::to_message(notice)));
        if (forsaken_ && running_.empty()) loop_.post([this] { leave(exit_code::internal); });
      });
}

void Agent::open_output() {
  if (!step_.output) return;
  output_ = connect_output(channel_->peer_address(), step_.port);
  if (!output_) return;
  sys::write_all(output_.get(),
                 json_text(json{{"token", step_.token}, {"node", index_}, {"output", true}}) + "\n");
  terminal_ = std::make_unique<supervise::Terminal>(output_.get());
}

void Agent::finish(const json& of) {
  std::optional<supervise::ProcessIndex> wanted;
  if (!of.is_null()) wanted = of.get<supervise::ProcessIndex>();
  crew_->finish(wanted, [this](const supervise::CrewEnd& end) {
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
  for (const int signal : kSignals) loop_.on_signal(signal, [this, signal] { told_to_stop(signal); });
  if (const int guardian = guardian_.fd(); guardian >= 0) {
    loop_.watch(guardian, [this, guardian] {
      loop_.unwatch(guardian);
      if (crew_) crew_->perform(supervise::action::KillAll{});
      leave(exit_code::internal);
    });
  }
}

/// Slurm says TERM to every task of a job that it ends, and KILL some time after. Who decides hears of it,
/// and what he does not stop in time is killed before.
void Agent::told_to_stop(int signal) {
  const bool orphan = parent_of(guardian_.guardian()) != parent_;
  if (orphan) return forsaken("its slurmstepd is gone");
  const supervise::Notice notice{{}, supervise::notice::Signal{signal}};
  if (channel_) channel_->send(json_text(supervise::to_message(notice)));
  const bool ends = signal != SIGUSR1 && signal != SIGUSR2;
  if (!crew_ || forsaken_) return ends ? leave(128 + signal) : void();
  const auto rule = plan_.signals.find(signal);
  const bool stops = rule == plan_.signals.end() || rule->second.action == SignalRule::Action::stop;
  if (signal != SIGTERM || !stops) return;
  loop_.after(longest_grace_, [this] { crew_->perform(supervise::action::KillAll{}); });
}

/// Nobody decides any more: the node is ended as a run is that was told to stop.
void Agent::forsaken(const std::string& why) {
  if (std::exchange(forsaken_, true)) return;
  say(fmt::format("nlaunch agent on {}: {}; ending what runs here\n", host_, why));
  if (channel_) channel_->send(json_text(json{{"lost", why}}));  // who decides may still be there
  if (!crew_ || running_.empty()) return leave(exit_code::internal);
  stop_all();
}

void Agent::stop_all() {
  Duration longest{};
  for (const auto process : running_) {
    const auto& stop = rules_.processes[process].stop;
    crew_->perform(supervise::action::SignalGroup{process, stop.signal});
    longest = std::max(longest, stop.grace);
  }
  loop_.after(std::min(longest, longest_grace_), [this] {
    crew_->perform(supervise::action::KillAll{});
    leave(exit_code::internal);
  });
}

void Agent::leave(int exit_code) {
  exit_code_ = exit_code;
  loop_.stop();
}

// --- the subcommand ---

namespace {

int agent(const std::string& step_file, const Context& context) {
  // When slurmstepd is killed, nobody else says so.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const auto host = launch::node_name(context.environment);
  const auto complain_here = [&](const Diagnostics& why) {
    say(fmt::format(
        "nlaunch agent on {}: error: {}; the run directory must be on a file system that all nodes "
        "share (--runs-dir)\n",
        host, why.items().front().message));
    std::this_thread::sleep_for(kForLastWords);
    return exit_code::bad_input;
  };
  auto step = launch::read_step(step_file);
  if (!step) return complain_here(step.error());
  const auto text = sys::read_regular_file(step->plan, kLargestFile);
  if (!text) return complain_here(text.error());
  auto plan = plan::from_json(*text, step->plan);
  if (!plan) return complain_here(plan.error());
  const auto id = sys::env_value(context.environment, "SLURM_NODEID");
  std::uint32_t node = 0;
  std::from_chars(id.data(), id.data() + id.size(), node);
  if (id.empty() || node >= plan->node.count) {
    say(fmt::format(
        "nlaunch agent on {}: error: SLURM_NODEID='{}' is no node of the plan: srun starts agents\n", host,
        text::printable(id)));
    return exit_code::usage;
  }
  const auto guardian = supervise::enter_guarded([&](const supervise::SupervisorLost& lost) {
    say(fmt::format("nlaunch agent on {}: its supervisor {}; {} killed\n", host, lost.status.str(),
                    text::count(lost.swept.killed.size(), "process")));
  });
  return Agent(std::move(*step), std::move(*plan), node, context, guardian).run();
}

}  // namespace

void add_agent(CLI::App& app, Context& context) {
  auto step = std::make_shared<std::string>();
  auto* command = app.add_subcommand("agent", "On a node of an allocation: what `nlaunch run` starts there");
  command->group("");  // not for people
  command->add_option("--step", *step, "step.json of the attempt")->required();
  command->callback([step, &context] { context.run = [step, &context] { return agent(*step, context); }; });
}

}  // namespace nlaunch::cli
