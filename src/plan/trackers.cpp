#include "plan/trackers.h"

#include <algorithm>

#include "base/text.h"

namespace nlaunch::plan {
namespace {

/// A tqdm bar without a description. One with a description ("Map:", "Loading weights:") does not show
/// training.
constexpr std::string_view kBar = R"(^\s*\d+%\|.*?\| (?P<step>\d+)/(?P<total>\d+) \[)";

}  // namespace

const std::vector<Tracker>& trackers() {
  static const std::vector<Tracker> all{
      // transformers/trainer_callback.py, ProgressCallback
      {"trl", kBar},
      // verl/utils/logger/aggregate_logger.py, after Ray's "(TaskRunner pid=7)" with its color
      {"verl", R"((?:^|[\s)m])step:(?P<step>\d+) - (?:.*[\s:/-]timing_s/step:(?P<seconds>[\d.]+))?)"},
      // openrlhf/trainer/ppo_trainer.py
      {"openrlhf", R"(Global step (?P<step>\d+): \{)"},
      // prime_rl/trainer/rl/train.py and prime_rl/orchestrator; "Micro Step 0/4 | ..." is not a step
      {"prime-rl", R"(Step (?P<step>\d+) \| )"},
      // megatron/training/training.py
      {"megatron", R"(iteration +(?P<step>\d+)/ *(?P<total>\d+) \|)"},
      // torchtitan/components/metrics.py, with its colors; "validate step:" is not a step
      {"torchtitan", R"((?:^|- |\x1b\[\d+m)step: +(?P<step>\d+) .*loss:)"},
      {"tqdm", kBar},
  };
  return all;
}

std::string progress_pattern(const std::string& written) {
  const auto found = std::ranges::find(trackers(), written, &Tracker::name);
  return found == trackers().end() ? written : std::string(found->pattern);
}

std::string tracker_like(const std::string& written) {
  std::vector<std::string> names;
  for (const auto& tracker : trackers()) names.emplace_back(tracker.name);
  return text::nearest(written, names).value_or("");
}

}  // namespace nlaunch::plan
