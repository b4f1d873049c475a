#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "diagnose/analysis.h"
#include "diagnose/standing.h"

namespace nlaunch::diagnose {

/// The summary of all lines of one signature.
struct Tally {
  Finding best;              ///< at its first line
  std::vector<Origin> whos;  ///< the origins that the lines name, without duplicates, in line order
  std::map<std::uint32_t, Finding> last;  ///< for a hint: at its last line in each file
  std::uint64_t count = 0;
};

/// The signature of a server that asks its parts to exit.
inline constexpr std::string_view kPassedOn = "end.passed-on";

/// What is known about a file from elsewhere.
struct FileStanding {
  Standing of = Standing::unknown;
  std::optional<std::uint64_t>
      decided_at{};  ///< bytes: what is after them followed the decision to stop the run
};

/// Keeps what the judgement needs from a stream of matches, in memory that does not grow with the stream.
class Collector : public Listener {
 public:
  Collector();

  /// A new stream, and the default origin of its lines.
  void begin(Origin whose, FileStanding standing = {});

  void on_match(const Match& match) override;
  void on_line(const Line& line) override;

  [[nodiscard]] const std::map<const Signature*, Tally>& tallies() const { return tallies_; }
  /// All streams are complete.
  void finish() { keep_fallback(); }
  [[nodiscard]] std::vector<Finding> analysed() const;
  [[nodiscard]] Standing standing(std::uint32_t file) const {
    return file < standings_.size() ? standings_[file].of : Standing::unknown;
  }
  /// For a stopped process, only what it printed before the run was decided is known.
  [[nodiscard]] bool is_from_before(std::uint32_t file) const {
    return file < standings_.size() && standings_[file].decided_at.has_value();
  }
  /// By file: the first line that says that its process was asked to exit before the run was decided.
  [[nodiscard]] const std::map<std::uint32_t, Finding>& asked_to_end() const { return asked_to_end_; }
  /// Pids that a server says it killed, since they had not exited in time.
  [[nodiscard]] const std::set<std::string>& killed_by_server() const { return killed_by_server_; }
  /// By file: the last line that reports success.
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
  std::set<std::string> killed_by_server_;
  World world_;
  LogPosition known_;  ///< the last line that a signature matches
  const Signature* fallback_ = nullptr;
  Finding fallen_;                       ///< of a line that only `fallback_` matches so far
  Origin whose_;                         ///< of the file
  std::vector<FileStanding> standings_;  ///< by file, in the order of reading
  bool is_ending_ = false;               ///< an orderly exit was requested in this file
  bool has_failed_ = false;              ///< a failure was reported in this file
  bool whose_is_guessed_ = false;        ///< its lines may report
  Origin last_who_;                      ///< of the last line that said so
  LogPosition last_position_;
};

}  // namespace nlaunch::diagnose
