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
          {"version", use.version},
          {"use", name_of(use.use)},
          {"by", use.by}};
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

std::string text_of(const LibraryUse& library) {
  if (!is_nccl(library.file)) return library.file.path;
  return fmt::format("libnccl {}{}{}", library.version, library.version.empty() ? "" : " ",
                     library.file.path);
}

/// "bound to libnccl 2.28.9 /opt/nccl/libnccl.so.2, as preloaded; also mapped: ..."
std::string proven_text(const AuditEntry& entry) {
  const std::string own = entry.proof == Proof::own ? "its own " : "";
  std::vector<std::string> parts;
  std::vector<std::string> unused;
  for (const auto& library : entry.libraries) {
    const auto text = text_of(library);
    switch (library.use) {
      case Use::bound:
        parts.push_back(fmt::format("bound to {}{}", own, text));
        break;
      case Use::named:
        parts.push_back(fmt::format("has {} mapped, which VLLM_NCCL_SO_PATH names", text));
        break;
      case Use::only:
        parts.push_back(fmt::format("has only {}{} mapped", own, text));
        break;
      case Use::mapped:
        (is_nccl(library.file) ? unused : parts).push_back(text);
        break;
    }
  }
  auto text = text::join(parts, " and ");
  if (entry.proof == Proof::as_preloaded) text += ", as preloaded";
  if (!unused.empty()) text += fmt::format("; also mapped but not bound: {}", text::join(unused, ", "));
  return text;
}

/// Empty for an entry with findings, which say everything.
std::string line_of(const AuditEntry& entry) {
  const auto who = entry.pid == 0                ? entry.name
                   : entry.part == Part::program ? fmt::format("{} (pid {})", entry.name, entry.pid)
                                                 : fmt::format("{} (pid {}, {} {})", entry.name, entry.pid,
                                                               name_of(entry.part), entry.command);
  switch (entry.proof) {
    case Proof::as_preloaded:
    case Proof::own:
      return fmt::format("{}: {}", who, proven_text(entry));
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
