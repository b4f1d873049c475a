#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nlaunch::report {

/// Metrics as text for Prometheus. They have no timestamps: node_exporter's textfile collector refuses them.
class Exposition {
 public:
  /// Version 0.0.4 of Prometheus' text format, or version 1.0.0 of OpenMetrics.
  enum class Format { prometheus, openmetrics };
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

  explicit Exposition(Format format = Format::prometheus) : format_(format) {}

  /// Begins a metric. All of its samples must follow before the next one. `name` is complete, except that a
  /// counter's has no `_total`.
  void gauge(std::string_view name, std::string_view help);
  void counter(std::string_view name, std::string_view help);
  /// `value` must be finite. Of labels any text is accepted.
  void sample(double value, const Labels& labels = {});
  /// The whole text.
  [[nodiscard]] std::string take();

 private:
  Format format_;
  std::string name_;  ///< of a sample
  std::string out_;
};

/// The Content-Type of a format.
std::string_view content_type(Exposition::Format format);
/// The best format for a reader that sends this Accept header.
Exposition::Format format_for(std::string_view accept);

}  // namespace nlaunch::report
