#include <fmt/format.h>
#include <re2/re2.h>

#include <memory>

#include "diagnose/analysis.h"

/// A loss or a gradient that became NaN. Under fp16 the loss scaler skips such a step and continues with
/// numbers, so only consecutive steps up to the end of the log count.
namespace nlaunch::diagnose {
namespace {

constexpr std::string_view kNans = "nans";
constexpr int kSureNan = 56;  // more than an exception that no signature matches
constexpr int kLikelyNan = 55;
constexpr std::size_t kNanWindow = kLinesAfter;  // lines after a value in which the next one is searched for
constexpr std::size_t kMostSeries = 64;          // values of processes
constexpr std::uint64_t kFewGradients = 3;       // steps: fewer are a loss scaler at work
constexpr std::uint64_t kSureLoss = 3;

/// The origin, from the start of the line.
Origin speaker_of(std::string_view line) {
  constexpr std::size_t kBeginning = 60;
  return origin_of(line.substr(0, kBeginning));
}

struct NanSeries {
  bool of_loss = false;
  Origin who;
  Finding first;
  std::uint64_t last = 0;  ///< offset of the last line
  std::uint64_t steps = 0;
  std::unique_ptr<const re2::RE2> number;  ///< finds the value if it is a number
};

class Nans : public Analysis {
 public:
  void on_match(const Match& match) override {
    const bool of_loss = match.signature->id == "nan.loss";
    if (!of_loss && match.signature->id != "nan.step") return;
    left_ = kNanWindow;
    const auto name = name_of(match);
    const Key key{match.position.file, match.origin.str(), name};
    if (!series_.contains(key) && series_.size() >= kMostSeries) return;
    auto& series = series_[key];
    if (series.steps > 0 && series.last == match.offset) return;
    series.last = match.offset;
    if (series.steps++ > 0) return;
    series.of_loss = of_loss;
    series.who = speaker_of(match.line);
    series.first = finding_at(match, "nan-loss", kNans, kLikelyNan);
    series.number =
        std::make_unique<const re2::RE2>("(?:^|[^\\w/.-])" + re2::RE2::QuoteMeta(name) +
                                             R"(['"]?\s?[:=]?\s?['"]?(?:np\.float\d+\()?[-+]?[.\d])",
                                         re2::RE2::Latin1);
  }

  void on_line(const Line& line) override {
    --left_;
    const re2::StringPiece text(line.text.data(), line.text.size());
    std::erase_if(series_, [&](const auto& known) {
      const auto& [key, series] = known;
      return key.file == line.position.file && re2::RE2::PartialMatch(text, *series.number) &&
             speaker_of(line.text) == series.who;
    });
  }

  [[nodiscard]] std::size_t lines_wanted() const override { return series_.empty() ? 0 : left_; }

  [[nodiscard]] std::vector<Finding> findings(const World& /*world*/) const override {
    std::vector<Finding> all;
    for (const auto& [key, series] : series_) {
      if (!series.of_loss && series.steps < kFewGradients) continue;
      auto finding = series.first;
      finding.count = series.steps;
      finding.lasting = true;
      const bool sure = series.of_loss && series.steps >= kSureLoss;
      finding.weight = sure ? kSureNan : kLikelyNan;
      finding.confidence = sure ? Confidence::sure : Confidence::likely;
      finding.why = fmt::format("{} is NaN from here to the end of the log ({} time{})", key.name,
                                series.steps, series.steps == 1 ? "" : "s");
      finding.fix =
          "lower the learning rate, add warm-up or gradient clipping, use bf16 instead of fp16; resume from "
          "a checkpoint before this step, and check its batch";
      all.push_back(std::move(finding));
    }
    return all;
  }

 private:
  struct Key {
    std::uint32_t file = 0;
    std::string who;
    std::string name;
    auto operator<=>(const Key&) const = default;
  };

  /// "grad_norm" of "'grad_norm': 'nan'"
  static std::string name_of(const Match& match) {
    static const re2::RE2 kName(R"(^['"]?([\w/.-]+(?: norm)?))", re2::RE2::Latin1);
    const auto from = match.line.substr(match.before.size());
    std::string name;
    re2::RE2::PartialMatch(re2::StringPiece(from.data(), from.size()), kName, &name);
    return name;
  }

  std::size_t left_ = 0;
  std::map<Key, NanSeries> series_;
};

const Registered<AnalysisEntry> nans_analysis{{
    .order = 50,
    .name = "nans",
    .title = "losses and gradients that became NaN",
    .make = make_analysis<Nans>,
    .reads_on_after = {"nan.loss", "nan.step"},
}};

}  // namespace
}  // namespace nlaunch::diagnose
