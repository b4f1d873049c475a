#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text.h"
#include "launch/audit/audit.h"

namespace nlaunch::launch {
namespace {

using nlohmann::json;

/// "launcher-helper"
template <DescribedEnum E>
std::string name_of(E value) {
  std::string name(word_of(value));
  std::ranges::replace(name, '_', '-');
  return name;
}

json to_json(const LibraryUse& use) {
  return {{"path", use.file.path},
          {"device", use.file.device},
          {"inode", use.file.inode},
          {"deleted", use.file.deleted},
          {"version", use.version}};
}

json to_json(const AuditEntry& entry) {
  json libraries = json::array();
  for (const auto& use : entry.libraries) libraries.push_back(to_json(use));
  json object{{"name", entry.name},
              {"role", entry.role},
              {"pid", entry.pid},
              {"command", entry.command},
              {"part", name_of(entry.part)},
              {"proof", name_of(entry.proof)},
              {"libraries", std::move(libraries)}};
  if (entry.proof == Proof::unknown) object["reason"] = entry.reason;
  return object;
}

json to_json(const AuditFinding& finding) {
  return {{"kind", name_of(finding.kind)},
          {"name", finding.name},
          {"pid", finding.pid},
          {"message", finding.message}};
}

std::string libraries_of(const AuditEntry& entry) {
  std::vector<std::string> parts;
  for (const auto& [file, version] : entry.libraries) {
    if (is_nccl(file)) {
      parts.push_back(fmt::format("libnccl {}{}{}", version, version.empty() ? "" : " ", file.path));
    } else {
      parts.push_back(file.path);
    }
  }
  return text::join(parts, " and ");
}

/// Nothing for an entry with findings: those say it all.
std::string line_of(const AuditEntry& entry) {
  const auto who = entry.pid == 0                ? entry.name
                   : entry.part == Part::program ? fmt::format("{} (pid {})", entry.name, entry.pid)
                                                 : fmt::format("{} (pid {}, {} {})", entry.name, entry.pid,
                                                               name_of(entry.part), entry.command);
  switch (entry.proof) {
    case Proof::as_preloaded:
      return fmt::format("{}: {}: as preloaded", who, libraries_of(entry));
    case Proof::own:
      return fmt::format("{}: {}: its own", who, libraries_of(entry));
    case Proof::unknown:
      return fmt::format("{}: cannot be proven: {}", who, entry.reason);
    case Proof::finding:
      break;
  }
  return "";
}

}  // namespace

json to_json(const AuditReport& report) {
  json entries = json::array();
  json findings = json::array();
  for (const auto& entry : report.entries) entries.push_back(to_json(entry));
  for (const auto& finding : report.findings) findings.push_back(to_json(finding));
  auto out = stamped<json>(formats::kAudit);
  out["host"] = report.host;
  out["processes"] = std::move(entries);
  out["findings"] = std::move(findings);
  return out;
}

std::vector<std::string> summary(const AuditReport& report) {
  std::vector<std::string> lines;
  for (const auto& entry : report.entries) {
    if (auto line = line_of(entry); !line.empty()) lines.push_back(std::move(line));
  }
  for (const auto& finding : report.findings) lines.push_back("finding: " + finding.message);
  return lines;
}

}  // namespace nlaunch::launch
