#include "report/bench_text.h"

#include <fmt/format.h>

#include "base/exit_code.h"
#include "base/text.h"
#include "base/units.h"
#include "bench/answer.h"

namespace nlaunch::report {
namespace {

using bench::Held;

std::string_view held_text(Held held) {
  return held == Held::held ? "met" : held == Held::missed ? "MISSED" : "not measured";
}

bool missed(const bench::Line& line) {
  return line.budget == Held::missed || line.bandwidth == Held::missed || line.scaling == Held::missed;
}

std::string interval_text(const bench::Line& line) {
  if (line.interval.high <= 0) return "";
  return fmt::format("{} – {}", preflight::time_text(line.interval.low),
                     preflight::time_text(line.interval.high));
}

}  // namespace

std::string targets_text(const bench::Line& line) {
  std::vector<std::string> parts;
  if (line.budget != Held::not_asked)
    parts.push_back(
        fmt::format("at most {}: {}", preflight::time_text(line.targets.budget), held_text(line.budget)));
  if (line.bandwidth != Held::not_asked)
    parts.push_back(
        fmt::format("at least {}: {}", format_rate(line.targets.bus_bandwidth), held_text(line.bandwidth)));
  if (line.scaling != Held::not_asked) {
    parts.push_back(fmt::format("{:.0f} % of two ranks' {}: {}", line.targets.scaling * 100,
                                format_rate(line.two_ranks), held_text(line.scaling)));
  }
  return text::join(parts, "; ");
}

std::string failures_text(const bench::Failures& failures) {
  return fmt::format("{} of {} failed (95 %: {:.0f} to {:.0f} %)", failures.failed, failures.repeats,
                     failures.interval.low * 100, failures.interval.high * 100);
}

std::string bench_answer(const bench::Bench& bench, const Paint& paint) {
  std::string out;
  const bool well = bench::code_of(bench) == exit_code::ok;
  for (const auto& sentence : bench::answer(bench)) {
    const auto line = text::printable(sentence);
    out += (!out.empty() ? line : well ? paint.bold(line) : paint.red(line)) + "\n";
  }
  return out;
}

std::string bench_table(const bench::Bench& bench, const Paint& paint) {
  Table table({"workload", "group", "arm", "median step", "95 %", "bus bandwidth", "target", "NCCL chose",
               "vs. first arm"});
  const bool one_arm = bench.arms.size() == 1;
  for (const auto& line : bench::lines(bench)) {
    const auto targets = targets_text(line);
    table.add({line.workload, fmt::format("{} ({} × {})", line.group, line.ranks, name_of(line.backend)),
               one_arm ? "" : text::printable(bench.arms[line.arm].arm.name),
               paint.bold(preflight::time_text(line.median)), interval_text(line), format_rate(line.busbw),
               missed(line) ? paint.red(targets) : targets, line.chosen,
               line.reference ? "" : bench::verdict_text(line.verdict)});
  }
  return table.empty() ? "" : table.str(paint);
}

std::string bench_text(const bench::Bench& bench, const Paint& paint) {
  std::string out;
  for (const auto& one : bench::failures(bench)) {
    const auto& arm = bench.arms[one.arm];
    if (one.causes.empty()) continue;
    const auto what = arm.refused.empty() ? failures_text(one) : std::string("cannot be bound");
    out += paint.red(fmt::format("{}: {}", text::printable(arm.arm.name), what)) + "\n";
    for (const auto& cause : one.causes) out += fmt::format("  {}\n", text::printable(cause));
  }
  std::vector<std::string> names;
  for (const auto& arm : bench.arms) names.push_back(arm.arm.name);
  return out + differences_text(names, bench::differences(bench), paint) +
         order_text(bench.repeats, bench.seed, "--repeats", paint);
}

std::string differences_text(const std::vector<std::string>& arms,
                             const std::vector<bench::Difference>& differences, const Paint& paint) {
  if (differences.empty()) return "";
  std::vector<std::string> head{"role", "variable"};
  for (const auto& arm : arms) head.push_back(text::printable(arm));
  Table table(std::move(head));
  for (const auto& one : differences) {
    std::vector<std::string> row{one.role, one.name};
    for (const auto& value : one.values) row.push_back(text::printable(value));
    table.add(std::move(row));
  }
  return "\ndifferences between the arms\n" + table.str(paint);
}

std::string order_text(std::uint32_t repeats, std::uint64_t seed, std::string_view option,
                       const Paint& paint) {
  std::string out;
  if (repeats < bench::kLeastRepeats) {
    out = paint.yellow(fmt::format(
              "with {}, intervals are not meaningful and arms are not compared: use {} {} or more",
              text::count(repeats, "repeat"), option, bench::kLeastRepeats)) +
          "\n";
  }
  return out + fmt::format("{} of each arm in random order, seed {} (for the same order, use --seed {})\n",
                           text::count(repeats, "repeat"), seed, seed);
}

}  // namespace nlaunch::report
