#include "session/local_target.h"

#include "base/exit_code.h"
#include "base/json.h"
#include "launch/provenance.h"
#include "plan/bound_json.h"
#include "session/interrupts.h"
#include "session/run_evidence.h"
#include "supervise/run_attempt.h"
#include "sys/command.h"
#include "sys/files.h"

namespace nlaunch::session {

namespace {

/// A disk that is full is no mistake in the experiment.
AttemptHost::Refused not_bound(const Diagnostic& why) {
  const bool disk = why.id == "file.write" || why.id == "file.folder";
  return {
      disk ? exit_code::internal : exit_code::bad_input, disk ? "internal" : "not-started", why.message, {}};
}

}  // namespace

LocalHost::LocalHost(const plan::Plan& plan, bool share, const Caller& caller, launch::MachineSource& machine,
                     const supervise::GuardianLink& guardian)
    : plan_(plan), share_(share), caller_(caller), machine_(machine), guardian_(guardian) {}

LocalHost::~LocalHost() {
  if (!node_.scratch.empty()) launch::remove_scratch(node_.scratch);
}

std::optional<AttemptHost::Refused> LocalHost::bind(const launch::RunPaths& paths) {
  paths_ = paths;
  const sys::CutShort cut([this] { return Interrupts::received() != 0 || !guardian_.alive(); });
  const auto machine = machine_.get_for(plan_);
  if (!machine) return Refused{exit_code::internal, "internal", machine.error().items().front().message};
  auto bound = launch::bind({plan_, 0, paths_, *machine, machine_.install(), caller_.environment});
  if (!bound) {
    // Who was told to stop hears of that alone.
    if (Interrupts::received() == 0) caller_.console.error(bound.error());
    return not_bound(bound.error().items().front());
  }
  node_ = std::move(bound->node);
  ports_ = std::move(bound->ports);
  const auto saved = sys::write_file_atomically(paths_.attempt / fmt::format("bound.{}.json", node_.host),
                                                json_text(plan::to_json(plan_, node_), 2) + "\n");
  if (!saved) caller_.console.say(fmt::format("nlaunch: {}\n", saved.error().items().front().message));
  if (!share_) {
    auto locks = launch::GpuLocks::take(plan_, node_, paths_.folder.string());
    if (!locks) {
      caller_.console.error(locks.error());
      return Refused{exit_code::bad_input, "not-started", locks.error().items().front().message};
    }
    locks_ = std::move(*locks);
  }
  bound_ = {node_.notes, node_.dropped, launch::provenance(plan_, node_)};
  return std::nullopt;
}

preflight::Request LocalHost::request(const preflight::Options& options) {
  // Nobody else watches the guardian yet.
  const auto cancelled = [this] { return Interrupts::received() != 0 || !guardian_.alive(); };
  preflight::Request request{plan_, node_,    paths_.attempt.string(), machine_.install().probe, options,
                             {},    cancelled};
  if (const auto machine = machine_.get_for(plan_)) request.facts = machine->facts;
  return request;
}

preflight::Report LocalHost::check(const preflight::Options& options) {
  return preflight::run(request(options));
}

Result<std::vector<preflight::Rank>> LocalHost::ranks() {
  const auto quick = request({.level = PreflightLevel::quick});
  ranks_ = preflight::look({plan_, node_, quick.folder, quick.probe, quick.options.level, quick.facts}).ranks;
  return ranks_;
}

preflight::Measured LocalHost::measure(std::vector<preflight::GroupTrial> trials,
                                       const preflight::Deadlines& deadlines) {
  auto asked = request({});
  asked.deadlines = deadlines;
  return preflight::measure(asked, ranks_, std::move(trials));
}

supervise::Outcome LocalHost::supervise(unsigned attempt, supervise::EventLog& events) {
  auditor_.emplace(plan_, node_, machine_.install().probe);
  const auto color = caller_.console.result_paint.on() ? Color::always : Color::never;
  auto hooks = auditor_->hooks();
  install_evidence_hooks(hooks, plan_, node_, machine_.install(), paths_.attempt);
  return supervise::run_attempt({plan_,
                                 node_,
                                 paths_.folder,
                                 attempt,
                                 events,
                                 guardian_,
                                 {1, caller_.console.quiet, color},
                                 std::move(hooks),
                                 judge_of(plan_)});
}

AttemptHost::Audit LocalHost::audit() {
  // It may start a role's Python, and take seconds.
  const auto report = auditor_ ? auditor_->report() : launch::AuditReport();
  return {launch::summary(report), report.findings.size(), launch::to_json(report)};
}

std::string LocalHost::mask(const std::string& text) const {
  return node_.masker.mask(text);
}

}  // namespace nlaunch::session
