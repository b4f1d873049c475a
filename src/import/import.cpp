#include "import/import.h"

#include <fmt/format.h>

#include <re2/re2.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "config/role.h"
#include "import/environment.h"
#include "import/markers.h"
#include "import/refusals.h"
#include "import/remarks.h"
#include "import/roles.h"
#include "import/secrets.h"
#include "import/slurm.h"
#include "import/step_options.h"
#include "import/texts.h"
#include "import/work.h"
#include "lint/script_input.h"
#include "shell/allocation.h"

namespace nlaunch::import {
namespace {

/// Turns any name into one that an experiment can have.
std::string simple_name(std::string called) {
  // The user of the simulated job, which no other job has.
  static const RE2 kUser(fmt::format("[-_.]?{}", shell::Allocation::kUser));
  RE2::GlobalReplace(&called, kUser, "");
  std::string name;
  for (const char c : called) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.';
    name += plain ? c : '-';
  }
  name.erase(0, std::min(name.find_first_not_of("-."), name.size()));
  constexpr std::size_t kLongest = 80;
  return name.empty() ? "job" : name.substr(0, kLongest);
}

std::string stem(std::string_view path) {
  path = path.substr(path.rfind('/') + 1);
  return std::string(path.substr(0, path.rfind('.')));
}

void import_walltime(const JobDirectives& directives, Imported& out) {
  if (directives.before.empty()) return;
  ImportedWalltime walltime;
  walltime.signal = directives.signal;
  walltime.before = directives.before;
  walltime.line = directives.signal_line;
  out.walltime = std::move(walltime);
  // Between the signal and the time limit, programs can still run.
  for (auto& role : out.roles)
    if (role.part && (role.kind == RoleKind::learner || role.ends_run.value_or(false)) &&
        !(role.ready && role.ready->exited))
      role.grace = directives.before;
}

/// A server gets the time that the script gives it: how long it waits for one that never answers.
void import_limits_of_waits(const lint::Script& script, const shell::Recording& recording, Imported& out) {
  for (const auto& trial : script.trials) {
    const auto index = role_of(out, recording, script.programs[trial.program].recorded_as);
    if (!index || !trial.hung || !trial.hung->exit_code || trial.hung->questions == 0 ||
        trial.hung->waited == 0)
      continue;
    const auto waited = trial.hung->waited;
    auto* role = &out.roles[*index];
    if (!role->ready || role->ready->timeout.empty()) continue;
    if (trial.hung->later.empty())
      role->ready->timeout = fmt::format("{}s", waited);
    else
      role->remarks.push_back(
          {role->ready->line,
           fmt::format("after {} s without an answer the script goes on: here the run waits "
                       "longer, and fails then",
                       waited)});
  }
}

/// What lint finds of a server that the script does not watch, or for which any answer is enough: a run does
/// otherwise.
void remarks_of_findings(const std::vector<lint::Finding>& findings, Imported& out) {
  for (const auto& finding : findings)
    for (auto& role : out.roles) {
      if (!role.part || !role.ready) continue;
      if (finding.rule == "death-unnoticed" && out.parts[*role.part].line == finding.span.line)
        out.remarks[Destination::roles].push_back(
            {finding.span.line,
             fmt::format("if {} exits after it has answered, the script goes on: here the run stops, "
                         "and fails",
                         role.name)});
      if (finding.rule == "any-answer" && role.ready->line == finding.span.line && !role.ready->http.empty())
        out.remarks[Destination::roles].push_back(
            {finding.span.line,
             fmt::format("any answer of {}, also an error, ends the script's wait: here only a success "
                         "does (`ready: {{http: ...}}`)",
                         role.name)});
    }
}

/// Attaches lint findings about a value to it.
void attach_findings(const std::vector<lint::Finding>& findings, ImportedEnvironment& environment) {
  for (auto& entry : environment.set) {
    for (const auto& finding : findings) {
      if (finding.span.line != entry.line || finding.what.find(entry.name) == std::string::npos) continue;
      if (finding.severity == Severity::error && finding.rule != "export-commas" &&
          finding.rule != "preload-everywhere") {
        if (!entry.remark.empty()) entry.remark += "; ";
        entry.remark += fmt::format("lint: {}{}{}", finding.rule,
                                    finding.instead.empty() ? "" : ", instead: ", finding.instead);
      } else if (finding.severity == Severity::note && finding.rule == "unknown-variable") {
        entry.remark = fmt::format("# nlaunch: allow {}: the script itself uses it", finding.rule);
      }
    }
  }
}

bool stands_unquoted(std::string_view text, std::string_view piece) {
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto behind = i + piece.size();
    const bool ends = behind >= text.size() || std::string_view(" \t\n;&|)\"'/}").contains(text[behind]);
    if (quote == '\0' && ends && text.substr(i).starts_with(piece)) return true;
    const bool opens = quote == '\0' && (text[i] == '"' || text[i] == '\'');
    if (text[i] == '\\' && quote != '\'')
      ++i;
    else if (opens || text[i] == quote)
      quote = opens ? text[i] : '\0';
  }
  return false;
}

/// The text of `srun bash -c TEXT`; empty without one.
std::string inner_text(const Part& part) {
  const auto c = std::ranges::find(part.step, "-c");
  return c == part.step.end() || c == part.step.begin() || c + 1 == part.step.end() ||
                 !shell::is_shell(*(c - 1))
             ? ""
             : *(c + 1);
}

/// Where bash would begin to match files: at * or ?, or at [...]; npos: nowhere.
std::size_t first_of_pattern(const std::string& word) {
  static const RE2 kPattern(R"([*?]|\[[^\]\s]+\])");
  re2::StringPiece found;
  const re2::StringPiece all(word);
  if (!kPattern.Match(all, 0, word.size(), RE2::UNANCHORED, &found, 1)) return std::string::npos;
  return static_cast<std::size_t>(found.data() - word.data());
}

/// Words that bash would expand to files on the cluster, for which a role has no shell.
void give_globs_a_shell(const shell::Recording& recording, const std::vector<std::string>& lines,
                        Imported& out) {
  for (auto& role : out.roles) {
    if (!role.part) continue;
    const auto& part = out.parts[*role.part];
    if (part.script.substr(part.script.rfind('/') + 1) != out.script) continue;
    const auto text = whole_command(lines, part.line);
    const auto& argv = recording.commands[part.commands[0]].argv;
    for (const auto& word : argv) {
      const auto star = first_of_pattern(word);
      if (star == std::string::npos) continue;
      const auto piece = word.substr(star, word.find('/', star) - star);
      if (stands_unquoted(text, piece) || stands_unquoted(inner_text(part), piece))
        role.globs.push_back(word);
      else if (!text.contains(piece) && word.contains('/'))
        out.remarks[Destination::roles].push_back(
            {part.line, fmt::format("{} gets {} as it is: where the script expands it without quotes, bash "
                                    "passes the files that match it on the cluster",
                                    role.name, text::printable(word))});
    }
    if (role.globs.empty()) continue;
    const bool plain = role.command == argv && role.handed_over.empty() && part.tasks.size() == 1;
    if (plain)
      role.command = {"bash", "-c", line_with_globs(argv, role.globs)};
    else
      for (const auto& word : std::exchange(role.globs, {}))
        out.remarks[Destination::roles].push_back(
            {part.line,
             fmt::format("bash expands {} to the files on the cluster. {} has no shell and gets the pattern "
                         "itself: name the files, or start it with bash -c",
                         text::printable(word), role.name)});
  }
}

/// Consecutive nodes that run the same programs become a component and a pool.
shell::Allocation parted_by_programs(const shell::Recording& recording, const shell::Allocation& allocation,
                                     Imported& out) {
  std::vector<std::set<std::size_t>> on_node(allocation.nodes);
  const auto parts = parts_of(recording, allocation);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto work = work_of(parts[i].program).work;
    if (work == Work::nothing || work == Work::submission) continue;
    for (const auto& task : parts[i].tasks) on_node.at(task.node).insert(i);
  }
  auto parted = allocation;
  for (std::uint32_t node = 0; node < allocation.nodes; ++node) {
    if (node == 0 || on_node[node] != on_node[node - 1])
      parted.components.push_back({node, 0, allocation.tasks_per_node, allocation.gpus_per_node});
    ++parted.components.back().nodes;
  }
  for (const auto& one : parted.components) {
    const auto last = one.first + one.nodes - 1;
    out.pools.push_back(
        {one.nodes == 1 ? fmt::format("nodes-{}", one.first) : fmt::format("nodes-{}-{}", one.first, last),
         one.nodes,
         std::nullopt,
         {}});
  }
  return parted;
}

}  // namespace

std::optional<std::size_t> role_of(const Imported& imported, const shell::Recording& recording,
                                   std::size_t command) {
  for (std::optional<std::size_t> at = command; at; at = recording.commands.at(*at).launcher) {
    for (std::size_t i = 0; i < imported.roles.size(); ++i) {
      const auto& part = imported.roles[i].part;
      if (part &&
          std::ranges::find(imported.parts[*part].commands, *at) != imported.parts[*part].commands.end())
        return i;
    }
  }
  return std::nullopt;
}

Result<Imported> import_script(const lint::LintInput& input, const std::vector<lint::Finding>& findings,
                               const shell::Recording& recording, const shell::Allocation& allocation,
                               const std::string& name, const std::string& folder, Nodes nodes) {
  Imported out;
  const auto& file = *input.script->file;
  out.folder = folder;
  out.script = file.name.substr(file.name.rfind('/') + 1);
  const auto directives = import_directives(input, out);
  out.name = simple_name(!name.empty()                  ? name
                         : !directives.job_name.empty() ? directives.job_name
                                                        : stem(file.name));
  out.site = text::lower(out.name);
  out.nodes = allocation.nodes;
  out.scheduler = input.slurm || !input.batch.empty() || out.nodes > 1;
  out.nics = input.nics;
  out.gpu = input.gpu;
  const auto lines = text::split(file.text, '\n');
  import_roles(*input.script, recording, allocation,
               nodes == Nodes::alike ? allocation : parted_by_programs(recording, allocation, out), out);
  if (out.too_many > 0)
    return failure(
        "import.too-many",
        "the script starts {} programs, and an experiment has at most {} roles: let one program do the "
        "loop, `bash FILE` with its lines, or import a smaller job",
        out.too_many, config::kMostRoles);
  import_limits_of_waits(*input.script, recording, out);
  import_steps(recording, out);
  const auto secrets = assigned_secrets(recording);
  import_environment(recording, lines, secrets, out);
  hand_over_secrets(secrets, out);
  import_walltime(directives, out);
  give_globs_a_shell(recording, lines, out);
  add_remarks({input, lines, recording, allocation, directives}, out);
  remarks_of_findings(findings, out);
  attach_findings(findings, out.environment);
  attach_findings(findings, out.site_environment);
  for (auto& role : out.roles) attach_findings(findings, role.environment);
  std::vector<std::string> unknown;
  refer_to_the_job(allocation, file.text, out, unknown);
  auto problems = refusals_of({recording, allocation, directives, lines, unknown, out});
  finish(lines, secrets, out);
  if (problems.has_errors()) return std::unexpected(std::move(problems));
  return out;
}

}  // namespace nlaunch::import
