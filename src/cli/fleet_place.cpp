#include "cli/fleet_place.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "base/exit_code.h"
#include "base/text.h"
#include "cli/interrupt.h"
#include "launch/step.h"
#include "supervise/stop_signal.h"
#include "supervise/supervisor.h"
#include "sys/addresses.h"
#include "sys/files.h"
#include "sys/spawn.h"

namespace nlaunch::cli {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

/// A large step may take this long to start, and a shared file system to show a file.
constexpr Duration kToMeet = 2min;
/// Modules, secrets and libraries on a slow file system.
constexpr Duration kToBind = 5min;
/// Beyond the preflight's own deadlines.
constexpr Duration kToCheck = 30min;
constexpr Duration kToLeave = 10s;
constexpr Duration kGlance = 50ms;
constexpr std::size_t kLastLines = 10;

/// Likely ones first: those on the site's interface, loopback last.
std::vector<std::string> own_addresses(const std::string& interface) {
  auto all = sys::ipv4_addresses();
  std::ranges::stable_partition(all, [&](const sys::InterfaceAddress& one) {
    return !interface.empty() && one.interface.starts_with(interface);
  });
  std::vector<std::string> addresses;
  for (const auto& one : all) addresses.push_back(one.address);
  return addresses;
}

std::size_t longest_name(const plan::Plan& plan) {
  std::size_t width = 0;
  for (const auto& process : plan.processes) width = std::max(width, plan.name_of(process).size());
  return width;
}

}  // namespace

FleetPlace::FleetPlace(const plan::Plan& plan, Options options, const Context& context,
                       const launch::Allocation& allocation, const supervise::GuardianLink& guardian)
    : plan_(plan),
      options_(std::move(options)),
      context_(context),
      allocation_(allocation),
      guardian_(guardian),
      token_(launch::new_token()) {
  for (const auto& host : options_.nodes)
    agents_.push_back({.host = host, .channel = {}, .output = {}, .hello = {}, .answer = {}, .lost = {}});
}

FleetPlace::~FleetPlace() {
  for (auto& agent : agents_) {
    if (agent.channel && agent.lost.empty()) agent.channel->send(json{{"bye", true}}.dump());
  }
  if (srun_ < 0 || srun_end_) return;
  const auto deadline = std::chrono::steady_clock::now() + kToLeave;
  int status = 0;
  bool told = false;
  while (::waitpid(srun_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline && !std::exchange(told, true)) ::kill(srun_, SIGKILL);
    std::this_thread::sleep_for(5ms);
  }
}

// --- until all nodes are bound ---

std::optional<Place::Refused> FleetPlace::bind(const launch::RunPaths& paths) {
  paths_ = paths;
  const Interrupts interrupts;
  if (!context_.quiet) terminal_ = std::make_unique<supervise::Terminal>(STDOUT_FILENO);
  if (auto refused = start_step()) return refused;
  return introduce();
}

std::optional<Place::Refused> FleetPlace::start_step() {
  auto listener = sys::Listener::open(loop_, [this](auto channel) { accept(std::move(channel)); });
  if (!listener) return refuse(listener.error().items().front().message);
  listener_ = std::move(*listener);
  const auto step_file = paths_.attempt / "step.json";
  const launch::Step step{(paths_.folder / "plan.json").string(),
                          paths_,
                          own_addresses(plan_.node.interface),
                          listener_->port(),
                          token_,
                          options_.share,
                          !context_.quiet,
                          context_.out().on(),
                          longest_name(plan_)};
  if (const auto written = launch::write_step(step, step_file); !written) {
    return refuse(written.error().items().front().message);
  }
  const auto log = paths_.attempt / "srun.log";
  const sys::UniqueFd out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  sys::SpawnRequest request;
  request.argv = launch::srun_command(
      plan_, allocation_, options_.nodes,
      {(sys::executable_folder() / "nlaunch").string(), "agent", "--step", step_file.string()});
  request.env = launch::srun_environment(context_.environment);
  request.out = request.err = out.get();
  const auto pid = sys::spawn(request);
  if (!pid) return refuse(pid.error().items().front().message);
  srun_ = *pid;
  loop_.on_child(srun_, [this](sys::WaitStatus status) { step_ended(status); });
  const auto met = [this] {
    return std::ranges::all_of(agents_, [](const Agent& agent) { return agent.channel != nullptr; });
  };
  if (wait_for(met, kToMeet)) return std::nullopt;
  return refuse(trouble());
}

/// Everybody hears where everybody is, and binds its node.
std::optional<Place::Refused> FleetPlace::introduce() {
  json directory = json::array();
  json ports = json::array();
  for (const auto& agent : agents_) {
    directory.push_back({{"host", agent.host}, {"address", agent.hello.at("address")}});
    ports.push_back(agent.hello.at("ports"));
  }
  ask_all({{"bind", {{"directory", std::move(directory)}, {"ports", std::move(ports)}}}});
  if (!wait_for([this] { return all_answered(); }, kToBind)) return refuse(trouble());
  for (const auto& agent : agents_) {
    if (!agent.answer.contains("refused")) continue;
    say(fmt::format("on {}:\n{}", agent.host, agent.answer.at("text").get<std::string>()));
    return Refused{agent.answer.at("refused"), "not-started",
                   fmt::format("{}: {}", agent.host, agent.answer.at("sentence").get<std::string>())};
  }
  const auto& first = agents_.front().answer;
  bound_.dropped = first.at("dropped").get<std::vector<std::string>>();
  bound_.lock = first.at("lock");
  for (const auto& agent : agents_) {
    for (const std::string note : agent.answer.at("notes")) {
      const auto text = agent.host + ": " + note;
      if (std::ranges::find(bound_.notes, text) == bound_.notes.end()) bound_.notes.push_back(text);
    }
  }
  return std::nullopt;
}

// --- the two great questions ---

preflight::Report FleetPlace::check(PreflightLevel level) {
  const auto begin = std::chrono::steady_clock::now();
  ask_all({{"check", name_of(level)}});
  const bool all = wait_for([this] { return all_answered(); }, kToCheck);
  preflight::Report report;
  report.level = level;
  for (const auto& agent : agents_) {
    if (!agent.answer.contains("report")) {
      report.rows.push_back(preflight::failed(
          "node", agent.host, agent.lost.empty() ? "did not finish its checks" : agent.lost,
          "an agent that answers",
          {"look at the node: `scontrol show node " + agent.host + "`, and at srun.log of the attempt",
           preflight::Who::admin}));
      continue;
    }
    const auto own = preflight::report_from_json(agent.answer.at("report"));
    for (auto row : own.rows) {
      row.subject = agent.host + ": " + row.subject;
      report.rows.push_back(std::move(row));
    }
    for (auto one : own.measurements) {
      one.group = agent.host + ": " + one.group;
      report.measurements.push_back(std::move(one));
    }
    report.cancelled = report.cancelled || own.cancelled;
  }
  report.cancelled = report.cancelled || !all;
  report.verdict = preflight::worst(report.rows);
  report.elapsed = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
  return report;
}

supervise::Outcome FleetPlace::supervise(unsigned attempt, supervise::EventLog& events) {
  const auto logs = supervise::attempt_folder(paths_.folder, attempt) / "logs";
  supervise::Conductor conductor(loop_,
                                 {plan_, attempt, logs, options_.nodes, events, guardian_, terminal_.get()});
  tell_ = [&](const supervise::Notice& notice) { conductor.hear(notice); };
  std::vector<supervise::RemoteCrew::Node> nodes;
  for (const auto& agent : agents_) nodes.push_back({agent.host, agent.channel.get()});
  supervise::RemoteCrew crew(loop_, plan_, conductor.rules(), std::move(nodes), tell_);
  ask_all({{"supervise", true}});
  crew_ = &crew;
  for (std::uint32_t node = 0; node < agents_.size(); ++node) {
    if (!agents_[node].lost.empty()) loop_.post([this, node] { crew_->lose(node, agents_[node].lost); });
  }
  auto outcome = conductor.run(crew);
  crew_ = nullptr;
  terminal_.reset();
  return outcome;
}

// --- messages ---

void FleetPlace::accept(std::unique_ptr<sys::Channel> channel) {
  auto* key = channel.get();
  channel->set({.line = [this, key](std::string_view line) { hear_stranger(key, line); },
                .closed = [this, key] { loop_.post([this, key] { strangers_.erase(key); }); }});
  strangers_[key] = std::move(channel);
}

/// The first line says who it is. Who does not know the token is not answered.
void FleetPlace::hear_stranger(sys::Channel* key, std::string_view line) {
  const auto message = json::parse(line, nullptr, false);
  auto found = strangers_.find(key);
  if (found == strangers_.end()) return;
  const bool ours = message.is_object() && message.value("token", "") == token_ && message.contains("node") &&
                    message["node"].is_number_unsigned() && message["node"] < agents_.size();
  auto channel = std::move(found->second);
  strangers_.erase(found);
  if (!ours) return loop_.post([gone = std::shared_ptr<sys::Channel>(std::move(channel))] {});
  const auto node = message["node"].get<std::uint32_t>();
  auto& agent = agents_[node];
  if (message.contains("output")) {
    channel->set({.line =
                      [this](std::string_view text) {
                        if (terminal_) terminal_->write(std::string(text) + "\n", 1);
                      },
                  .closed = {}});
    agent.output = std::move(channel);
    return;
  }
  agent.hello = message;
  channel->set({.line = [this, node](std::string_view text) { hear(node, text); },
                .closed = [this, node] { lose(node, "the connection to its agent has ended"); }});
  agent.channel = std::move(channel);
  if (waiting_ && waiting_()) loop_.stop();
}

void FleetPlace::hear(std::uint32_t node, std::string_view line) {
  auto message = json::parse(line, nullptr, false);
  if (!message.is_object()) return lose(node, "its agent said what cannot be read");
  if (message.contains("audit")) {
    const auto& audit = message["audit"];
    audit_.json[agents_[node].host] = audit.at("json");
    audit_.findings += audit.at("findings").get<std::size_t>();
    for (const std::string text : audit.at("lines")) audit_.lines.push_back(agents_[node].host + ": " + text);
  } else if (message.contains("lost")) {
    lose(node, message["lost"].get<std::string>());
  } else if (message.contains("answer")) {
    agents_[node].answer = std::move(message["answer"]);
    if (waiting_ && waiting_()) loop_.stop();
  } else if (crew_ != nullptr) {
    crew_->hear(node, message);
  }
}

void FleetPlace::lose(std::uint32_t node, const std::string& why) {
  auto& agent = agents_[node];
  if (!agent.lost.empty()) return;
  agent.lost = why;
  if (crew_ != nullptr) crew_->lose(node, why);
  if (waiting_) loop_.stop();
}

/// The agents may still be there for a while: they are told to end what they have.
void FleetPlace::step_ended(sys::WaitStatus status) {
  srun_end_ = status;
  if (crew_ != nullptr) tell_({{}, supervise::notice::Abort{"srun " + status.str(), status.shell_code()}});
  if (waiting_) loop_.stop();
}

bool FleetPlace::wait_for(const std::function<bool()>& done, Duration limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const auto hopeless = [&] {
    return srun_end_ || Interrupts::received() != 0 || !guardian_.alive() ||
           std::chrono::steady_clock::now() > deadline ||
           std::ranges::any_of(agents_, [](const Agent& agent) { return !agent.lost.empty(); });
  };
  waiting_ = done;
  while (!done() && !hopeless()) {
    const auto timer = loop_.after(kGlance, [this] { loop_.stop(); });
    loop_.run();
    loop_.cancel(timer);
  }
  waiting_ = nullptr;
  return done();
}

void FleetPlace::ask_all(const json& message) {
  const auto text = message.dump();
  for (auto& agent : agents_) {
    agent.answer = nullptr;
    if (agent.lost.empty()) agent.channel->send(text);
  }
}

bool FleetPlace::all_answered() const {
  return std::ranges::none_of(agents_, [](const Agent& agent) { return agent.answer.is_null(); });
}

// --- what went wrong ---

std::string FleetPlace::trouble() const {
  if (const int signal = Interrupts::received(); signal != 0) {
    return fmt::format("stopped by {} before anything was started", supervise::name_of_stop(signal));
  }
  std::vector<std::string> missing;
  for (const auto& agent : agents_) {
    if (!agent.lost.empty()) return fmt::format("node {}: {}", agent.host, agent.lost);
    if (!agent.channel) missing.push_back(agent.host);
  }
  std::string said;
  if (const auto log = sys::read_regular_file(paths_.attempt / "srun.log", 16U << 20U)) {
    auto lines = text::split(text::trim(*log), '\n');
    if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
    said = text::printable(text::join(lines, "; "));
  }
  if (srun_end_) return fmt::format("srun {}{}{}", srun_end_->str(), said.empty() ? "" : ": ", said);
  if (!missing.empty()) {
    return fmt::format("no agent came from {} within {}{}{}", text::join(missing, ", "),
                       format_duration(kToMeet), said.empty() ? "" : ": ", said);
  }
  return "the agents did not answer in time";
}

Place::Refused FleetPlace::refuse(const std::string& sentence) const {
  say(fmt::format("nlaunch: {}\n", sentence));
  if (const int signal = Interrupts::received(); signal != 0)
    return {supervise::exit_code_of_stop(signal), "interrupted", sentence};
  return {exit_code::internal, "not-started", sentence};
}

}  // namespace nlaunch::cli
