#include "bench/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace nlaunch::bench {
namespace {

constexpr std::size_t kResamples = 4000;
constexpr double kTail = 0.025;
constexpr double kZ = 1.959964;  // of the normal distribution, for 95 %

double resampled_median(const std::vector<double>& values, std::mt19937_64& random) {
  std::vector<double> drawn(values.size());
  for (auto& value : drawn) value = values[random() % values.size()];
  return median(std::move(drawn));
}

Interval percentiles(std::vector<double> values) {
  std::ranges::sort(values);
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return {at(kTail), at(1 - kTail)};
}

std::string difference_text(const Conclusion& verdict, const char* less, const char* more) {
  const auto [low, high] = verdict.interval;
  if (verdict.word == Conclusion::Word::faster)
    return fmt::format("{:.4g} {} [{:.4g}, {:.4g}]", -verdict.ratio, less, -high, -low);
  if (verdict.word == Conclusion::Word::slower)
    return fmt::format("{:.4g} {} [{:.4g}, {:.4g}]", verdict.ratio, more, low, high);
  return fmt::format("no difference shown [{:+.4g}, {:+.4g}], smallest detectable difference: {:.4g}", low,
                     high, verdict.visible);
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Interval median_interval(const std::vector<double>& values, std::uint64_t seed) {
  if (values.empty()) return {};
  std::mt19937_64 random(seed);
  std::vector<double> medians(kResamples);
  for (auto& one : medians) one = resampled_median(values, random);
  return percentiles(std::move(medians));
}

Interval ratio_interval(const std::vector<double>& a, const std::vector<double>& b, std::uint64_t seed) {
  if (a.empty() || b.empty()) return {};
  std::mt19937_64 random(seed);
  std::vector<double> ratios(kResamples);
  for (auto& ratio : ratios) {
    const auto above = resampled_median(a, random);
    ratio = above / resampled_median(b, random);
  }
  return percentiles(std::move(ratios));
}

Interval difference_interval(const std::vector<double>& a, const std::vector<double>& b, std::uint64_t seed) {
  if (a.empty() || b.empty()) return {};
  std::mt19937_64 random(seed);
  std::vector<double> differences(kResamples);
  for (auto& difference : differences) {
    const auto left = resampled_median(a, random);
    difference = left - resampled_median(b, random);
  }
  return percentiles(std::move(differences));
}

Interval share_interval(std::size_t failures, std::size_t repeats) {
  if (repeats == 0) return {0, 1};
  const auto n = static_cast<double>(repeats);
  const auto share = static_cast<double>(failures) / n;
  const auto centre = share + kZ * kZ / (2 * n);
  const auto spread = kZ * std::sqrt(share * (1 - share) / n + kZ * kZ / (4 * n * n));
  const auto scale = 1 + kZ * kZ / n;
  return {std::max(0.0, (centre - spread) / scale), std::min(1.0, (centre + spread) / scale)};
}

Conclusion compare(const std::vector<double>& times, const std::vector<double>& reference,
                   std::uint64_t seed) {
  Conclusion verdict;
  const bool positive = std::ranges::all_of(reference, [](double value) { return value > 0; });
  if (times.empty() || reference.empty() || !positive) return verdict;
  verdict.ratio = median(times) / median(reference);
  if (std::min(times.size(), reference.size()) < kLeastRepeats) return verdict;
  verdict.interval = ratio_interval(times, reference, seed);
  const auto [low, high] = verdict.interval;
  if (low > 0) verdict.visible = std::sqrt(high / low) - 1;
  verdict.word = high < 1  ? Conclusion::Word::faster
                 : low > 1 ? Conclusion::Word::slower
                           : Conclusion::Word::no_difference;
  return verdict;
}

Conclusion compare_values(const std::vector<double>& values, const std::vector<double>& reference,
                          std::uint64_t seed) {
  const auto positive = [](double value) { return value > 0; };
  if (std::ranges::all_of(values, positive) && std::ranges::all_of(reference, positive))
    return compare(values, reference, seed);
  Conclusion verdict;
  verdict.by_difference = true;
  verdict.ratio = median(values) - median(reference);
  if (std::min(values.size(), reference.size()) < kLeastRepeats) return verdict;
  verdict.interval = difference_interval(values, reference, seed);
  const auto [low, high] = verdict.interval;
  verdict.visible = (high - low) / 2;
  verdict.word = high < 0  ? Conclusion::Word::faster
                 : low > 0 ? Conclusion::Word::slower
                           : Conclusion::Word::no_difference;
  return verdict;
}

std::string_view word_of(const Conclusion& verdict, const char* less, const char* more) {
  switch (verdict.word) {
    case Conclusion::Word::faster:
      return less;
    case Conclusion::Word::slower:
      return more;
    case Conclusion::Word::no_difference:
      return "no difference shown";
    case Conclusion::Word::unknown:
      return "not judged";
  }
  return "";
}

std::string verdict_text(const Conclusion& verdict, const char* less, const char* more) {
  if (verdict.by_difference && verdict.word != Conclusion::Word::unknown)
    return difference_text(verdict, less, more);
  const auto percent = [](double ratio) { return (ratio - 1) * 100; };
  const auto [low, high] = verdict.interval;
  switch (verdict.word) {
    case Conclusion::Word::faster:
      return fmt::format("{:.1f} % {} [{:.1f}, {:.1f}]", -percent(verdict.ratio), less, -percent(high),
                         -percent(low));
    case Conclusion::Word::slower:
      return fmt::format("{:.1f} % {} [{:.1f}, {:.1f}]", percent(verdict.ratio), more, percent(low),
                         percent(high));
    case Conclusion::Word::no_difference:
      return fmt::format(
          "no difference shown [{:+.1f} %, {:+.1f} %], smallest detectable difference: {:.1f} %",
          percent(low), percent(high), verdict.visible * 100);
    case Conclusion::Word::unknown:
      return fmt::format("not judged: too few successful repeats (at least {} of each)", kLeastRepeats);
  }
  return "";
}

}  // namespace nlaunch::bench
