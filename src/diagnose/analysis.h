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

/// What takes more than one line to see. An analysis hears of each match and of the lines that it asks for,
/// keeps what it needs in bounded memory, and says at the end what it makes of it.
namespace nlaunch::diagnose {

/// What all the logs together tell of the job.
struct World {
  std::set<unsigned> ranks;                       ///< that wrote something which was kept
  std::optional<unsigned> size;                   ///< how many there are, where a line says so
  std::map<unsigned, Origin> origin;              ///< what is known of each
  std::map<unsigned, Finding> blocked_elsewhere;  ///< ranks that were in another operation when a peer left
};

class Analysis {
 public:
  virtual ~Analysis() = default;
  virtual void on_match(const Match& /*match*/) {}
  virtual void on_line(const Line& /*line*/) {}
  [[nodiscard]] virtual std::size_t lines_wanted() const { return 0; }
  /// The line belongs to something that the program does without.
  [[nodiscard]] virtual bool sets_aside(const Match& /*match*/) const { return false; }
  [[nodiscard]] virtual std::vector<Finding> findings(const World& world) const = 0;
};

/// Each adds itself in a file of its own.
struct AnalysisEntry {
  int order;  ///< in which they hear of a line, and are listed
  std::string_view name;
  std::string_view title;
  std::unique_ptr<Analysis> (*make)();
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
/// As much of a line as a finding shows.
std::string excerpt(std::string_view line, std::string_view before);

}  // namespace nlaunch::diagnose
