#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/exposition.h"
#include "report/top.h"

/// What Prometheus is told of a run. Pure.
namespace nlaunch::report {

/// A GPU that processes of a run use, as nlaunch sampled it last. Nothing: NVML does not provide the figure.
struct GpuSample {
  std::string host;
  std::size_t number = 0;  ///< on its node, as the plan counts
  std::string uuid{};      ///< "GPU-..."; empty: not known
  std::string bus_id{};    ///< "00000000:3B:00.0"
  std::vector<std::string> processes{};
  std::optional<double> busy{};          ///< percent
  std::optional<double> power{};         ///< watts
  std::optional<double> memory_used{};   ///< bytes
  std::optional<double> memory_total{};  ///< bytes
};

/// The series of single processes are for runs of at most this many: more of them are a burden for
/// Prometheus.
inline constexpr std::size_t kMostProcessSeries = 4096;

/// The metrics of a run, in an order that does not change.
std::string run_prometheus(const TopView& view, const std::vector<GpuSample>& gpus,
                           Exposition::Format format = Exposition::Format::prometheus);

/// A server of the run that has metrics of its own under /metrics.
struct ScrapeTarget {
  std::string address;    ///< HOST:PORT
  std::string process{};  ///< empty: the page of the run itself, whose samples have all labels that they need
  std::string role{};
  std::string replica{};  ///< its number in the role
};

/// A file for `file_sd_configs` of Prometheus: a list of {targets, labels}.
std::string scrape_targets_json(const std::string& run, const std::vector<ScrapeTarget>& targets);

}  // namespace nlaunch::report
