#include "bench/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "bench/statistics.h"
#include "sys/files.h"

namespace nlaunch::bench {
namespace {

constexpr std::size_t kLongestLine = 65536;
constexpr std::string_view kLineEnds = "\n\r";

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stopped != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

void feed_file(const std::filesystem::path& path, MetricReader& reader) {
  const auto file = sys::open_regular_file(path, sys::Links::refused);
  std::array<char, 65536> block;
  while (const auto got = file ? sys::read_up_to(file->get(), block) : 0) reader.feed({block.data(), got});
  reader.finish();
}

double slope(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0;
  for (const double value : values) mean += value / n;
  double above = 0;
  double below = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i) - (n - 1) / 2;
    above += x * (values[i] - mean);
    below += x * x;
  }
  return below > 0 ? above / below : 0;
}

/// The attempts of a run, in order.
std::vector<std::filesystem::path> attempts_of(const std::filesystem::path& run) {
  std::vector<std::filesystem::path> out;
  std::error_code error;
  for (const auto& attempt : std::filesystem::directory_iterator(run, error)) {
    if (attempt.path().filename().string().starts_with("attempt-") && sys::is_folder_itself(attempt.path()))
      out.push_back(attempt.path());
  }
  std::ranges::sort(out, {}, [](const auto& path) {  // attempt-10 is after attempt-9
    const auto name = path.filename().string();
    return std::pair(name.size(), name);
  });
  return out;
}

/// Which process has printed which number.
using Counts = std::map<std::int64_t, std::vector<std::string>>;

/// The one whole number that they all are.
std::optional<std::int64_t> count_of(const std::vector<double>& values) {
  const double first = values.front();
  if (first != std::floor(first) || std::abs(first) > 1e15) return std::nullopt;
  if (std::ranges::any_of(values, [first](double value) { return value != first; })) return std::nullopt;
  return static_cast<std::int64_t>(first);
}

std::string in_short(const std::vector<std::string>& processes) {
  constexpr std::size_t kNamed = 2;
  const std::vector<std::string> named(
      processes.begin(), processes.begin() + static_cast<std::ptrdiff_t>(std::min(kNamed, processes.size())));
  const auto names = text::join(named, ", ");
  return processes.size() <= kNamed ? names : fmt::format("{} and {} more", names, processes.size() - kNamed);
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

PrintedBy read_printed(const std::filesystem::path& run, const std::vector<plan::Metric>& metrics) {
  PrintedBy printed;
  std::error_code error;
  for (const auto& attempt : attempts_of(run)) {
    for (const auto& log : std::filesystem::directory_iterator(attempt / "logs", error)) {
      if (log.path().extension() != ".log" || !log.is_regular_file(error)) continue;
      MetricReader reader(metrics);
      feed_file(log.path(), reader);
      for (const auto& [name, values] : reader.values()) {
        auto& all = printed[log.path().stem().string()][name];
        all.insert(all.end(), values.begin(), values.end());
      }
    }
  }
  return printed;
}

std::map<std::string, Printed> summarized(const PrintedBy& printed) {
  std::map<std::string, std::vector<const std::vector<double>*>> by_metric;
  for (const auto& [process, metrics] : printed) {
    for (const auto& [name, values] : metrics) by_metric[name].push_back(&values);
  }
  std::map<std::string, Printed> out;
  for (const auto& [name, processes] : by_metric) {
    auto& one = out[name];
    std::vector<double> all;
    for (const auto* values : processes) {
      const auto share = 1 / static_cast<double>(processes.size());
      one.first += share * values->front();
      one.last += share * values->back();
      one.slope += share * slope(*values);
      all.insert(all.end(), values->begin(), values->end());
    }
    one.median = median(all);
    one.values = all.size();
    one.least = std::ranges::min(all);
    one.most = std::ranges::max(all);
  }
  return out;
}

std::vector<std::string> uneven(const PrintedBy& printed) {
  // By role and metric: the numbers, and the processes that printed them; nothing if it is not a count.
  std::map<std::pair<std::string, std::string>, std::optional<Counts>> counts;
  for (const auto& [process, metrics] : printed) {
    const auto role = process.substr(0, process.rfind('.'));
    for (const auto& [name, values] : metrics) {
      auto& of = counts.try_emplace({role, name}, Counts{}).first->second;
      const auto count = count_of(values);
      if (!count) of.reset();
      if (of) (*of)[*count].push_back(process);
    }
  }
  std::vector<std::string> sentences;
  for (const auto& [of, found] : counts) {
    if (!found || found->size() < 2) continue;
    std::vector<std::string> parts;
    for (const auto& [count, processes] : *found)
      parts.push_back(fmt::format("{} in {}", count, in_short(processes)));
    sentences.push_back(fmt::format("{}: {}", of.second, text::join(parts, ", ")));
  }
  return sentences;
}

}  // namespace nlaunch::bench
