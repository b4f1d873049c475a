#include "bench/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/text.h"
#include "base/units.h"

namespace nlaunch::bench {
namespace {

using Word = Conclusion::Word;

/// An arm next to the first one that has the same workload and group.
struct Compared {
  const Line* line = nullptr;
  const Line* reference = nullptr;

  [[nodiscard]] Word word() const { return line->verdict.word; }
  /// Of two that differ, the larger one is twice as fast or half as fast alike.
  [[nodiscard]] double size() const { return std::abs(std::log(line->verdict.ratio)); }
};

/// A target that a line has missed, in words, and by what factor.
struct Miss {
  double factor = 1;
  std::string text;
};

/// The sentences about one bench.
class Answer {
 public:
  explicit Answer(const Bench& bench) : bench_(bench), lines_(lines(bench)), failures_(failures(bench)) {
    const Line* reference = nullptr;
    for (const auto& line : lines_) {
      if (line.reference)
        reference = &line;
      else
        compared_.push_back({&line, reference});
    }
  }

  std::vector<std::string> sentences() {
    stopped();
    failed_arms();
    const auto met = targets();
    const bool one = bench_.arms.size() == 1;
    if (one) say(met);
    if (compared_.empty())
      measured();
    else
      say(comparison());
    failed_repeats();
    if (!one) say(met);
    by_chance();
    if (out_.empty()) out_.emplace_back("nothing was measured");
    return std::move(out_);
  }

 private:
  void say(std::string sentence) {
    if (!sentence.empty()) out_.push_back(std::move(sentence));
  }

  [[nodiscard]] const std::string& name_of_arm(std::size_t arm) const { return bench_.arms[arm].arm.name; }
  [[nodiscard]] const std::string& arm_of(const Line& line) const { return name_of_arm(line.arm); }

  /// "large (all_reduce, 1GiB) over world": as the table has it, and what it does if that is one operation.
  [[nodiscard]] std::string what(const Line& line) const {
    auto out = line.workload;
    const auto& workloads = bench_.arms[line.arm].workloads;
    const auto found = std::ranges::find_if(
        workloads, [&](const plan::BenchWorkload& one) { return one.work.name == line.workload; });
    if (found != workloads.end() && found->work.step.size() == 1) {
      const auto& operation = found->work.step.front();
      const auto times = operation.count > 1 ? fmt::format("{} × ", operation.count) : "";
      out += fmt::format(" ({}{}, {})", times, nlaunch::name_of(operation.op), format_size(operation.bytes));
    }
    const bool several = std::ranges::any_of(lines_, [&](const Line& other) {
      return other.workload == line.workload && other.group != line.group;
    });
    return several ? fmt::format("{} over {}", out, line.group) : out;
  }

  /// "nccl=2.26", or "2.26" next to "nccl=2.27".
  [[nodiscard]] std::string other_arm(const Line& line, const Line& next_to) const {
    const auto& name = arm_of(line);
    const auto value = name.find('=') + 1;
    const bool alike = value > 0 && value < name.size() && arm_of(next_to).starts_with(name.substr(0, value));
    return alike && name.find(", ") == std::string::npos ? name.substr(value) : name;
  }

  /// " with B"; empty if there is only one arm.
  [[nodiscard]] std::string with_arm(const Line& line) const {
    return bench_.arms.size() == 1 ? "" : " with " + arm_of(line);
  }

  void stopped() {
    const auto wanted = bench_.arms.size() * bench_.repeats;
    const bool refused =
        std::ranges::any_of(bench_.arms, [](const auto& arm) { return !arm.refused.empty(); });
    if (bench_.broken_off.empty() && (refused || bench_.order.size() >= wanted)) return;
    say(fmt::format("stopped after {} of {} repeats{}{}", bench_.order.size(), wanted,
                    bench_.broken_off.empty() ? "" : ": ", bench_.broken_off));
  }

  /// Without any good repeat.
  void failed_arms() {
    std::vector<std::string> failed;
    for (const auto& one : failures_) {
      if (!bench_.arms[one.arm].refused.empty())
        failed.push_back((bench_.arms.size() == 1 ? "the benchmark" : name_of_arm(one.arm)) +
                         " could not be started" + causes_text(one));
      else if (one.failed > 0 && one.failed == one.repeats)
        failed.push_back(failed_text(
            one, one.repeats == 1 ? "the only repeat" : fmt::format("all {} repeats", one.repeats)));
    }
    if (failed.empty()) return;
    const auto others = failed.size() - 1;
    say(failed.front() +
        (others > 0 ? fmt::format("; {} failed as well", text::count(others, "other arm")) : ""));
  }

  void failed_repeats() {
    for (const auto& one : failures_) {
      if (one.failed > 0 && one.failed < one.repeats)
        say(failed_text(one, fmt::format("{} of {} repeats", one.failed, one.repeats)));
    }
  }

  [[nodiscard]] std::string failed_text(const Failures& one, const std::string& which) const {
    if (bench_.arms.size() == 1) return fmt::format("{} failed{}", which, causes_text(one));
    return fmt::format("{} failed in {}{}", name_of_arm(one.arm), which, causes_text(one));
  }

  /// ": CAUSE (and 1 other cause)"
  static std::string causes_text(const Failures& one) {
    if (one.causes.empty()) return "";
    const auto others = one.causes.size() - 1;
    return fmt::format(": {}{}", one.causes.front(),
                       others > 0 ? fmt::format(" (and {})", text::count(others, "other cause")) : "");
  }

  // --- targets ---

  /// Says which were missed. Returns the sentence for those that were met, if none was missed.
  std::string targets() {
    std::size_t asked = 0;
    std::size_t unknown = 0;
    std::vector<Miss> missed;
    for (const auto& line : lines_) {
      for (const auto held : {line.budget, line.bandwidth, line.scaling}) {
        asked += held == Held::not_asked ? 0 : 1;
        unknown += held == Held::unknown ? 1 : 0;
      }
      add_misses(line, missed);
    }
    if (missed.empty()) return met(asked, unknown);
    const auto& worst = *std::ranges::max_element(missed, {}, &Miss::factor);
    const auto count =
        asked == 1 ? "the target was missed" : fmt::format("{} of {} targets missed", missed.size(), asked);
    say(fmt::format("{}{} {}", count, missed.size() == 1 ? ":" : ", by most:", worst.text));
    return "";
  }

  static std::string met(std::size_t asked, std::size_t unknown) {
    if (asked == 0) return "";
    if (unknown > 0)
      return fmt::format("{} of {} targets met, {} not measured", asked - unknown, asked, unknown);
    if (asked == 1) return "the target was met";
    return asked == 2 ? "both targets were met" : fmt::format("all {} targets were met", asked);
  }

  void add_misses(const Line& line, std::vector<Miss>& missed) const {
    const auto arm = with_arm(line);
    const auto& targets = line.targets;
    if (line.budget == Held::missed)
      missed.push_back({line.median / targets.budget, fmt::format("{} takes {}{}, at most {}", what(line),
                                                                  preflight::time_text(line.median), arm,
                                                                  preflight::time_text(targets.budget))});
    if (line.bandwidth == Held::missed)
      missed.push_back({targets.bus_bandwidth / line.busbw,
                        fmt::format("{} reaches {}{}, at least {}", what(line), format_rate(line.busbw), arm,
                                    format_rate(targets.bus_bandwidth))});
    if (line.scaling == Held::missed) {
      const auto share = line.busbw / line.two_ranks;
      missed.push_back(
          {targets.scaling / share,
           fmt::format("{} reaches {:.0f} % of the bus bandwidth of two ranks{}, at least {:.0f} %",
                       what(line), share * 100, arm, targets.scaling * 100)});
    }
  }

  // --- comparisons ---

  [[nodiscard]] std::string comparison() const {
    std::vector<Compared> differing;
    for (const auto& one : compared_)
      if (one.word() == Word::faster || one.word() == Word::slower) differing.push_back(one);
    if (differing.empty()) return no_difference();
    std::ranges::stable_sort(differing, std::greater<>(), &Compared::size);
    const auto& largest = differing.front();
    auto out = fmt::format("{} is {} than {} for {}", arm_of(*largest.line), speed(largest, "95 % "),
                           other_arm(*largest.reference, *largest.line), what(*largest.line));
    std::vector<Compared> shown{largest};
    // The same arm may lose elsewhere what it gains here.
    const auto opposite = std::ranges::find_if(differing, [&](const Compared& one) {
      return one.line->arm == largest.line->arm && one.word() != largest.word();
    });
    if (opposite != differing.end()) {
      out += fmt::format(", and {} for {}", speed(*opposite, ""), what(*opposite->line));
      shown.push_back(*opposite);
    }
    return out + others(shown);
  }

  /// "8.1 % faster (95 % confidence interval 6.9 to 9.4 %)": of the time of the other arm.
  static std::string speed(const Compared& one, std::string_view level) {
    const auto percent = [&](double ratio) { return std::abs(ratio - 1) * 100; };
    auto low = percent(one.line->verdict.interval.low);
    auto high = percent(one.line->verdict.interval.high);
    if (low > high) std::swap(low, high);
    return fmt::format("{:.1f} % {} ({}confidence interval {:.1f} to {:.1f} %)",
                       percent(one.line->verdict.ratio), word_of(one.line->verdict), level, low, high);
  }

  /// "; no difference in the other 3 comparisons", "; in the other 7 comparisons: 2 faster, 5 no difference"
  [[nodiscard]] std::string others(const std::vector<Compared>& shown) const {
    constexpr std::array<std::string_view, 4> kNames{"faster", "slower", "no difference", "not judged"};
    std::array<std::size_t, kNames.size()> counts{};
    for (const auto& one : compared_) ++counts[static_cast<std::size_t>(one.word())];
    for (const auto& one : shown) --counts[static_cast<std::size_t>(one.word())];
    const auto rest = compared_.size() - shown.size();
    if (rest == 0) return "";
    const auto where =
        rest == 1 ? "in the other comparison" : fmt::format("in the other {} comparisons", rest);
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (counts[i] == rest) return fmt::format("; {} {}", kNames[i], where);
      if (counts[i] > 0) parts.push_back(fmt::format("{} {}", counts[i], kNames[i]));
    }
    return fmt::format("; {}: {}", where, text::join(parts, ", "));
  }

  [[nodiscard]] std::string pair_text(const Compared& one) const {
    return fmt::format("{} and {}", arm_of(*one.reference), other_arm(*one.line, *one.reference));
  }

  [[nodiscard]] std::string no_difference() const {
    std::vector<double> visible;
    for (const auto& one : compared_)
      if (one.word() == Word::no_difference) visible.push_back(one.line->verdict.visible * 100);
    const bool two = bench_.arms.size() == 2;
    const auto both = pair_text(compared_.front());
    if (visible.empty()) {
      const auto who = two ? both : fmt::format("the {} arms", bench_.arms.size());
      return fmt::format("{} were not compared: that takes at least {} good repeats of each", who,
                         kLeastRepeats);
    }
    const auto who = two ? "between " + both : fmt::format("among the {} arms", bench_.arms.size());
    const auto where = compared_.size() == 1 ? " for " + what(*compared_.front().line)
                                             : " in " + text::count(visible.size(), "comparison");
    const auto [least, most] = std::ranges::minmax(visible);
    const auto least_text = fmt::format("{:.1f}", least);
    const auto most_text = fmt::format("{:.1f}", most);
    const auto range = least_text == most_text ? most_text : fmt::format("{} to {}", least_text, most_text);
    const auto unjudged = compared_.size() - visible.size();
    return fmt::format(
        "no difference found {}{}; the smallest detectable difference was {} %{}", who, where, range,
        unjudged > 0 ? fmt::format("; {} not judged", text::count(unjudged, "comparison")) : "");
  }

  /// Of many intervals of 95 %, some miss the true value.
  void by_chance() {
    constexpr std::size_t kMany = 20;
    constexpr double kMisses = 0.05;
    std::size_t judged = 0;
    std::size_t differ = 0;
    for (const auto& one : compared_) {
      judged += one.word() == Word::unknown ? 0 : 1;
      differ += one.word() == Word::faster || one.word() == Word::slower ? 1 : 0;
    }
    if (judged < kMany || differ == 0) return;
    say(fmt::format("of {} comparisons, about {:.0f} show a difference by chance", judged,
                    static_cast<double>(judged) * kMisses));
  }

  // --- one arm ---

  void measured() {
    if (lines_.empty()) return;
    const auto [least, most] = std::ranges::minmax_element(lines_, {}, &Line::median);
    if (lines_.size() > 1)
      return say(fmt::format("{} measurements, from {} for {}{} to {} for {}{}", lines_.size(),
                             preflight::time_text(least->median), what(*least), with_arm(*least),
                             preflight::time_text(most->median), what(*most), with_arm(*most)));
    const auto& line = lines_.front();
    const auto interval = line.interval.high > 0 ? fmt::format(" (95 % confidence interval {} to {})",
                                                               preflight::time_text(line.interval.low),
                                                               preflight::time_text(line.interval.high))
                                                 : "";
    say(fmt::format("{} takes {}{}{}, a bus bandwidth of {}", what(line), preflight::time_text(line.median),
                    interval, with_arm(line), format_rate(line.busbw)));
  }

  const Bench& bench_;
  std::vector<Line> lines_;
  std::vector<Failures> failures_;
  std::vector<Compared> compared_;
  std::vector<std::string> out_;
};

}  // namespace

std::vector<std::string> answer(const Bench& bench) {
  return Answer(bench).sentences();
}

}  // namespace nlaunch::bench
