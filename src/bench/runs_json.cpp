#include "base/format.h"
#include "bench/comparison_json.h"
#include "bench/runs.h"

namespace nlaunch::bench {
namespace {

using nlohmann::ordered_json;

ordered_json line_json(const RunLine& line, const RunComparison& comparison) {
  const bool time = line.what != RunLine::What::metric;
  ordered_json out{{"quantity", name_of(line)},
                   {"unit", time ? ordered_json("s") : ordered_json(nullptr)},
                   {"arm", comparison.arms[line.arm].arm.name},
                   {"values", line.values},
                   {"median", line.median},
                   {"interval", line.interval ? interval_json(*line.interval) : ordered_json(nullptr)}};
  if (!time) out.update({{"first", line.first}, {"last", line.last}, {"printed", line.printed}});
  if (line.reference) return out;
  const auto& verdict = line.verdict;
  const bool judged = verdict.word != Conclusion::Word::unknown;
  out["verdict"] = {{"word", word_of(verdict, time ? "shorter" : "less", time ? "longer" : "more")},
                    {verdict.by_difference ? "difference" : "ratio", verdict.ratio},
                    {"interval", judged ? interval_json(verdict.interval) : ordered_json(nullptr)},
                    {"visible", judged ? ordered_json(verdict.visible) : ordered_json(nullptr)},
                    {"text", verdict_text(line)}};
  return out;
}

ordered_json run_json(const RunRecord& run) {
  ordered_json metrics = ordered_json::object();
  for (const auto& [name, printed] : run.metrics)
    metrics[name] = {{"median", printed.median},
                     {"first", printed.first},
                     {"last", printed.last},
                     {"slope", printed.slope},
                     {"values", printed.values}};
  return {{"repeat", run.repeat},
          {"folder", run.folder},
          {"outcome", run.outcome},
          {"exit_code", run.exit_code},
          {"seconds", run.seconds ? ordered_json(*run.seconds) : ordered_json(nullptr)},
          {"culprit", run.culprit.empty() ? ordered_json(nullptr) : ordered_json(run.culprit)},
          {"cause", run.cause.empty() ? ordered_json(nullptr) : ordered_json(run.cause)},
          {"sentence", run.sentence},
          {"metrics", metrics}};
}

ordered_json arm_runs_json(const ArmRuns& arm, const Failures& failures) {
  auto out = arm_json(arm.arm, arm.environments, failures);
  auto& runs = out["runs"] = ordered_json::array();
  for (const auto& run : arm.runs) runs.push_back(run_json(run));
  return out;
}

}  // namespace

ordered_json to_json(const RunComparison& comparison) {
  auto out = stamped<ordered_json>(formats::kAb);
  out["name"] = comparison.name;
  out["site"] = comparison.site;
  out["seed"] = comparison.seed;
  out["repeats"] = comparison.repeats;
  out["stopped"] = comparison.stopped.empty() ? ordered_json(nullptr) : ordered_json(comparison.stopped);
  out["metrics"] = ordered_json::object();
  out["arms"] = ordered_json::array();
  out["lines"] = ordered_json::array();
  for (const auto& [name, pattern] : comparison.metrics) out["metrics"][name] = pattern;
  const auto failed = failures(comparison);
  for (std::size_t arm = 0; arm < comparison.arms.size(); ++arm)
    out["arms"].push_back(arm_runs_json(comparison.arms[arm], failed[arm]));
  for (const auto& line : lines(comparison)) out["lines"].push_back(line_json(line, comparison));
  out["order"] = order_json(comparison);
  out["differences"] = differences_json(comparison);
  return out;
}

}  // namespace nlaunch::bench
