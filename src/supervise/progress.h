#pragma once
#include <re2/re2.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "supervise/lines.h"
#include "supervise/links.h"

namespace nlaunch::supervise {

/// What a line of output reports about progress.
struct Reported {
  std::optional<std::uint64_t> step;     ///< empty: there was output and any line counts
  std::optional<double> seconds;         ///< duration of the step
  std::optional<std::uint64_t> total{};  ///< total number of steps
};

/// A line that a library prints when something is set up in a way that causes trouble days later.
struct Remark {
  std::string_view phrase;    ///< in the line
  std::string_view sentence;  ///< what it means and what to do
};
/// The remarks that are searched for in the output of every process.
const std::vector<Remark>& remarks();

/// A regular expression for progress.
class ProgressPattern {
 public:
  /// Empty: any line counts. Groups are named as in plan::Watch::progress.
  explicit ProgressPattern(const std::string& pattern);
  [[nodiscard]] std::optional<Reported> match(std::string_view line) const;
  [[nodiscard]] bool takes_any_line() const { return regex_ == nullptr; }

 private:
  std::unique_ptr<RE2> regex_;  ///< null: any line
  int step_ = 0;                ///< indices of its groups; 0: none
  int seconds_ = 0;
  int total_ = 0;
};

/// Reads progress, checkpoints, remarks and links from the output of one process.
class ProgressReader {
 public:
  /// Both patterns must outlive this. `lines`: false if progress is not wanted. `saved`: its first group is
  /// the path of a checkpoint; null: not searched for.
  ProgressReader(const ProgressPattern& pattern, bool lines, const RE2* saved = nullptr)
      : pattern_(&pattern), lines_(lines), saved_(saved) {}

  void feed(std::string_view bytes);
  /// Ends the last line, which may be the progress bar of a process that has exited.
  void finish();
  /// The newest report since the last call.
  std::optional<Reported> take() { return std::exchange(reported_, std::nullopt); }
  /// The remarks since the last call: indices into `remarks()`.
  std::vector<std::size_t> take_remarks() { return std::exchange(found_, {}); }
  /// The checkpoints since the last call, as named in the output.
  std::vector<std::string> take_saved() { return std::exchange(checkpoints_, {}); }
  /// The links since the last call, at most kMostLinks.
  std::vector<Link> take_links() { return std::exchange(links_, {}); }

 private:
  void cut(std::string_view bytes);
  void look_at(std::string_view line);
  [[nodiscard]] bool needs_every_line() const;

  const ProgressPattern* pattern_;
  bool lines_;
  const RE2* saved_;
  LineCutter cutter_;
  std::optional<Reported> reported_;
  std::vector<std::size_t> found_;
  std::vector<std::string> checkpoints_;
  std::vector<Link> links_;
};

}  // namespace nlaunch::supervise
