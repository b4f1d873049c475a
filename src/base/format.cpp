#include "base/format.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/version.h"

namespace nlaunch {
namespace {

using Member = Format::Member;
using Type = Member::Type;

constexpr std::array kLockMembers{
    Member{"nlaunch", Type::text},      Member{"files", Type::list},          Member{"files[]", Type::object},
    Member{"files[].path", Type::text}, Member{"files[].sha256", Type::text}, Member{"git", Type::object},
    Member{"libraries", Type::object},  Member{"wheels", Type::object},
};
constexpr std::array kSummaryMembers{
    Member{"name", Type::text},
    Member{"site", Type::text},
    Member{"exit_code", Type::whole},
    Member{"outcome", Type::text},
    Member{"sentence", Type::text},
    Member{"what", Type::text},
    Member{"advice", Type::text},
    Member{"took_ms", Type::number},
    Member{"decided_ms", Type::number},
    Member{"first", Type::text},
    Member{"last_lines", Type::list},
    Member{"last_lines[]", Type::text},
    Member{"oom_kills", Type::number},
    Member{"processes", Type::list},
    Member{"processes[]", Type::object},
    Member{"processes[].name", Type::text},
    Member{"processes[].host", Type::text},
    Member{"processes[].rank", Type::whole},
    Member{"processes[].pid", Type::whole},
    Member{"processes[].program", Type::text},
    Member{"processes[].started_ms", Type::number},
    Member{"processes[].ready_ms", Type::number},
    Member{"processes[].ended_ms", Type::number},
    Member{"processes[].ended_early", Type::text},
    Member{"processes[].log_when_decided", Type::number},
    Member{"processes[].exception", Type::object},
    Member{"processes[].exception.type", Type::text},
    Member{"processes[].exception.message", Type::text},
    Member{"processes[].exception.raised_ms", Type::number},
    Member{"processes[].end", Type::object},
    Member{"processes[].end.code", Type::whole},
    Member{"processes[].end.signal", Type::text},
    Member{"lost_child", Type::object},
    Member{"lost_child.process", Type::text},
    Member{"lost_child.name", Type::text},
    Member{"lost_child.pid", Type::whole},
    Member{"lost_child.end", Type::object},
    Member{"lost_child.end.code", Type::whole},
    Member{"lost_child.end.signal", Type::text},
    Member{"explanation", Type::object},
    Member{"explanation.class", Type::text},
    Member{"explanation.why", Type::text},
    Member{"explanation.fix", Type::text},
    Member{"explanation.sure", Type::flag},
    Member{"watch", Type::object},
    Member{"watch.findings", Type::list},
    Member{"watch.findings[]", Type::object},
    Member{"watch.findings[].verdict", Type::object},
    Member{"watch.findings[].verdict.sure", Type::flag},
    Member{"watch.findings[].verdict.sentence", Type::text},
    Member{"watch.findings[].verdict.culprits", Type::list},
    Member{"watch.findings[].verdict.culprits[]", Type::object},
    Member{"watch.findings[].verdict.culprits[].process", Type::text},
    Member{"watch.findings[].verdict.culprits[].program", Type::text},
    Member{"watch.findings[].verdict.culprits[].pid", Type::whole},
    Member{"watch.findings[].verdict.culprits[].doing", Type::text},
    Member{"watch.findings[].verdict.culprits[].why", Type::text},
    Member{"metrics", Type::object},
};
constexpr std::array kBoundMembers{
    Member{"host", Type::text},
    Member{"gpus", Type::list},
    Member{"libraries", Type::object},
    Member{"processes", Type::list},
    Member{"processes[]", Type::object},
    Member{"processes[].name", Type::text},
    Member{"processes[].argv", Type::list},
    Member{"processes[].argv[]", Type::text},
    Member{"processes[].workdir", Type::text},
    Member{"processes[].env", Type::object},
    Member{"processes[].python", Type::object},
    Member{"processes[].python.path", Type::text},
    Member{"processes[].python.version", Type::text},
    Member{"processes[].python.named", Type::flag},
};
constexpr std::array kPreflightMembers{
    Member{"verdict", Type::text},
    Member{"level", Type::text},
    Member{"rows", Type::list},
    Member{"rows[]", Type::object},
    Member{"rows[].check", Type::text},
    Member{"rows[].subject", Type::text},
    Member{"rows[].value", Type::text},
    Member{"rows[].status", Type::text},
    Member{"rows[].expected", Type::text},
    Member{"rows[].fix", Type::text},
    Member{"rows[].who", Type::text},
    Member{"nodes", Type::list},
    Member{"nodes[]", Type::object},
};

std::string_view word_of(Type type) {
  constexpr std::array<std::string_view, 6> kWords{"a string",      "a number", "a whole number",
                                                   "true or false", "a list",   "an object"};
  return kWords.at(static_cast<std::size_t>(type));
}

template <class Json>
bool is_of(const Json& value, Type type) {
  switch (type) {
    case Type::text:
      return value.is_string();
    case Type::number:
      return value.is_number();
    case Type::whole:
      return value.is_number_integer();
    case Type::flag:
      return value.is_boolean();
    case Type::list:
      return value.is_array();
    case Type::object:
      return value.is_object();
  }
  return false;
}

/// What is wrong with the member at the end of `path`, starting from `value`; empty: nothing. `at`: the path
/// so far.
template <class Json>
std::string problem(const Json& value, std::string_view path, Type type, const std::string& at) {
  if (value.is_null()) return "";
  if (path.empty()) {
    return is_of(value, type)
               ? ""
               : fmt::format("'{}' must be {}, found: {}", at, word_of(type), value.type_name());
  }
  if (path.starts_with("[]")) {
    if (!value.is_array()) return "";  // reported for the list itself
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (auto wrong = problem(value[i], path.substr(2), type, fmt::format("{}[{}]", at, i)); !wrong.empty())
        return wrong;
    }
    return "";
  }
  if (path.starts_with('.')) path.remove_prefix(1);
  if (!value.is_object()) return "";
  const auto end = std::min(path.find_first_of(".["), path.size());
  const auto key = path.substr(0, end);
  const auto found = value.find(key);
  if (found == value.end()) return "";
  return problem(*found, path.substr(end), type,
                 at.empty() ? std::string(key) : fmt::format("{}.{}", at, key));
}

template <class Json>
Result<void> check(const Json& from, const Format& format, std::string_view file) {
  const auto damaged = [&](std::string_view what) { return failure("run.damaged", "{}: {}", file, what); };
  if (!from.is_object()) return damaged(from.is_discarded() ? "it is not JSON" : "it is not a JSON object");
  const auto name = from.find("format");
  if (name != from.end() && *name != format.name)
    return damaged(fmt::format("'format' must be \"{}\", found: {}", format.name, json_text(*name)));
  const auto version = from.find("version");
  if (version != from.end() && !version->is_number_integer())
    return damaged(fmt::format("'version' must be a whole number, found: {}", version->type_name()));
  if (const auto known =
          check_format(version == from.end() ? 1 : version->template get<std::int64_t>(), format, file);
      !known)
    return known;
  for (const auto& member : format.members) {
    if (const auto wrong = problem(from, member.path, member.type, ""); !wrong.empty()) return damaged(wrong);
  }
  return {};
}

}  // namespace

namespace formats {

const Format kLock{"nlaunch lock", 1, kLockMembers};
const Format kSummary{"nlaunch summary", 1, kSummaryMembers};
const Format kBound{"nlaunch bound", 1, kBoundMembers};
const Format kPreflight{"nlaunch preflight", 1, kPreflightMembers};

}  // namespace formats

Result<void> check_format(std::int64_t version, const Format& format, std::string_view file) {
  if (version <= format.version) return {};
  return std::unexpected(
      Diagnostics({Severity::error,
                   "format.newer",
                   fmt::format("'{}' has version {} of the format '{}'; this nlaunch ({}) supports {}", file,
                               version, format.name, nlaunch::version(), format.version),
                   {},
                   {},
                   "update nlaunch, or use the one that wrote it"}));
}

Result<void> check_format(const nlohmann::json& from, const Format& format, std::string_view file) {
  return check(from, format, file);
}

Result<void> check_format(const nlohmann::ordered_json& from, const Format& format, std::string_view file) {
  return check(from, format, file);
}

}  // namespace nlaunch
