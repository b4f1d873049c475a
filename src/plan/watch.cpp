#include "plan/watch.h"

#include "plan/json_parts.h"

namespace nlaunch::plan {

Watch make_watch(const config::Watch& watch) {
  Watch made;
  if (watch.progress) made.progress = watch.progress->value;
  made.start = watch.start.value_or(made.start);
  made.stall = watch.stall.value_or(made.stall);
  made.slow = watch.slow.value_or(made.slow);
  made.on_stall = watch.on_stall.value_or(made.on_stall);
  for (const auto& [name, pattern] : watch.metrics) made.metrics.push_back({name.value, pattern.value});
  return made;
}

ordered_json to_json(const Watch& watch) {
  auto metrics = ordered_json::array();
  for (const auto& metric : watch.metrics) {
    metrics.push_back({{"name", metric.name}, {"pattern", metric.pattern}});
  }
  return {{"progress", watch.progress},          {"start_ms", watch.start.count()},
          {"stall_ms", watch.stall.count()},     {"slow", watch.slow},
          {"on_stall", name_of(watch.on_stall)}, {"metrics", std::move(metrics)}};
}

Watch watch_from_json(const json& from) {
  Watch watch;
  from.at("progress").get_to(watch.progress);
  watch.start = milliseconds(from.at("start_ms"));
  watch.stall = milliseconds(from.at("stall_ms"));
  from.at("slow").get_to(watch.slow);
  watch.on_stall =
      word(from.at("on_stall"), std::array{OnStall::warn, OnStall::dump, OnStall::abort, OnStall::restart});
  for (const auto& metric : from.at("metrics")) {
    watch.metrics.push_back({metric.at("name"), metric.at("pattern")});
  }
  return watch;
}

}  // namespace nlaunch::plan
