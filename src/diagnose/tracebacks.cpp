#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "diagnose/analysis.h"

/// Python exceptions that no signature knows.
namespace nlaunch::diagnose {
namespace {

constexpr std::string_view kTracebacks = "tracebacks";
constexpr int kException = 50;
constexpr std::size_t kWindow = 120;  // lines of one traceback that are looked at

class Tracebacks : public Analysis {
 public:
  void on_match(const Match& match) override {
    if (match.signature->id == "python.traceback") {
      left_ = kWindow;
      who_ = match.origin;
    } else if (match.signature->kind != Kind::note && match.signature->kind != Kind::fact) {
      if (first_ && first_->position == match.position) first_.reset();  // a signature says more of it
      last_known_ = match.position;
    }
  }

  void on_line(const Line& line) override {
    --left_;
    static const re2::RE2 kRaised(
        R"((?:^|[\s:|\])])((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Timeout|Expired|Warning|Failure|Found|Refused)|[a-z_]\w*(?:\.\w+)*\.[A-Z]\w+)(?::\s(.*))?$)",
        re2::RE2::Latin1);
    const re2::StringPiece text(line.text.data(), line.text.size());
    std::string type;
    std::string message;
    if (line.text.find("File \"") != std::string_view::npos || line.text.find("    ") < line.text.size() / 2)
      return;
    if (!re2::RE2::PartialMatch(text, kRaised, &type, &message)) return;
    const auto dot = type.rfind('.');
    const auto bare = type.substr(dot == std::string::npos ? 0 : dot + 1);
    if (follows(bare)) return;
    if (first_ || last_known_ == line.position) return;
    Finding finding;
    finding.category = "python-exception";
    finding.signature = kTracebacks;
    finding.weight = kException;
    finding.position = line.position;
    finding.text = excerpt(line.text, "");
    auto origin = origin_of(line.text.substr(0, line.text.find(type)));
    origin.fill(who_);
    if (!origin.empty()) finding.culprits = {origin};
    finding.why = fmt::format("Python raised {} and nothing caught it", type);
    finding.fix = "the traceback above this line shows where";
    finding.confidence = Confidence::likely;
    first_ = std::move(finding);
  }

  [[nodiscard]] std::size_t lines_wanted() const override { return left_; }
  [[nodiscard]] std::vector<Finding> findings(const World& /*world*/) const override {
    return first_ ? std::vector{*first_} : std::vector<Finding>{};
  }

 private:
  /// Exceptions that tell of another process's end, or of a signal.
  static bool follows(std::string_view type) {
    constexpr std::string_view kFollow[] = {"ChildFailedError",
                                            "DistBackendError",
                                            "SystemExit",
                                            "KeyboardInterrupt",
                                            "SignalException",
                                            "RayActorError",
                                            "ActorDiedError",
                                            "WorkerCrashedError",
                                            "BrokenPipeError",
                                            "EOFError",
                                            "CalledProcessError",
                                            "ProcessExitedException",
                                            "ConnectionResetError",
                                            "CancelledError",
                                            "RendezvousConnectionError",
                                            "EngineDeadError"};
    return std::ranges::find(kFollow, type) != std::end(kFollow);
  }

  std::size_t left_ = 0;
  Origin who_;
  LogPosition last_known_;
  std::optional<Finding> first_;
};

const Registered<AnalysisEntry> tracebacks_analysis{{
    .order = 40,
    .name = "tracebacks",
    .title = "Python exceptions that no signature knows",
    .make = make_analysis<Tracebacks>,
}};

}  // namespace
}  // namespace nlaunch::diagnose
