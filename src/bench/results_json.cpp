#include <fmt/format.h>

#include "base/format.h"
#include "base/text.h"
#include "bench/answer.h"
#include "bench/comparison_json.h"

namespace nlaunch::bench {
namespace {

using nlohmann::ordered_json;

/// Null with too few repeats.
ordered_json known_json(const Interval& interval) {
  if (interval.high <= 0) return nullptr;
  return interval_json(interval);
}

ordered_json held_json(Held held) {
  if (held == Held::not_asked || held == Held::unknown) return nullptr;
  return held == Held::held;
}

ordered_json targets_json(const Line& line) {
  ordered_json out = ordered_json::object();
  if (line.budget != Held::not_asked)
    out["budget"] = {{"seconds", line.targets.budget}, {"held", held_json(line.budget)}};
  if (line.bandwidth != Held::not_asked)
    out["busbw"] = {{"at_least", line.targets.bus_bandwidth}, {"held", held_json(line.bandwidth)}};
  if (line.scaling != Held::not_asked) {
    out["scaling"] = {{"at_least", line.targets.scaling},
                      {"two_ranks_busbw", line.two_ranks},
                      {"held", held_json(line.scaling)}};
  }
  return out;
}

ordered_json line_json(const Line& line, const Bench& bench) {
  ordered_json out{{"workload", line.workload},
                   {"group", line.group},
                   {"arm", bench.arms[line.arm].arm.name},
                   {"backend", name_of(line.backend)},
                   {"ranks", line.ranks},
                   {"bytes", line.bytes},
                   {"seconds", line.seconds},
                   {"median", line.median},
                   {"interval", known_json(line.interval)},
                   {"busbw", line.busbw},
                   {"chosen", line.chosen},
                   {"targets", targets_json(line)}};
  if (line.reference) return out;
  const auto& verdict = line.verdict;
  out["verdict"] = {{"word", word_of(verdict)},
                    {"ratio", verdict.ratio},
                    {"interval", known_json(verdict.interval)},
                    {"visible", verdict.visible},
                    {"text", verdict_text(verdict)}};
  return out;
}

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\n") == std::string::npos) return field;
  std::string out = "\"";
  for (const char c : field) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

ordered_json to_json(const Bench& bench) {
  auto out = stamped<ordered_json>(formats::kBench);
  out["name"] = bench.name;
  out["site"] = bench.site;
  out["seed"] = bench.seed;
  out["repeats"] = bench.repeats;
  out["answer"] = answer(bench);
  out["arms"] = ordered_json::array();
  out["lines"] = ordered_json::array();
  const auto failed = failures(bench);
  for (std::size_t arm = 0; arm < bench.arms.size(); ++arm)
    out["arms"].push_back(arm_json(bench.arms[arm].arm, bench.arms[arm].environments, failed[arm]));
  for (const auto& line : lines(bench)) out["lines"].push_back(line_json(line, bench));
  out["order"] = order_json(bench);
  out["differences"] = differences_json(bench);
  if (!bench.broken_off.empty()) out["broken_off"] = bench.broken_off;
  return out;
}

std::string csv(const Bench& bench) {
  std::string out = "workload,group,arm,backend,ranks,bytes,repeat,seconds,busbw\n";
  for (const auto& line : lines(bench)) {
    for (std::size_t repeat = 0; repeat < line.seconds.size(); ++repeat) {
      const auto seconds = line.seconds[repeat];
      out += fmt::format("{},{},{},{},{},{},{},{:.9g},{:.9g}\n", quoted(line.workload), quoted(line.group),
                         quoted(bench.arms[line.arm].arm.name), name_of(line.backend), line.ranks, line.bytes,
                         repeat, seconds, seconds > 0 ? line.busbw * line.median / seconds : 0);
    }
  }
  return out;
}

}  // namespace nlaunch::bench
