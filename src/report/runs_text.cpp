#include "report/runs_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "preflight/observations.h"
#include "report/bench_text.h"

namespace nlaunch::report {
namespace {

std::string value_text(const bench::RunLine& line, double value) {
  if (line.what == bench::RunLine::What::metric) return fmt::format("{:.4g}", value);
  return preflight::time_text(value);
}

std::string interval_text(const bench::RunLine& line) {
  if (!line.interval) return "";
  return fmt::format("{} – {}", value_text(line, line.interval->low), value_text(line, line.interval->high));
}

std::string ends_text(const bench::RunLine& line) {
  if (line.what != bench::RunLine::What::metric) return "";
  return fmt::format("{} → {}", value_text(line, line.first), value_text(line, line.last));
}

std::string runs_of(const bench::RunLine& line) {
  const auto runs = text::count(line.values.size(), "run");
  if (line.what != bench::RunLine::What::metric) return runs;
  return fmt::format("{}, {}", runs, text::count(line.printed, "value"));
}

}  // namespace

std::string runs_table(const bench::RunComparison& comparison, const Paint& paint) {
  Table table({"quantity", "arm", "median", "95 %", "first → last", "samples", "vs. first arm"});
  const bool one_arm = comparison.arms.size() == 1;
  for (const auto& line : bench::lines(comparison)) {
    table.add({text::printable(bench::name_of(line)),
               one_arm ? "" : text::printable(comparison.arms[line.arm].arm.name),
               paint.bold(value_text(line, line.median)), interval_text(line), ends_text(line), runs_of(line),
               line.reference ? "" : bench::verdict_text(line)});
  }
  return table.empty() ? "" : table.str(paint);
}

std::string runs_text(const bench::RunComparison& comparison, const Paint& paint) {
  std::string out;
  std::vector<std::string> arms;
  for (const auto& arm : comparison.arms) arms.push_back(arm.arm.name);
  for (const auto& one : bench::failures(comparison)) {
    if (one.failed == 0) continue;
    out += paint.red(fmt::format("{}: {}", text::printable(arms[one.arm]), failures_text(one))) + "\n";
    for (const auto& cause : one.causes) out += fmt::format("  {}\n", text::printable(cause));
    const auto& runs = comparison.arms[one.arm].runs;
    const auto first = std::ranges::find_if(runs, [](const auto& run) { return !run.well(); });
    out += fmt::format("  the first failed run: {}\n", first->folder);
  }
  for (const auto& metric : bench::never_printed(comparison)) {
    out += paint.yellow(fmt::format("no run printed '{}': no line of the logs matches '{}'",
                                    text::printable(metric.name), text::printable(metric.pattern))) +
           "\n";
  }
  return out + differences_text(arms, bench::differences(comparison), paint) +
         order_text(comparison.repeats, comparison.seed, "--repeat", paint);
}

}  // namespace nlaunch::report
