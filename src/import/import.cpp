#include "import/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "config/names.h"
#include "import/commands.h"
#include "import/containers.h"
#include "import/environment.h"
#include "import/roles.h"
#include "import/slurm.h"
#include "lint/script_input.h"

namespace nlaunch::import {
namespace {

/// A name for an experiment, of whatever something is called.
std::string simple_name(std::string_view called) {
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

void import_walltime(const Doings& doings, const JobDirectives& directives, Imported& out) {
  const bool chains = doings.resubmits.has_value();
  const bool requeues = doings.requeues || directives.requeue;
  if (!chains && !requeues && directives.before.empty()) return;
  ImportedWalltime walltime;
  walltime.signal = directives.signal;
  walltime.before = directives.before;
  walltime.then = chains ? Walltime::Then::chain : requeues ? Walltime::Then::requeue : Walltime::Then::stop;
  constexpr std::uint32_t kMost = 1000;
  if (chains && doings.most_resubmits > 0) walltime.max = std::min(doings.most_resubmits, kMost);
  walltime.line = doings.resubmits.value_or(directives.signal_line);
  out.walltime = std::move(walltime);
}

/// Options of srun's own go before those that sbatch hands on to every step.
void add_step_options(const std::vector<ImportedEntry>& own, std::vector<ImportedEntry>& all) {
  const auto name = [](const ImportedEntry& option) {
    return option.value.substr(0, option.value.find('='));
  };
  std::erase_if(all, [&](const auto& one) { return std::ranges::find(own, name(one), name) != own.end(); });
  all.insert(all.end(), own.begin(), own.end());
}

/// What rules found in a value, beside it.
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
        entry.remark = fmt::format("# nlaunch: allow {}: the script uses it itself", finding.rule);
      }
    }
  }
}

}  // namespace

Imported import_script(const lint::LintInput& input, const std::vector<lint::Finding>& findings,
                       const std::string& name, const std::string& folder) {
  Imported out;
  out.folder = literal(folder);
  const auto& file = *input.script->file;
  out.script = file.name.substr(file.name.rfind('/') + 1);
  const auto directives = import_directives(input, out);
  out.name = simple_name(!name.empty()                  ? name
                         : !directives.job_name.empty() ? directives.job_name
                                                        : stem(file.name));
  out.site = text::lower(out.name);
  out.nodes = directives.size.nodes;
  out.scheduler = input.slurm || !input.batch.empty();
  const auto doings = read_doings(input, directives.numbers);
  out.workdir = doings.workdir;
  if (out.workdir.value.empty()) out.workdir = directives.workdir;
  out.venv = doings.venv;
  add_step_options(doings.srun, out.srun);
  out.modules_init = doings.modules_init;
  out.modules_reset = doings.modules_reset;
  out.modules = doings.modules;
  out.nics = input.nics;
  out.gpu = input.gpu;
  for (const auto& one : input.script->unread)
    out.remarks[Destination::experiment].push_back({one.span.line, one.message});
  for (const auto& [destination, remark] : doings.remarks) out.remarks[destination].push_back(remark);
  out.left_out.assign(doings.left_out.begin(), doings.left_out.end());
  import_roles(doings, directives.size, out);
  import_mounts(out);
  import_environment(doings, out);
  import_walltime(doings, directives, out);
  attach_findings(findings, out.environment);
  attach_findings(findings, out.site_environment);
  for (auto& role : out.roles) attach_findings(findings, role.environment);
  finish(doings, out);
  return out;
}

}  // namespace nlaunch::import
