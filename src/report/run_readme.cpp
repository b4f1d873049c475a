#include "report/run_readme.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/units.h"

namespace nlaunch::report {
namespace {

namespace fs = std::filesystem;
using record::at;
using record::Json;
using record::number_at;
using record::text_at;

constexpr std::size_t kTitle = 14;

/// A title with lines next to it.
std::string block(std::string_view title, const std::vector<std::string>& lines) {
  std::string out;
  for (const auto& line : lines) {
    out += fmt::format("{:<{}}{}\n", out.empty() ? title : "", kTitle, text::printable(line));
  }
  return out;
}

std::vector<std::string> strings(const Json& list) {
  std::vector<std::string> out;
  for (const auto& one : list) {
    if (one.is_string()) out.push_back(one.get<std::string>());
  }
  return out;
}

std::vector<std::string> whole_command(const Json& role) {
  auto words = strings(at(role, "wrapper"));
  for (auto& word : strings(at(role, "command"))) words.push_back(std::move(word));
  return words;
}

std::vector<std::string> roles_of(const Json& plan) {
  std::vector<std::string> out;
  for (const auto& role : at(plan, "roles")) {
    out.push_back(fmt::format(
        "{} × {:.0f} ({}{}): {}", text_at(role, "name"), number_at(role, "count"), text_at(role, "kind"),
        number_at(role, "gpus") > 0 ? fmt::format(", {:.0f} GPUs each", number_at(role, "gpus")) : "",
        text::shell_join(whole_command(role))));
  }
  return out;
}

std::vector<std::string> nodes_of(const record::RunFiles& run) {
  std::vector<std::string> out;
  const auto nodes = number_at(at(run.plan, "node"), "count");
  std::set<std::string> said;
  for (const auto& attempt : run.attempts) {
    for (const auto& [host, bound] : attempt.bound) {
      if (!said.insert(host).second) continue;
      out.push_back(at(bound, "gpus").empty() ? host
                                              : fmt::format("{}, {} GPUs", host, at(bound, "gpus").size()));
    }
  }
  out.insert(out.begin(), fmt::format("{:.0f} {} of site '{}'{}", nodes, nodes == 1 ? "node" : "nodes",
                                      text_at(run.plan, "site"), out.empty() ? "; none was bound" : ""));
  return out;
}

std::string began(const record::RunFiles& run) {
  return run.events.empty() ? "never" : text_at(run.events.front(), "time");
}

std::vector<std::string> ended(const record::RunFiles& run, const std::string& state) {
  std::vector<std::string> out{state};
  const auto sentence = text_at(run.summary, "sentence");
  if (!sentence.empty()) out.front() += fmt::format(": {}", sentence);
  if (run.summary.is_null()) out.emplace_back("no summary.json; the last event is:");
  if (run.summary.is_null() && !run.events.empty())
    out.push_back(fmt::format("  {} {} {}", text_at(run.events.back(), "time"),
                              text_at(run.events.back(), "event"), text_at(run.events.back(), "process")));
  if (run.attempts.size() > 1) out.push_back(fmt::format("{} attempts", run.attempts.size()));
  return out;
}

std::vector<std::string> first_failure(const Json& summary) {
  const auto first = text_at(summary, "first");
  if (first.empty()) return {};
  std::vector<std::string> out{first};
  for (const auto& process : at(summary, "processes")) {
    if (text_at(process, "name") != first) continue;
    const auto& end = at(process, "end");
    const auto host = text_at(process, "host");
    if (number_at(process, "rank", -1) >= 0)
      out.front() += fmt::format(", rank {:.0f}", number_at(process, "rank"));
    if (!host.empty()) out.front() += fmt::format(" on {}", host);
    if (at(end, "code").is_number()) out.front() += fmt::format(", exit code {:.0f}", number_at(end, "code"));
    if (!text_at(end, "signal").empty()) out.front() += fmt::format(", killed by {}", text_at(end, "signal"));
  }
  const auto lines = strings(at(summary, "last_lines"));
  if (!lines.empty()) out.emplace_back("last lines:");
  for (const auto& line : lines) out.push_back(fmt::format("  {}", line));
  return out;
}

/// The best finding of a diagnosis, if there is one.
std::vector<std::string> finding_of(const Json& diagnosis) {
  const auto& findings = at(diagnosis, "findings");
  if (!findings.is_array() || findings.empty()) return {};
  const auto& best = findings.front();
  std::vector<std::string> out{fmt::format("{} ({})", text_at(best, "class"), text_at(best, "confidence")),
                               text_at(best, "text")};
  for (const auto* key : {"why", "fix"}) {
    if (const auto said = text_at(best, key); !said.empty()) out.push_back(fmt::format("{}: {}", key, said));
  }
  return out;
}

/// For every collection of evidence, with its location.
std::vector<std::string> verdicts(const record::RunFiles& run) {
  std::vector<std::string> out;
  for (const auto& attempt : run.attempts) {
    for (const auto& folder : record::evidence_folders(attempt)) {
      const auto verdict = record::read_json(folder / "verdict.json");
      if (verdict.is_object())
        out.push_back(fmt::format("{} (attempt-{}/evidence/{})", text_at(verdict, "sentence"), attempt.number,
                                  folder.filename().string()));
    }
  }
  return out;
}

std::vector<std::string> preflight_of(const record::RunFiles& run) {
  if (run.attempts.empty()) return {};
  const auto& preflight = run.attempts.back().preflight;
  if (!preflight.is_object()) return {"no preflight.json: the preflight was skipped or did not finish"};
  std::vector<std::string> out{
      fmt::format("{} (level {})", text_at(preflight, "verdict"), text_at(preflight, "level"))};
  for (const auto& row : at(preflight, "rows")) {
    const auto status = text_at(row, "status");
    if (status != "fail" && status != "warn" && status != "unknown") continue;
    out.push_back(fmt::format("{} {} ({}): {}", status, text_at(row, "check"), text_at(row, "subject"),
                              text_at(row, "value")));
  }
  return out;
}

std::vector<std::string> audit_of(const record::RunFiles& run) {
  std::vector<std::string> out;
  for (const auto& attempt : run.attempts) {
    for (const auto& finding : at(attempt.audit, "findings"))
      out.push_back(finding.is_string() ? finding.get<std::string>() : text_at(finding, "message"));
  }
  return out;
}

std::vector<std::string> versions_in(const std::vector<record::VersionRow>& versions) {
  std::vector<std::string> out;
  std::set<std::string> said;
  for (const auto& [what, version, from] : versions) {
    auto line = fmt::format("{} {}", what, version);
    if (said.insert(line).second) out.push_back(std::move(line));
  }
  return out;
}

struct Place {
  std::string_view path;  ///< relative to the run directory, or to "attempt-N/"
  bool of_attempt;
  std::string_view what;
};
constexpr Place kPlaces[] = {
    {"events.jsonl", false, "everything that happened, in order"},
    {"summary.json", false, "how it ended, process by process"},
    {"plan.json", false, "what should run where, with which GPUs and environment"},
    {"lock.json", false, "what it was built from: files, git, wheels, libraries"},
    {"logs", true, "the output of each process"},
    {"errors", true, "the exceptions that ended processes, with their tracebacks"},
    {"evidence", true, "stacks, sockets, RAS and flight recorders of a stall; verdict.json"},
    {"nccl", true, "NCCL logs and flight recorders"},
    {"preflight.json", true, "the checks before the start; preflight/ has the output of each probe"},
    {"audit.json", true, "which libnccl each process was bound to"},
};

std::vector<std::string> where_to_look(const record::RunFiles& run) {
  std::vector<std::string> out;
  const auto add = [&](const fs::path& path, std::string_view what) {
    std::error_code error;
    const auto there = fs::status(run.folder / path, error);
    const bool folder = fs::is_directory(there);
    if (!fs::exists(there) || (folder && fs::is_empty(run.folder / path, error))) return;
    out.push_back(fmt::format("{:<28} {}", path.string() + (folder ? "/" : ""), what));
  };
  if (const auto first = text_at(run.summary, "first"); !first.empty() && !run.attempts.empty())
    add(fmt::format("attempt-{}/logs/{}.log", run.attempts.back().number, first),
        "the output of the process that failed first");
  for (const auto& [path, of_attempt, what] : kPlaces) {
    if (!of_attempt) add(path, what);
    if (of_attempt && !run.attempts.empty())
      add(fmt::format("attempt-{}/{}", run.attempts.back().number, path), what);
  }
  for (const auto& [path, what] :
       {std::pair("environment/ROLE.env", "the environment of each role, secrets masked"),
        std::pair("versions.json", "every version and where it is from"),
        std::pair("MANIFEST.json", "every file with its checksum; what was truncated, masked or left out")})
    out.push_back(fmt::format("{:<28} {}", path, what));
  return out;
}

}  // namespace

std::string run_readme(const record::RunFiles& run, const std::string& state, const Json& diagnosis,
                       const std::vector<record::VersionRow>& versions) {
  auto out = fmt::format("Run {} of '{}', packed by nlaunch bundle.\n\n", run.folder.filename().string(),
                         text::printable(text_at(run.plan, "name")));
  out += block("How it ended", ended(run, state));
  out += block("First to fail", first_failure(run.summary));
  out += block("Finding", finding_of(diagnosis));
  out += block("Verdict", verdicts(run));
  out += fmt::format("\n{}", block("What ran", roles_of(run.plan)));
  out += block("Where", nodes_of(run));
  out += block("Started", {began(run)});
  out += block("Built from", {text_at(run.plan, "experiment")});
  out += fmt::format("\n{}", block("Preflight", preflight_of(run)));
  out += block("Audit", audit_of(run));
  out += fmt::format("\n{}", block("Versions", versions_in(versions)));
  return out + fmt::format("\n{}", block("Where to look", where_to_look(run)));
}

}  // namespace nlaunch::report
