#include "plan/watch.h"

#include "plan/trackers.h"

namespace nlaunch::plan {

Watch make_watch(const config::Watch& watch) {
  Watch made;
  if (watch.progress) made.progress = progress_pattern(watch.progress->value);
  made.start = watch.start.value_or(made.start);
  made.stall = watch.stall.value_or(made.stall);
  made.slow = watch.slow.value_or(made.slow);
  made.on_stall = watch.on_stall.value_or(made.on_stall);
  for (const auto& [name, pattern] : watch.metrics) made.metrics.push_back({name.value, pattern.value});
  return made;
}

}  // namespace nlaunch::plan
