#include "session/local_target.h"

#include "launch/run_dir/provenance.h"
#include "session/interrupts.h"
#include "session/run_evidence.h"
#include "session/status_lines.h"
#include "supervise/run_attempt.h"
#include "sys/command.h"

namespace nlaunch::session {

LocalHost::LocalHost(const plan::Plan& plan, bool share, const Caller& caller, launch::MachineSource& machine,
                     const supervise::GuardianLink& guardian)
    : share_(share),
      caller_(caller),
      guardian_(guardian),
      worker_(plan, {.environment = caller.environment, .machine = machine}) {}

/// Before the processes are started, nothing else watches the guardian.
bool LocalHost::cancelled() const {
  return Interrupts::received() != 0 || !guardian_.alive();
}

std::optional<AttemptHost::Refused> LocalHost::bind(const launch::RunPaths& paths) {
  paths_ = paths;
  const sys::CutShort cut([this] { return cancelled(); });
  if (const auto refused = worker_.bind_alone(paths, share_)) {
    // After a stop, only the stop is reported.
    if (Interrupts::received() == 0) caller_.console.error(refused->why);
    return not_bound(refused->exit_code, refused->why.first_message());
  }
  const auto& node = worker_.node();
  bound_ = {node.notes, node.dropped};
  return std::nullopt;
}

supervise::Json LocalHost::lock() const {
  return launch::provenance(worker_.plan(), worker_.node());
}

preflight::Request LocalHost::request(const preflight::Options& options) const {
  auto request = worker_.preflight_request();
  request.options = options;
  request.cancelled = [this] { return cancelled(); };
  return request;
}

preflight::Report LocalHost::check(const preflight::Options& options) {
  return preflight::run(request(options));
}

Result<std::vector<preflight::Rank>> LocalHost::ranks() {
  ranks_ = preflight::look(request({.level = PreflightLevel::quick})).ranks;
  return ranks_;
}

preflight::Measured LocalHost::measure(std::vector<preflight::GroupTrial> trials,
                                       const preflight::Deadlines& deadlines) {
  auto asked = request({});
  asked.deadlines = deadlines;
  return preflight::measure(asked, ranks_, std::move(trials));
}

supervise::Outcome LocalHost::supervise(unsigned attempt, supervise::EventLog& events) {
  const auto color = caller_.console.result_paint.on() ? Color::always : Color::never;
  const auto here = launch::one_machine(worker_.node().host).front().address;
  std::optional<supervise::RunTerminal> terminal;
  std::optional<StatusLines> status;
  if (!caller_.console.quiet) {
    terminal.emplace();
    status.emplace(paths_.folder, *terminal, caller_.console);
  }
  return supervise::run_attempt(
      {.plan = worker_.plan(),
       .node = worker_.node(),
       .run_folder = paths_.folder,
       .number = attempt,
       .events = events,
       .guardian = guardian_,
       .terminal = terminal ? &*terminal : nullptr,
       .color = color,
       .hooks = worker_.begin_audit(),
       .judge = judge_of(worker_.plan()),
       .address_of =
           [here](const plan::Process& process) { return fmt::format("{}:{}", here, process.ports.front()); },
       .rebinder = {[this](const auto& rebinding, const auto& done) { done(prepare(rebinding)); },
                    [this] { worker_.adopt(); }}});
}

/// Why it is not possible; empty: it is.
std::string LocalHost::prepare(const supervise::Rebinding& rebinding) {
  auto nodes = launch::one_machine(worker_.node().host);
  nodes.front().ports = worker_.ports();
  const auto refused = worker_.prepare(rebinding.after, nodes, rebinding.roles);
  return refused ? refused->why.first_message() : "";
}

AttemptHost::Audit LocalHost::audit() {
  // It may start a role's Python and take seconds.
  const auto report = worker_.audit();
  return {launch::summary(report), report.findings.size(), launch::to_json(report)};
}

std::string LocalHost::mask(const std::string& text) const {
  return worker_.node().masker.mask(text);
}

}  // namespace nlaunch::session
