#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/described.h"
#include "base/diagnostic.h"
#include "diagnose/match.h"

namespace nlaunch::diagnose {

enum class Role {
  cause,        ///< explains the rest
  other,        ///< a separate cause, but not the one that explains most
  consequence,  ///< what followed
  note,         ///< not a failure
};
BOOST_DESCRIBE_ENUM(Role, cause, other, consequence, note)

enum class Confidence { sure, likely, unsure };
BOOST_DESCRIBE_ENUM(Confidence, sure, likely, unsure)

/// One problem, over all the lines that report it.
struct Finding {
  std::string category;   ///< the class: "cuda-oom"
  std::string signature;  ///< the id of the row, or the name of the analysis, that found it
  Role role = Role::other;
  Severity severity = Severity::error;
  int weight = 0;
  LogPosition position;          ///< of the line that reports it best
  std::string text;              ///< that line, shortened
  std::optional<double> time;    ///< of that line
  std::vector<Origin> culprits;  ///< empty: not in this log
  std::string why;
  std::string fix;
  std::string source;
  std::map<std::string, std::string>
      parts{};  ///< what the groups of its signature matched: "module" → "vllm"
  Confidence confidence = Confidence::sure;
  bool lasting = false;     ///< success of the program does not make up for it
  std::uint64_t count = 1;  ///< lines that report it
};

/// True if the line of `a` was written before that of `b`, by their times or else by their positions.
bool earlier(const Finding& a, const Finding& b);

}  // namespace nlaunch::diagnose
