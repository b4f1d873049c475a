#include <fmt/format.h>

#include "base/format.h"
#include "base/text.h"
#include "bench/results.h"

namespace nlaunch::bench {
namespace {

using nlohmann::ordered_json;

ordered_json interval_json(const Interval& interval) {
  if (interval.high <= 0) return nullptr;
  return {interval.low, interval.high};
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
                   {"interval", interval_json(line.interval)},
                   {"busbw", line.busbw},
                   {"chosen", line.chosen},
                   {"targets", targets_json(line)}};
  if (line.reference) return out;
  const auto& verdict = line.verdict;
  out["verdict"] = {{"word", word_of(verdict)},
                    {"ratio", verdict.ratio},
                    {"interval", interval_json(verdict.interval)},
                    {"visible", verdict.visible},
                    {"text", verdict_text(verdict)}};
  return out;
}

ordered_json arm_json(const ArmResult& arm, const Failures& failures) {
  return {{"name", arm.arm.name},
          {"set", arm.arm.set},
          {"with", arm.arm.with},
          {"env", arm.arm.env},
          {"repeats", failures.repeats},
          {"failed", failures.failed},
          {"failure_interval", interval_json(failures.interval)},
          {"causes", failures.causes},
          {"environments", arm.environments}};
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
  out["arms"] = ordered_json::array();
  out["lines"] = ordered_json::array();
  const auto failed = failures(bench);
  for (std::size_t arm = 0; arm < bench.arms.size(); ++arm)
    out["arms"].push_back(arm_json(bench.arms[arm], failed[arm]));
  for (const auto& line : lines(bench)) out["lines"].push_back(line_json(line, bench));
  auto& order = out["order"] = ordered_json::array();
  for (const auto& turn : bench.order) order.push_back(bench.arms[turn.arm].arm.name);
  auto& differ = out["differences"] = ordered_json::array();
  for (const auto& one : differences(bench))
    differ.push_back({{"role", one.role}, {"variable", one.name}, {"values", one.values}});
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
