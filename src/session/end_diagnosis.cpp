#include "session/end_diagnosis.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "diagnose/diagnose.h"
#include "diagnose/ranking.h"
#include "report/diagnose_text.h"
#include "session/interrupts.h"
#include "sys/files.h"

namespace nlaunch::session {
namespace {

constexpr std::chrono::seconds kLongest{10};
/// A run that succeeded may have trained on nothing but NaN, which a quick look shows.
constexpr std::chrono::seconds kGlance{1};

/// A signal and a walltime need no explanation from the logs.
bool ended_by_itself(const supervise::Cause& cause) {
  return std::holds_alternative<supervise::Finished>(cause) ||
         std::holds_alternative<supervise::ProcessFailed>(cause) ||
         std::holds_alternative<supervise::NeverReady>(cause) ||
         std::holds_alternative<supervise::PartLost>(cause) ||
         std::holds_alternative<supervise::Unresponsive>(cause) ||
         std::holds_alternative<supervise::NodeLost>(cause) ||
         std::holds_alternative<supervise::Aborted>(cause);
}

/// The sentence and the last lines printed above already contain it.
bool says_nothing_new(const diagnose::Diagnosis& diagnosis) {
  if (diagnosis.findings.empty()) return true;
  const auto& cause = diagnosis.findings.front();
  return cause.weight == diagnose::kEndOfFirst && cause.category == "process-exited";
}

}  // namespace

std::string diagnose_end(const launch::RunPaths& paths, const supervise::Outcome& outcome,
                         const report::Paint& paint) {
  if (!ended_by_itself(outcome.cause)) return "";
  using Clock = std::chrono::steady_clock;
  const bool well = std::holds_alternative<supervise::Finished>(outcome.cause);
  if (well && outcome.processes.size() > kMostProcessesRead) return "";
  // What the run continued without has already been reported, and is not why it ended.
  if (well &&
      std::ranges::any_of(outcome.processes, [](const auto& process) { return !process.lost.empty(); }))
    return "";
  const auto until = Clock::now() + (well ? kGlance : kLongest);
  auto summary = supervise::to_json(outcome);
  summary["sentence"] = supervise::sentence(outcome);
  const auto process = [&](std::size_t index) { return supervise::to_json(outcome.processes[index]); };
  const diagnose::KnownSummary known{&summary, {"processes", outcome.processes.size(), process}};
  diagnose::Options options;
  options.summary = &known;
  options.enough = [until] { return Interrupts::received() != 0 || Clock::now() > until; };
  const auto diagnosis = diagnose::diagnose({paths.folder.string()}, options);
  const auto brief = says_nothing_new(diagnosis) ? "" : report::diagnose_brief(diagnosis, paint);
  if (brief.empty()) return "";
  // An unwritable run directory has already been reported.
  (void)sys::write_file_atomically(paths.attempt / "diagnosis.json",
                                   json_text(report::diagnose_json(diagnosis), 2) + "\n");
  return brief + fmt::format("for details: nlaunch diagnose {}\n", text::shell_quote(paths.folder.string()));
}

}  // namespace nlaunch::session
