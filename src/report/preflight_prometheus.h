#pragma once
#include <string>

#include "preflight/preflight.h"

namespace nlaunch::report {

/// A report for node_exporter's textfile collector. Of figures only the minimum and the median of each node:
/// a series for every pair of GPUs would be more than Prometheus is made for.
std::string preflight_prometheus(const preflight::Report& report);

}  // namespace nlaunch::report
