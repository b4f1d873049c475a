#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "diagnose/analysis.h"
#include "diagnose/standing.h"

namespace nlaunch::diagnose {

/// What all the lines of one signature come to.
struct Tally {
  Finding best;                           ///< at its first line
  std::vector<Origin> whos;               ///< whom the lines name, each once, in the order of the lines
  std::map<std::uint32_t, Finding> last;  ///< of a hint: at its last line in each file
  std::uint64_t count = 0;
};

/// What is known of a file from elsewhere.
struct FileStanding {
  Standing of = Standing::unknown;
  std::optional<std::uint64_t>
      decided_at{};  ///< bytes: what stands behind them followed the decision to end the run
};

/// Keeps of a stream of matches what the judgement needs, in memory that does not grow with it.
class Collector : public Listener {
 public:
  Collector();

  /// A new stream, and whom its lines are about unless they say otherwise.
  void begin(Origin whose, FileStanding standing = {});

  void on_match(const Match& match) override;
  void on_line(const Line& line) override;
  [[nodiscard]] std::size_t lines_wanted() const override;

  [[nodiscard]] const std::map<const Signature*, Tally>& tallies() const { return tallies_; }
  /// All streams have ended.
  void finish() { keep_fallback(); }
  [[nodiscard]] std::vector<Finding> analysed() const;
  [[nodiscard]] Standing standing(std::uint32_t file) const {
    return file < standings_.size() ? standings_[file].of : Standing::unknown;
  }
  /// Of a stopped process only what it said before the run was decided is known.
  [[nodiscard]] bool is_from_before(std::uint32_t file) const {
    return file < standings_.size() && standings_[file].decided_at.has_value();
  }
  /// By file: the first line that tells that its process was asked to end before the run was decided.
  [[nodiscard]] const std::map<std::uint32_t, Finding>& asked_to_end() const { return asked_to_end_; }
  /// By file: the last line that tells of a good end.
  [[nodiscard]] const std::map<std::uint32_t, LogPosition>& good_ends() const { return good_ends_; }

 private:
  [[nodiscard]] bool is_beyond_the_run(const Match& match) const;
  bool is_aside(const Match& match);
  void note_end(const Match& match);
  void weigh(const Match& match);
  void keep(const Finding& finding, const Signature& signature);
  void keep_fallback();
  void learn(const Match& match);
  void attribute(Origin& origin, LogPosition position);

  std::vector<std::unique_ptr<Analysis>> analyses_;
  std::map<const Signature*, Tally> tallies_;
  std::map<std::uint32_t, LogPosition> good_ends_;
  std::map<std::uint32_t, Finding> asked_to_end_;
  World world_;
  LogPosition known_;  ///< the last line that a signature knows
  const Signature* fallback_ = nullptr;
  Finding fallen_;                       ///< of a line that only `fallback_` knows so far
  Origin whose_;                         ///< of the file
  std::vector<FileStanding> standings_;  ///< by file, in the order of reading
  bool is_ending_ = false;               ///< an orderly end was asked for in this file
  bool has_failed_ = false;              ///< a failure was told of in this file
  bool whose_is_guessed_ = false;        ///< its lines may tell
  Origin last_who_;                      ///< of the last line that said so
  LogPosition last_position_;
};

}  // namespace nlaunch::diagnose
