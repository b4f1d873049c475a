#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace nlaunch {

/// A kind of JSON that nlaunch writes: {"format": NAME, "version": NUMBER, ...}; of events.jsonl, in its
/// event "run". The number goes up when a program that knows the last one would misread what is written: with
/// a key that means something else or is gone, not with a new one.
struct Format {
  std::string_view name;
  std::int64_t version;
};

namespace formats {

inline constexpr Format kPlan{"nlaunch plan", 1};            ///< plan.json, plan --json
inline constexpr Format kLock{"nlaunch lock", 1};            ///< lock.json
inline constexpr Format kEvents{"nlaunch events", 1};        ///< events.jsonl
inline constexpr Format kSummary{"nlaunch summary", 1};      ///< summary.json
inline constexpr Format kBound{"nlaunch bound", 1};          ///< attempt-N/bound.HOST.json
inline constexpr Format kPreflight{"nlaunch preflight", 1};  ///< attempt-N/preflight.json, preflight --json
inline constexpr Format kAudit{"nlaunch audit", 1};          ///< attempt-N/audit.json
inline constexpr Format kDiagnosis{"nlaunch diagnosis", 1};  ///< attempt-N/diagnosis.json, diagnose --json
inline constexpr Format kEvidence{"nlaunch evidence", 1};    ///< attempt-N/evidence/TIME/verdict.json
inline constexpr Format kBaseline{"nlaunch baseline", 1};    ///< preflight --baseline save
inline constexpr Format kBench{"nlaunch bench", 1};          ///< bench.json, bench --json
inline constexpr Format kAb{"nlaunch ab", 1};                ///< ab-ID.json
inline constexpr Format kBundle{"nlaunch bundle", 1};        ///< MANIFEST.json of a bundle

}  // namespace formats

/// The beginning of such a JSON object.
template <class Json>
Json stamped(const Format& format) {
  return {{"format", format.name}, {"version", format.version}};
}

/// A failure [format.newer] where `version` is higher than the one of `format` that is known here. `file` is
/// what holds it, for the message.
Result<void> check_format(std::int64_t version, const Format& format, std::string_view file);

/// The same of what was read. What has no version, or no number as one, counts as the first; what says that
/// it is of another format is for the reader to refuse.
template <class Json>
Result<void> check_format(const Json& from, const Format& format, std::string_view file) {
  if (!from.is_object()) return {};
  const auto name = from.find("format");
  if (name != from.end() && *name != format.name) return {};
  const auto found = from.find("version");
  const bool known = found == from.end() || !found->is_number_integer();
  return check_format(known ? 1 : found->template get<std::int64_t>(), format, file);
}

}  // namespace nlaunch
