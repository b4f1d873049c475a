#pragma once
#include <re2/re2.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

/// Numbers that a run prints: `watch.metrics` of the experiment.
namespace nlaunch::bench {

/// Finds metrics in a stream of bytes. A line ends with \n or \r (a progress bar writes the latter); each
/// metric is searched for once per line, in its first 64 KiB: no more of a line is kept. A group's content
/// counts if all of it is a finite number.
class MetricReader {
 public:
  explicit MetricReader(const std::vector<plan::Metric>& metrics);

  void feed(std::string_view bytes);
  /// Finishes the last line if it has no line ending.
  void finish();
  /// In line order; a metric that was never seen is missing.
  [[nodiscard]] const std::map<std::string, std::vector<double>>& values() const { return values_; }

 private:
  void take(std::string_view line);

  std::vector<std::pair<std::string, std::unique_ptr<RE2>>> patterns_;
  std::map<std::string, std::vector<double>> values_;
  std::string partial_;
};

/// What each process printed: by its name, by metric, in line order.
using PrintedBy = std::map<std::string, std::map<std::string, std::vector<double>>>;

/// From all logs of a run's directory, of every attempt. A file that cannot be read has no values.
PrintedBy read_printed(const std::filesystem::path& run, const std::vector<plan::Metric>& metrics);

/// The values of a metric that one run printed.
struct Printed {
  double median = 0;
  std::size_t values = 0;
  double least = 0;
  double most = 0;
  double first = 0;
  double last = 0;
  double slope = 0;  ///< change from one value to the next: a least-squares line through all values
};

/// Of all processes together. First, last and slope are per process, averaged over processes.
std::map<std::string, Printed> summarized(const PrintedBy& printed);

/// Sentences about counts that should be the same on all processes of a role but are not: of batches in an
/// epoch, of samples. A metric is such a count if each process prints one whole number for it, however often.
/// "batches: 119 in learner.3, 120 in learner.0, learner.1 and 1 more"
std::vector<std::string> uneven(const PrintedBy& printed);

}  // namespace nlaunch::bench
