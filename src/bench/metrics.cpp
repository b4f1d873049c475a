#include "bench/metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>

#include "bench/statistics.h"

namespace nlaunch::bench {
namespace {

constexpr std::size_t kLongestLine = 65536;
constexpr std::string_view kLineEnds = "\n\r";

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

void feed_file(const std::filesystem::path& path, MetricReader& reader) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 65536> block;
  while (file) {
    file.read(block.data(), block.size());
    reader.feed({block.data(), static_cast<std::size_t>(file.gcount())});
  }
  reader.finish();
}

}  // namespace

MetricReader::MetricReader(const std::vector<plan::Metric>& metrics) {
  for (const auto& [name, pattern] : metrics)
    patterns_.emplace_back(name, std::make_unique<RE2>(pattern, RE2::Quiet));
}

void MetricReader::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find_first_of(kLineEnds);
    partial_ += bytes.substr(0, std::min(end, kLongestLine - partial_.size()));
    if (end == std::string_view::npos) return;
    finish();
    bytes.remove_prefix(end + 1);
  }
}

void MetricReader::finish() {
  take(partial_);
  partial_.clear();
}

void MetricReader::take(std::string_view line) {
  for (const auto& [name, pattern] : patterns_) {
    re2::StringPiece found;
    if (!RE2::PartialMatch({line.data(), line.size()}, *pattern, &found)) continue;
    if (const auto value = number_in({found.data(), found.size()})) values_[name].push_back(*value);
  }
}

std::map<std::string, Printed> read_metrics(const std::filesystem::path& run,
                                            const std::vector<plan::Metric>& metrics) {
  MetricReader reader(metrics);
  std::error_code error;
  for (const auto& attempt : std::filesystem::directory_iterator(run, error)) {
    if (!attempt.path().filename().string().starts_with("attempt-")) continue;
    for (const auto& log : std::filesystem::directory_iterator(attempt.path() / "logs", error)) {
      if (log.path().extension() == ".log" && log.is_regular_file(error)) feed_file(log.path(), reader);
    }
  }
  std::map<std::string, Printed> out;
  for (const auto& [name, values] : reader.values()) {
    const auto [least, most] = std::ranges::minmax(values);
    out[name] = {median(values), values.size(), least, most};
  }
  return out;
}

}  // namespace nlaunch::bench
