#include "cli/fleet_place.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/interrupt.h"
#include "launch/provenance.h"
#include "launch/slurm_job.h"
#include "launch/step.h"
#include "supervise/supervisor.h"
#include "sys/addresses.h"
#include "sys/command.h"
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
/// Each program that a node asks is given half a minute.
constexpr Duration kToLook = 2min;
constexpr Duration kToLeave = 10s;
/// srun waits for the tasks of a node that is lost, whether they are there or not.
constexpr Duration kToLeaveTheOthers = 1s;
constexpr Duration kGlance = 50ms;
constexpr Duration kForLastWords = 2s;
constexpr std::size_t kLastLines = 10;
/// An agent has two connections.
constexpr std::uint64_t kFilesForEach = 2;
constexpr std::uint64_t kFilesForAll = 64;

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

/// What an agent says that ends by itself, because it cannot begin.
bool gives_up(std::string_view line) {
  return line.starts_with("nlaunch agent on ") && line.contains(": error: ");
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
    if (agent.channel && agent.lost.empty()) agent.channel->send(json_text(json{{"bye", true}}));
  }
  if (srun_ < 0 || srun_end_) return;
  const bool all = std::ranges::all_of(agents_, [](const Agent& agent) { return agent.lost.empty(); });
  const auto deadline = std::chrono::steady_clock::now() + (all ? kToLeave : kToLeaveTheOthers);
  int status = 0;
  // Who has not come yet cannot be told.
  if (std::ranges::any_of(agents_, [](const Agent& agent) { return !agent.channel; })) ::kill(srun_, SIGTERM);
  bool told = false;
  while (::waitpid(srun_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline && !std::exchange(told, true)) ::kill(srun_, SIGKILL);
    std::this_thread::sleep_for(5ms);
  }
}

// --- until all nodes are bound ---

std::optional<Place::Refused> FleetPlace::bind(const launch::RunPaths& paths) {
  paths_ = paths;
  const sys::CutShort cut([this] { return Interrupts::received() != 0 || !guardian_.alive(); });
  if (!context_.quiet) terminal_ = std::make_unique<supervise::Terminal>(STDOUT_FILENO);
  if (auto refused = start_step()) return refused;
  return introduce();
}

std::optional<Place::Refused> FleetPlace::start_step() {
  if (const auto wanted = kFilesForAll + kFilesForEach * agents_.size(), most = sys::permit_many_files();
      most < wanted) {
    return refuse(fmt::format("{} need {} open files here, and this process may have {} (ulimit -Hn)",
                              text::count(agents_.size(), "node"), wanted, most));
  }
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
  kill_wait_ = launch::kill_wait(context_.environment);  // while the step starts
  if (wait_for([this] { return all_met(); }, kToMeet)) return std::nullopt;
  return refuse_unmet();
}

/// An agent that cannot begin makes srun end the others. Why it could not comes through srun, a moment later.
Place::Refused FleetPlace::refuse_unmet() {
  bool over = false;
  const auto patience = loop_.after(kForLastWords, [&] {
    over = true;
    loop_.stop();
  });
  waiting_ = [] { return false; };  // an agent that goes, and the end of srun, stop the loop
  while (!srun_end_ && !over && Interrupts::received() == 0 && guardian_.alive()) loop_.run();
  waiting_ = nullptr;
  loop_.cancel(patience);
  const auto log = step_log();
  if (step_told_to_end_ && std::ranges::none_of(text::split(log, '\n'), gives_up)) ::raise(SIGTERM);
  return refuse(trouble());
}

bool FleetPlace::all_met() const {
  return std::ranges::all_of(agents_, [](const Agent& agent) { return agent.channel != nullptr; });
}

/// Everybody hears where everybody is, and binds its node.
std::optional<Place::Refused> FleetPlace::introduce() {
  json nodes = json::array();
  for (const auto& agent : agents_) {
    nodes.push_back(
        {{"host", agent.host}, {"address", agent.hello.at("address")}, {"ports", agent.hello.at("ports")}});
  }
  const auto file = paths_.attempt / "nodes.json";  // to each by itself it would be nodes times nodes
  if (const auto written = sys::write_file_atomically(file, json_text(nodes) + "\n"); !written) {
    return refuse(written.error().items().front().message);
  }
  ask_all({{"bind", file.string()}});
  if (!wait_for([this] { return all_answered(); }, kToBind)) return refuse(trouble());
  if (auto refused = refused_by_nodes()) return refused;
  const auto& first = agents_.front().answer;
  bound_.dropped = first.at("dropped").get<std::vector<std::string>>();
  bound_.lock = first.at("lock");
  for (const auto& agent : agents_) {
    launch::add_libraries(bound_.lock, agent.host, agent.answer.at("libraries"));
    for (const std::string note : agent.answer.at("notes")) {
      const auto text = agent.host + ": " + note;
      if (std::ranges::find(bound_.notes, text) == bound_.notes.end()) bound_.notes.push_back(text);
    }
  }
  return std::nullopt;
}

std::optional<Place::Refused> FleetPlace::refused_by_nodes() const {
  std::vector<preflight::Suspect> suspects;
  std::optional<Refused> first;
  for (const auto& agent : agents_) {
    if (!agent.answer.contains("refused")) continue;
    const std::string sentence = agent.answer.at("sentence");
    suspects.push_back({agent.host, sentence});
    if (first) continue;
    say(fmt::format("on {}:\n{}", agent.host, agent.answer.at("text").get<std::string>()));
    first = {agent.answer.at("refused"), "not-started", fmt::format("{}: {}", agent.host, sentence)};
  }
  // What no node can do is nobody's fault but the plan's.
  if (first && suspects.size() < agents_.size()) first->suspects = std::move(suspects);
  return first;
}

// --- the two great questions ---

preflight::Report FleetPlace::check(PreflightLevel level) {
  const auto begin = std::chrono::steady_clock::now();
  ask_all({{"look", true}});
  const bool all = wait_for([this] { return all_answered(); }, kToLook);
  std::vector<std::string> addresses;
  for (const auto& agent : agents_) addresses.push_back(agent.hello.at("address"));
  preflight::Examination examination{
      .plan = plan_,
      .level = level,
      .folder = paths_.attempt,
      .hosts = options_.nodes,
      .addresses = std::move(addresses),
      .cancelled = [this] { return Interrupts::received() != 0 || !guardian_.alive(); },
      .probes = [this](const auto& ranks, const auto& folder) { return make_probes(ranks, folder); }};
  auto report = all ? preflight::examine(loop_, examination, findings()) : report_of_absent();
  probes_ = nullptr;
  report.level = level;
  report.elapsed = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
  return report;
}

std::vector<preflight::Findings> FleetPlace::findings() const {
  std::vector<preflight::Findings> all;
  for (const auto& agent : agents_) all.push_back(preflight::findings_from_json(agent.answer));
  return all;
}

/// Not every node could look at itself.
preflight::Report FleetPlace::report_of_absent() const {
  preflight::Report report;
  report.cancelled = Interrupts::received() != 0 || !guardian_.alive();
  for (const auto& agent : agents_) {
    if (!agent.answer.is_null()) continue;
    report.rows.push_back(preflight::failed(
        "node", agent.host, agent.lost.empty() ? "did not answer in time" : agent.lost,
        "an agent that answers",
        {"look at the node: `scontrol show node " + agent.host + "`, and at srun.log of the attempt",
         preflight::Who::admin}));
    // Who only waited for others that are gone is not to blame.
    if (!agent.lost.empty()) report.rows.back().hosts = {agent.host};
  }
  report.verdict = preflight::worst(report.rows);
  return report;
}

std::unique_ptr<preflight::Probes> FleetPlace::make_probes(const std::vector<preflight::Rank>& ranks,
                                                           const std::string& folder) {
  std::vector<preflight::RemoteProbes::Node> nodes;
  for (const auto& agent : agents_) {
    nodes.push_back({agent.lost.empty() ? agent.channel.get() : nullptr, agent.lost});
  }
  auto probes = std::make_unique<preflight::RemoteProbes>(loop_, std::move(nodes), ranks, folder);
  probes_ = probes.get();
  return probes;
}

supervise::Outcome FleetPlace::supervise(unsigned attempt, supervise::EventLog& events) {
  const auto logs = supervise::attempt_folder(paths_.folder, attempt) / "logs";
  supervise::Conductor conductor(loop_,
                                 {plan_, attempt, logs, options_.nodes, events, guardian_, terminal_.get()});
  tell_ = [&](const supervise::Notice& notice) { conductor.hear(notice); };
  std::vector<supervise::RemoteCrew::Node> nodes;
  for (const auto& agent : agents_) nodes.push_back({agent.host, agent.channel.get()});
  supervise::RemoteCrew crew(loop_, plan_, conductor.rules(), std::move(nodes), tell_);
  ask_all({{"supervise", {{"kill_wait_ms", kill_wait_.count()}}}});
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
  } else if (message.contains("probe")) {
    if (probes_ != nullptr) probes_->hear(message);
  } else if (crew_ != nullptr) {
    crew_->hear(node, message);
  } else if (message.value("notice", "") == "signal" && message.at("signal") == SIGTERM) {
    // Slurm ends the job: an agent may hear of it before we do, and leaves.
    if (all_met()) {
      ::raise(SIGTERM);
    } else {
      step_told_to_end_ = true;
    }
    if (waiting_) loop_.stop();
  }
}

void FleetPlace::lose(std::uint32_t node, const std::string& why) {
  auto& agent = agents_[node];
  if (!agent.lost.empty()) return;
  agent.lost = why;
  if (crew_ != nullptr) crew_->lose(node, why);
  if (probes_ != nullptr) probes_->lose(node, why);
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
    return srun_end_ || step_told_to_end_ || Interrupts::received() != 0 || !guardian_.alive() ||
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
  const auto text = json_text(message);
  for (auto& agent : agents_) {
    agent.answer = nullptr;
    if (agent.lost.empty()) agent.channel->send(text);
  }
}

bool FleetPlace::all_answered() const {
  return std::ranges::none_of(agents_, [](const Agent& agent) { return agent.answer.is_null(); });
}

// --- what went wrong ---

/// What srun and agents without a connection have said.
std::string FleetPlace::step_log() const {
  constexpr std::uint64_t kLimit = 16U << 20U;
  return sys::read_regular_file(paths_.attempt / "srun.log", kLimit).value_or("");
}

std::string FleetPlace::trouble() const {
  if (!guardian_.alive()) return "nlaunch was killed before anything was started";
  const auto log = step_log();
  auto lines = text::split(text::trim(log), '\n');
  // Who gave up by itself comes before those whom srun ended for it.
  const auto gave_up = std::ranges::find_if(lines, gives_up);
  if (gave_up != lines.end()) return text::printable(*gave_up);
  std::vector<std::string> missing;
  for (const auto& agent : agents_) {
    if (!agent.lost.empty()) return fmt::format("node {}: {}", agent.host, agent.lost);
    if (!agent.channel) missing.push_back(agent.host);
  }
  if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
  const auto said = text::printable(text::join(lines, "; "));
  if (srun_end_) return fmt::format("srun {}{}{}", srun_end_->str(), said.empty() ? "" : ": ", said);
  if (!missing.empty()) {
    return fmt::format("no agent came from {} within {}{}{}", text::join(missing, ", "),
                       format_duration(kToMeet), said.empty() ? "" : ": ", said);
  }
  return "the agents did not answer in time";
}

Place::Refused FleetPlace::refuse(const std::string& sentence) const {
  // Who was told to stop hears of that alone.
  if (Interrupts::received() == 0) say(fmt::format("nlaunch: {}\n", sentence));
  return {gives_up(sentence) ? exit_code::bad_input : exit_code::internal, "not-started", sentence};
}

}  // namespace nlaunch::cli
