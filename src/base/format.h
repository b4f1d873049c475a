#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace nlaunch {

/// A kind of JSON that nlaunch writes: {"format": NAME, "version": NUMBER, ...}; of events.jsonl, in its
/// event "run". The number goes up when a program that knows the last one would misread what is written: with
/// a key that means something else or is gone, not with a new one.
struct Format {
  /// What a reader relies on: "processes[].end.code" is a whole number of the member `code` of `end` of each
  /// element of `processes`. A member that is not there or null is for the reader.
  struct Member {
    enum class Type { text, number, whole, flag, list, object };
    std::string_view path;
    Type type;
  };
  std::string_view name;
  std::int64_t version;
  std::span<const Member> members{};
};

namespace formats {

inline constexpr Format kPlan{"nlaunch plan", 1};            ///< plan.json, plan --json
extern const Format kLock;                                   ///< lock.json
inline constexpr Format kEvents{"nlaunch events", 1};        ///< events.jsonl
extern const Format kSummary;                                ///< summary.json
extern const Format kBound;                                  ///< attempt-N/bound.HOST.json
extern const Format kPreflight;                              ///< attempt-N/preflight.json, preflight --json
inline constexpr Format kAudit{"nlaunch audit", 1};          ///< attempt-N/audit.json
inline constexpr Format kDiagnosis{"nlaunch diagnosis", 1};  ///< attempt-N/diagnosis.json, diagnose --json
inline constexpr Format kEvidence{"nlaunch evidence", 1};    ///< attempt-N/evidence/TIME/verdict.json
inline constexpr Format kBaseline{"nlaunch baseline", 1};    ///< preflight --baseline save
inline constexpr Format kBench{"nlaunch bench", 1};          ///< bench.json, bench --json
inline constexpr Format kAb{"nlaunch ab", 1};                ///< ab-ID.json
inline constexpr Format kReport{"nlaunch report", 1};        ///< report --json
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

/// The same of what was read, and a failure [run.damaged] with the member where it is no object, is of
/// another format, or one of `format.members` has another type. What has no format or version counts as the
/// first one of this.
Result<void> check_format(const nlohmann::json& from, const Format& format, std::string_view file);
Result<void> check_format(const nlohmann::ordered_json& from, const Format& format, std::string_view file);

}  // namespace nlaunch
