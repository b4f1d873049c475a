#pragma once
#include <filesystem>
#include <string>

#include "config/experiment.h"
#include "plan/plan.h"

/// Metrics for Prometheus: where a run exports its own, and which roles serve some themselves.
namespace nlaunch::plan {

/// The first reference in the path of a metrics file that has no value there; empty: none.
std::string unknown_in_metrics_file(const std::string& file);
/// The path of the plan's metrics file, with ${run.id}, ${run.name} and ${run.dir} replaced.
std::filesystem::path metrics_file_of(const Plan& plan, const std::filesystem::path& run_folder);

/// The port, by name, under which the processes of a role serve metrics at /metrics: as the role says, or
/// that of `throughput`, or `--port ${self.ports.NAME}` of a server that is known to serve them there, or the
/// one of `ready: vllm`. Empty: none is known.
std::string metrics_port(const config::Role& role);

}  // namespace nlaunch::plan
