#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Statistics of a few repeats. All of it is the same for the same seed.
namespace nlaunch::bench {

/// Fewer good repeats give no interval: of five, the smallest and the largest contain the median in 94 % of
/// cases, of four in 88 %.
inline constexpr std::size_t kLeastRepeats = 5;

struct Interval {
  double low = 0;
  double high = 0;
};

/// The mean of the two middle values of an even number; 0 for none.
double median(std::vector<double> values);

/// Of the median, 95 %: percentiles of bootstrapped medians.
Interval median_interval(const std::vector<double>& values, std::uint64_t seed);

/// Of median(a) / median(b), 95 %, likewise. No value of `b` is 0.
Interval ratio_interval(const std::vector<double>& a, const std::vector<double>& b, std::uint64_t seed);

/// Of median(a) - median(b), 95 %, likewise.
Interval difference_interval(const std::vector<double>& a, const std::vector<double>& b, std::uint64_t seed);

/// Of a share, 95 % (Wilson, Probable Inference, 1927): valid for few repeats and for no failure at all.
Interval share_interval(std::size_t failures, std::size_t repeats);

/// How the times of one arm compare with another's.
struct Conclusion {
  enum class Word {
    faster,
    slower,
    no_difference,  ///< is shown: the interval contains 1
    unknown,        ///< too few good repeats
  };
  Word word = Word::unknown;
  double ratio = 0;  ///< of the medians: 0.8 takes a fifth less time
  Interval interval{};
  /// The smallest detectable difference: half the interval's width, as a share of the ratio.
  double visible = 0;
  /// `ratio`, `interval` and `visible` are of the difference of the medians.
  bool by_difference = false;
};

/// `times` against `reference`, in seconds.
Conclusion compare(const std::vector<double>& times, const std::vector<double>& reference,
                   std::uint64_t seed);

/// Values of any sign against `reference`: by their ratio if all are above 0, else by their difference.
Conclusion compare_values(const std::vector<double>& values, const std::vector<double>& reference,
                          std::uint64_t seed);

/// The word of a verdict; `less`, `more`: those for a smaller and a larger value.
std::string_view word_of(const Conclusion& verdict, const char* less = "faster", const char* more = "slower");

/// "12.3 % faster [9.8, 14.1]", "no difference shown [-2.1 %, +3.0 %], smallest detectable difference: 2.6
/// %", "0.12 less [0.08, 0.15]" for a difference.
std::string verdict_text(const Conclusion& verdict, const char* less = "faster", const char* more = "slower");

}  // namespace nlaunch::bench
