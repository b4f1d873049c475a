#include "probe/rank/rehearsal.h"

#include <chrono>
#include <thread>

#include "probe/output.h"

namespace nlaunch::probe {
namespace {

using Clock = std::chrono::steady_clock;

/// True if it is done, false if the deadline came first.
Result<bool> watch(Rehearsal& rehearsal, Clock::time_point until) {
  for (;;) {
    auto finished = rehearsal.finished();
    if (!finished || *finished || Clock::now() >= until) return finished;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

nlohmann::json play(Rehearsal& rehearsal, const std::vector<DrillLaunch>& launches, Duration deadline) {
  const auto begin = Clock::now();
  Result<bool> finished = false;
  Result<std::uint64_t> wrong = 0;
  const auto launched = rehearsal.launch(launches);
  if (launched) finished = watch(rehearsal, begin + deadline);
  const std::chrono::duration<double> took = Clock::now() - begin;
  if (launched && finished && *finished) wrong = rehearsal.wrong();
  nlohmann::json seen{{"launched", launches.size()}, {"text", ""}, {"wrong", wrong.value_or(0)}};
  seen["seconds"] = took.count();
  seen["ended"] = launched && finished && wrong ? (*finished ? "completed" : "waiting") : "failed";
  if (!launched) seen["text"] = text_of(launched.error());
  if (!finished) seen["text"] = text_of(finished.error());
  if (!wrong) seen["text"] = text_of(wrong.error());
  return seen;
}

}  // namespace nlaunch::probe
