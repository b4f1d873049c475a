#include "cli/local_place.h"

#include "base/exit_code.h"
#include "base/json.h"
#include "cli/evidence_of_run.h"
#include "cli/interrupt.h"
#include "launch/provenance.h"
#include "plan/bound_json.h"
#include "supervise/supervisor.h"
#include "sys/command.h"
#include "sys/files.h"

namespace nlaunch::cli {

namespace {

/// A disk that is full is no mistake in the experiment.
Place::Refused not_bound(const Diagnostic& why) {
  const bool disk = why.id == "file.write" || why.id == "file.folder";
  return {
      disk ? exit_code::internal : exit_code::bad_input, disk ? "internal" : "not-started", why.message, {}};
}

}  // namespace

LocalPlace::LocalPlace(const plan::Plan& plan, bool share, const Context& context, MachineSource& machine,
                       const supervise::GuardianLink& guardian)
    : plan_(plan), share_(share), context_(context), machine_(machine), guardian_(guardian) {}

LocalPlace::~LocalPlace() {
  if (!node_.scratch.empty()) launch::remove_scratch(node_.scratch);
}

std::optional<Place::Refused> LocalPlace::bind(const launch::RunPaths& paths) {
  paths_ = paths;
  const sys::CutShort cut([this] { return Interrupts::received() != 0 || !guardian_.alive(); });
  const auto machine = machine_.get_for(plan_);
  if (!machine) return Refused{exit_code::internal, "internal", machine.error().items().front().message};
  auto bound = launch::bind({plan_, 0, paths_, *machine, machine_.install(), context_.environment});
  if (!bound) {
    // Who was told to stop hears of that alone.
    if (Interrupts::received() == 0) complain(context_, bound.error());
    return not_bound(bound.error().items().front());
  }
  node_ = std::move(bound->node);
  ports_ = std::move(bound->ports);
  const auto saved = sys::write_file_atomically(paths_.attempt / fmt::format("bound.{}.json", node_.host),
                                                json_text(plan::to_json(plan_, node_), 2) + "\n");
  if (!saved) say(fmt::format("nlaunch: {}\n", saved.error().items().front().message));
  if (!share_) {
    auto locks = launch::GpuLocks::take(plan_, node_, paths_.folder.string());
    if (!locks) {
      complain(context_, locks.error());
      return Refused{exit_code::bad_input, "not-started", locks.error().items().front().message};
    }
    locks_ = std::move(*locks);
  }
  bound_ = {node_.notes, node_.dropped, launch::provenance(plan_, node_)};
  return std::nullopt;
}

preflight::Request LocalPlace::request(const preflight::Options& options) {
  // Nobody else watches the guardian yet.
  const auto cancelled = [this] { return Interrupts::received() != 0 || !guardian_.alive(); };
  preflight::Request request{plan_, node_,    paths_.attempt.string(), machine_.install().probe, options,
                             {},    cancelled};
  if (const auto machine = machine_.get_for(plan_)) request.facts = machine->facts;
  return request;
}

preflight::Report LocalPlace::check(const preflight::Options& options) {
  return preflight::run(request(options));
}

Result<std::vector<preflight::Rank>> LocalPlace::ranks() {
  const auto quick = request({.level = PreflightLevel::quick});
  ranks_ = preflight::look({plan_, node_, quick.folder, quick.probe, quick.options.level, quick.facts}).ranks;
  return ranks_;
}

preflight::Measured LocalPlace::measure(std::vector<preflight::GroupTrial> trials,
                                        const preflight::Deadlines& deadlines) {
  auto asked = request({});
  asked.deadlines = deadlines;
  return preflight::measure(asked, ranks_, std::move(trials));
}

supervise::Outcome LocalPlace::supervise(unsigned attempt, supervise::EventLog& events) {
  auditor_.emplace(plan_, node_, machine_.install().probe);
  const auto color = context_.out().on() ? Color::always : Color::never;
  auto hooks = auditor_->hooks();
  look_closely(hooks, plan_, node_, machine_.install(), paths_.attempt);
  return supervise::run_attempt({plan_,
                                 node_,
                                 paths_.folder,
                                 attempt,
                                 events,
                                 guardian_,
                                 {1, context_.quiet, color},
                                 std::move(hooks),
                                 judge_of(plan_)});
}

Place::Audit LocalPlace::audit() {
  // It may start a role's Python, and take seconds.
  const auto report = auditor_ ? auditor_->report() : launch::AuditReport();
  return {launch::summary(report), report.findings.size(), launch::to_json(report)};
}

std::string LocalPlace::mask(const std::string& text) const {
  return node_.masker.mask(text);
}

}  // namespace nlaunch::cli
