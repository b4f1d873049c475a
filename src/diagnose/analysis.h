#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "diagnose/finding.h"

/// Analyses of more than one line. An analysis receives each match and the lines that it requests, keeps what
/// it needs in bounded memory, and reports its findings at the end.
namespace nlaunch::diagnose {

/// What all the logs together show about the job.
struct World {
  std::set<unsigned> ranks;                       ///< that wrote something which was kept
  std::optional<unsigned> size;                   ///< how many there are, if a line says so
  std::map<unsigned, Origin> origin;              ///< what is known about each
  std::map<unsigned, Finding> blocked_elsewhere;  ///< ranks that were in another operation when a peer left
};

class Analysis {
 public:
  virtual ~Analysis() = default;
  virtual void on_match(const Match& /*match*/) {}
  virtual void on_line(const Line& /*line*/) {}
  /// How many of the lines that come are wanted now.
  [[nodiscard]] virtual std::size_t lines_wanted() const { return 0; }
  /// The line belongs to something that the program can do without.
  [[nodiscard]] virtual bool sets_aside(const Match& /*match*/) const { return false; }
  [[nodiscard]] virtual std::vector<Finding> findings(const World& world) const = 0;
};

/// Each registers itself in its own file.
struct AnalysisEntry {
  int order;  ///< in which they receive a line, and are listed
  std::string_view name;
  std::string_view title;
  std::unique_ptr<Analysis> (*make)();
  /// Ids of signatures: it may want the lines after their matches, see kLinesAfter.
  std::vector<std::string_view> reads_on_after{};
};
template <class OneAnalysis>
std::unique_ptr<Analysis> make_analysis() {
  return std::make_unique<OneAnalysis>();
}
inline std::vector<const AnalysisEntry*> analyses() {
  return Registered<AnalysisEntry>::all();
}

/// A finding of an analysis at the place of a match.
Finding finding_at(const Match& match, std::string_view category, std::string_view analysis, int weight);
/// The part of a line that a finding shows.
std::string excerpt(std::string_view line, std::string_view before);

}  // namespace nlaunch::diagnose
