#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace nlaunch {

/// A JSON format that nlaunch writes: {"format": NAME, "version": NUMBER, ...}; in events.jsonl, in the event
/// "run". The version increases when a program that knows only the previous one would misread the data: when
/// a key is removed or changes its meaning, but not when a key is added.
struct Format {
  /// What a reader relies on: "processes[].end.code" means that the member `code` of `end` in each element of
  /// `processes` is a whole number. A missing or null member is up to the reader.
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

/// The first members of such a JSON object.
template <class Json>
Json stamped(const Format& format) {
  return {{"format", format.name}, {"version", format.version}};
}

/// A failure [format.newer] if `version` is higher than the version of `format` known here. `file` is the
/// name of the file, for the message.
Result<void> check_format(std::int64_t version, const Format& format, std::string_view file);

/// The same for data that was read, and a failure [run.damaged] that names the member if the data is not an
/// object, has another format, or has a wrong type for one of `format.members`. Data without a format or
/// version is treated as the first version of this format.
Result<void> check_format(const nlohmann::json& from, const Format& format, std::string_view file);
Result<void> check_format(const nlohmann::ordered_json& from, const Format& format, std::string_view file);

}  // namespace nlaunch
