#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/metrics.h"
#include "record/timeline.h"
#include "report/table.h"

/// What a person wants to know of a run when it is over, or while it runs: how it ended and why, how fast it
/// was, and where the time went.
namespace nlaunch::report {

/// One run that is reported. The files are the caller's.
struct RunReport {
  const record::RunFiles* files = nullptr;
  record::Timeline timeline{};
  std::string state{};  ///< as `nlaunch ps` has it: "finished", "running"
  bool alive = false;   ///< somebody leads it
  std::map<std::string, bench::Printed> metrics{};
  bench::PrintedBy printed{};
  /// The run of the same name before this one.
  struct Before {
    std::string id;
    std::string state;
    record::Timeline timeline;
    std::map<std::string, bench::Printed> metrics;
  };
  std::optional<Before> before{};
};

/// Reads the metrics in the logs, unless told not to. `now`: seconds since 1970; `alive`: somebody leads the
/// run.
RunReport report_of(const record::RunFiles& files, std::string state, double now, bool alive,
                    bool metrics = true);

/// What can be said of a run in one line: "20 steps, 1.00 s/step (p90 1.02), reward 0.1 → 0.9, engines ready
/// after 6.4 s". Empty where nothing was counted.
std::string facts_line(const RunReport& report);
/// The answer first: "finished after 26.5 s: " and the same.
std::string headline(const RunReport& report);

/// The whole report for a terminal.
std::string run_report_text(const RunReport& report, const Paint& paint);
/// {"format": "nlaunch report", "run", "state", "seconds", "gpus", "ettr", "ettr_last_hour", "phases":
/// [{"phase", "seconds", "gpu_hours"}], "causes": [{"cause", "kind", "job", "attempt", "restart", "seconds",
/// "gpu_hours", "phases"}], "steps": {...}, "metrics": {...}}. All times in seconds.
nlohmann::ordered_json run_report_json(const RunReport& report);
/// One self-contained page, with charts that are SVG in the page's own colours: they print, follow the dark
/// theme, and need neither a script nor a network.
std::string run_report_html(const RunReport& report);

/// Many runs: a line for each, and where the time of all of them went, by phase and by kind of cause.
std::string runs_report_text(const std::vector<RunReport>& reports, const Paint& paint);

/// "80 ms", "6.4 s", "12m30s", "5h02m", "3d04h"
std::string time_span(double seconds);

}  // namespace nlaunch::report
