#include "import/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "base/text.h"
#include "import/step_options.h"
#include "import/work.h"
#include "lint/programs.h"
#include "lint/script_input.h"
#include "lint/script_text.h"
#include "plan/slurm.h"
#include "shell/srun.h"

namespace nlaunch::import {
namespace {

/// Options of the cluster, not of one job.
constexpr std::array<std::string_view, 17> kOfSite{
    "partition",     "account", "exclusive",   "gpus-per-node", "gres",        "constraint",
    "mem",           "network", "mem-per-gpu", "cpus-per-gpu",  "reservation", "clusters",
    "cpus-per-task", "exclude", "gpu-bind",    "licenses",      "mem-per-cpu"};
/// nlaunch sets these itself.
constexpr std::array<std::string_view, 7> kOptionsLeftOut{
    "ntasks",     "ntasks-per-node", "tasks-per-node", "ntasks-per-gpu",
    "no-requeue", "open-mode",       "gpus-per-task"};

constexpr std::array<std::string_view, 6> kCounts{"ntasks",        "ntasks-per-node", "tasks-per-node",
                                                  "cpus-per-task", "gpus-per-node",   "gpus-per-task"};

/// Options of the batch script, which runs in the first component.
constexpr std::array<std::string_view, 4> kOfScript{"output", "error", "open-mode", "mail-type"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

using shell::leading_number;

class DirectivesReader {
 public:
  DirectivesReader(const lint::LintInput& input, Imported& out)
      : input_(input), out_(out), known_(plan::sbatch_options()) {}

  JobDirectives read() {
    const auto& first = input_.components.empty() ? input_.batch : input_.components.front();
    for (const auto& [name, value, line] : parted(first)) {
      values_[name] = value;
      if (name == "account") result_.account = value;
      if (name == "partition") result_.partition = value;
      one(name, value, line);
    }
    sizes();
    if (!input_.components.empty()) components();
    return std::move(result_);
  }

 private:
  struct Option {
    std::string name, value;
    std::uint32_t line = 0;
  };

  /// The options of "--nodes=2", "--exclusive", "--comment='a b'".
  static std::vector<Option> parted(const std::vector<lint::StepOption>& options) {
    std::vector<Option> all;
    for (const auto& option : options) {
      const auto equals = option.text.find('=');
      const auto dashes = std::min(option.text.find_first_not_of('-'), option.text.size());
      auto name = option.text.substr(dashes, equals == std::string::npos ? equals : equals - dashes);
      auto value = equals == std::string::npos ? std::string() : option.text.substr(equals + 1);
      if (value.size() > 1 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0])
        value = value.substr(1, value.size() - 2);
      all.push_back({std::move(name), std::move(value), option.span.line});
    }
    return all;
  }

  static std::string value_in(const std::vector<Option>& options, std::string_view name) {
    std::string value;
    for (const auto& one : options)
      if (one.name == name) value = one.value;
    return value;
  }

  /// Each component of a heterogeneous job becomes a pool. Requests that all of them share belong to the job,
  /// the rest to each pool.
  void components() {
    const auto allocation = lint::allocation_of(input_);
    result_.components = allocation.components;
    result_.size.gpus = allocation.gpus_per_node;
    std::vector<std::vector<Option>> all;
    for (const auto& options : input_.components) all.push_back(parted(options));
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& one = allocation.components[i];
      auto& pool =
          out_.pools.emplace_back(ImportedPool{fmt::format("group-{}", i), one.nodes, one.gpus_per_node, {}});
      if (i > 0) own_options(all[i], one, pool);
    }
    for (auto* list : {&out_.directives, &out_.slurm}) {
      std::erase_if(*list, [&](const ImportedEntry& entry) {
        if (is_one_of(entry.name, kOfScript)) return false;
        const bool common = std::ranges::all_of(out_.pools, [&](const ImportedPool& pool) {
          return &pool == &out_.pools.front() || same_there(pool, entry);
        });
        if (common) {
          for (auto& pool : out_.pools)
            std::erase_if(pool.slurm, [&](const auto& own) { return own.name == entry.name; });
        } else {
          out_.pools.front().slurm.push_back(entry);
        }
        return !common;
      });
    }
  }

  static bool same_there(const ImportedPool& pool, const ImportedEntry& entry) {
    const auto found = std::ranges::find(pool.slurm, entry.name, &ImportedEntry::name);
    return found != pool.slurm.end() && found->value == entry.value;
  }

  void own_options(const std::vector<Option>& options, const shell::Allocation::Component& component,
                   ImportedPool& pool) {
    for (const auto& [name, value, line] : options) {
      if (name == "nodes" || name == "job-name" || is_one_of(name, kOfScript) ||
          is_one_of(name, kOptionsLeftOut))
        continue;
      if (refused(name, value) || std::ranges::find(known_, name) == known_.end()) {
        remark(Destination::slurm, line,
               fmt::format("--{} is not allowed here: see docs/slurm.md, Directives", text::printable(name)));
        continue;
      }
      std::erase_if(pool.slurm, [&](const auto& entry) { return entry.name == name; });
      pool.slurm.push_back({name, value.empty() ? "true" : value, line, ""});
      const auto cpus = leading_number(value);
      if (name != "cpus-per-task" || component.tasks_per_node == 1 || cpus == 0) continue;
      pool.slurm.back().value = std::to_string(cpus * component.tasks_per_node);
      pool.slurm.back().remark = fmt::format("{} for each of {} tasks: nlaunch's agent gets all of them",
                                             cpus, component.tasks_per_node);
    }
    const auto each = value_in(options, "gpus-per-task");
    if (each.empty()) return;
    const auto kind = each.find(':') == std::string::npos ? "" : each.substr(0, each.rfind(':') + 1);
    pool.slurm.push_back({"gpus-per-node", fmt::format("{}{}", kind, component.gpus_per_node), 0, ""});
  }

  void remark(Destination destination, std::uint32_t line, std::string text) {
    out_.remarks[destination].push_back({line, std::move(text)});
  }

  void one(const std::string& name, const std::string& value, std::uint32_t line) {
    const auto text = fmt::format("--{}{}{}", name, value.empty() ? "" : "=", value);
    if (name == "nodes") return;
    if ((name == "output" || name == "error") && value.contains("%a"))
      remark(Destination::slurm, line,
             fmt::format("{}: the job is not an array here: use %j in place of %a", text::printable(text)));
    if (is_one_of(name, kCounts) && value.find_first_of("0123456789") == std::string::npos) {
      out_.not_said.push_back(
          {line, fmt::format("{} has no number: write the number", text::printable(text))});
    } else if (name == "distribution" && !value.starts_with("block") && !value.starts_with("*")) {
      out_.not_said.push_back({line, fmt::format("{}: a plan numbers its processes node by node (block)",
                                                 text::printable(text))});
    } else if (name == "job-name") {
      result_.job_name = value;
    } else if (name == "signal") {
      signal(value, line);
    } else if (name == "requeue") {
      remark(Destination::slurm, line,
             "--requeue: Slurm restarts the job after a node failure. `walltime: {then: requeue}` does "
             "that too, "
             "and also continues in a new job before the time limit");
    } else if (name == "array") {
      result_.array = shell::array_tasks(value);
      result_.array_text = value;
      result_.array_line = line;
    } else if (name == "chdir") {
      result_.workdir = {"workdir", value, line, ""};
    } else if (is_one_of(name, kOptionsLeftOut)) {
      if (name == "gpus-per-task") per_task_line_ = line;
      if (name.find("tasks") != std::string::npos) tasks_line_ = line;
    } else if (name == "export" && (value == "ALL" || value.starts_with("ALL,"))) {
      return;  // each role sets what it names
    } else if (refused(name, value)) {
      remark(Destination::slurm, line,
             fmt::format("{} is not allowed here: see docs/slurm.md, Directives", text::printable(text)));
    } else if (name == "uenv" || name == "view") {
      destination(name, value, line);
    } else if (is_of_image(name)) {
      out_.srun.push_back({"", text, line, ""});
      if (const auto said = said_of_image(name); !said.empty()) remark(Destination::scheduler, line, said);
    } else if (std::ranges::find(known_, name) == known_.end() && !option_text_is_odd(text)) {
      out_.submit.push_back(text);
      remark(Destination::scheduler, line,
             fmt::format("sbatch itself does not know {}: it is passed on as a site-specific option",
                         text::printable(text)));
    } else if (std::ranges::find(known_, name) == known_.end()) {
      remark(Destination::slurm, line, fmt::format("{} is not a known sbatch option", text::printable(text)));
    } else {
      destination(name, value, line);
    }
  }

  static bool option_text_is_odd(const std::string& text) {
    return text::printable(text) != text || text.find_first_of("$`<> ") != std::string::npos;
  }

  /// Options that nlaunch does not accept, or not in this form.
  static bool refused(const std::string& name, const std::string& value) {
    constexpr std::array<std::string_view, 6> kOwned{"export",   "export-file", "wrap",
                                                     "parsable", "wait",        "test-only"};
    return is_one_of(name, kOwned) || text::printable(value) != value ||
           value.find_first_of("$`") != std::string::npos ||
           (value.empty() && plan::sbatch_needs_value(name)) || value == "true" || value == "false";
  }

  void destination(const std::string& name, const std::string& value, std::uint32_t line) {
    auto& list = is_one_of(name, kOfSite) ? out_.directives : out_.slurm;
    std::erase_if(list, [&](const auto& entry) { return entry.name == name; });
    list.push_back({name, value.empty() ? "true" : value, line, ""});
    if (name == "exclude")
      list.back().remark = "scheduler.bad_nodes reads a ledger, whose entries expire (docs/node-checks.md)";
  }

  /// [R][B:]SIGNAL[@SECONDS]
  void signal(const std::string& value, std::uint32_t line) {
    const auto at = value.find('@');
    auto name = value.substr(0, at);
    const auto colon = name.rfind(':');
    const auto to = colon == std::string::npos ? "" : name.substr(0, colon);
    if (colon != std::string::npos) name.erase(0, colon + 1);
    if (name.starts_with("SIG")) name.erase(0, 3);
    constexpr std::array<std::string_view, 5> kSignals{"TERM", "INT", "USR1", "HUP", "USR2"};
    // Sent only to the batch shell: what its trap does to the learners is unknown, so they get TERM.
    if (to.find('B') == std::string::npos && is_one_of(name, kSignals)) result_.signal = name;
    const auto seconds =
        at == std::string::npos ? 60 : leading_number(std::string_view(value).substr(at + 1));
    result_.before = fmt::format("{}s", std::max(seconds, 1U));
    result_.signal_line = line;
  }

  void sizes() {
    auto& size = result_.size;
    const auto value = [&](const std::string& name) {
      return values_.contains(name) ? values_[name] : std::string();
    };
    const auto asked = shell::asked_for([&](std::string_view name) { return value(std::string(name)); });
    size.nodes = asked.nodes;
    size.tasks = asked.tasks;
    size.gpus = asked.gpus;
    result_.counts_tasks = values_.contains("ntasks-per-node") || values_.contains("tasks-per-node");
    if (asked.uneven)
      out_.not_said.push_back(
          {tasks_line_,
           fmt::format("--ntasks={} on {} nodes: Slurm gives some nodes more tasks than others, which "
                       "no role can say. Give --ntasks-per-node",
                       value("ntasks"), size.nodes)});
    if (asked.gpus_of_tasks) {
      // One agent per node gets what all tasks there had, so it must request the total.
      const auto each = value("gpus-per-task");
      const auto kind = each.find(':') == std::string::npos ? "" : each.substr(0, each.rfind(':') + 1);
      out_.directives.push_back(
          {"gpus-per-node", fmt::format("{}{}", kind, size.gpus), per_task_line_,
           fmt::format("--gpus-per-task={} for each of {} tasks: nlaunch's agent gets all of them", each,
                       std::max(1U, size.tasks))});
    }
    const auto cpus = leading_number(value("cpus-per-task"));
    result_.cpus_per_task = cpus;
    result_.cpus_per_gpu = asked.cpus_per_gpu;
    result_.variables = asked.variables;
    if (cpus > 0 && size.tasks > 1) {
      // One agent per node gets what all tasks there had.
      for (auto& entry : out_.directives) {
        if (entry.name != "cpus-per-task") continue;
        entry.value = std::to_string(cpus * size.tasks);
        entry.remark =
            fmt::format("{} for each of {} tasks: nlaunch's agent gets all of them", cpus, size.tasks);
      }
    }
    const bool whole_nodes = values_.contains("exclusive") || values_.contains("cpus-per-gpu");
    if (cpus == 0 && size.tasks > 1 && !whole_nodes)  // Slurm's default is one CPU per task
      out_.directives.push_back(
          {"cpus-per-task", std::to_string(size.tasks), tasks_line_,
           fmt::format("1 for each of {} tasks: nlaunch's agent gets all of them", size.tasks)});
  }

  const lint::LintInput& input_;
  Imported& out_;
  std::vector<std::string> known_;
  std::map<std::string, std::string> values_;
  JobDirectives result_;
  std::uint32_t per_task_line_ = 0;
  std::uint32_t tasks_line_ = 0;
};

}  // namespace

JobDirectives import_directives(const lint::LintInput& input, Imported& out) {
  auto directives = DirectivesReader(input, out).read();
  for (const auto& option : input.batch)
    for (const auto* name : {"--output", "--error"})
      if (auto file = lint::value_of(option, name); !file.empty())
        directives.outputs.push_back(std::move(file));
  return directives;
}

std::vector<lint::StepOption> job_of_steps(const shell::Recording& recording) {
  constexpr std::array<std::string_view, 7> kOfJob{"partition", "account",    "time",         "gpus",
                                                   "gres",      "constraint", "gpus-per-node"};
  constexpr std::array<std::string_view, 14> kOfStep{
      "output", "error", "chdir",     "export",   "input",    "mpi",      "network",
      "hint",   "wait",  "open-mode", "cpu-bind", "mem-bind", "gpu-bind", "distribution"};
  std::vector<lint::StepOption> job;
  for (const auto& command : recording.commands) {
    if (shell::program_name(command.argv[0]) != "srun") continue;
    const auto options = shell::options_of_srun(command.argv);
    if (std::ranges::none_of(options, [&](const auto& one) { return is_one_of(one.name, kOfJob); })) continue;
    std::vector<lint::StepOption> asked;
    for (const auto& one : options) {
      // Options that Slurm itself does not know belong to the cluster, and are also passed at submission.
      const bool of_cluster = !one.known && one.name.size() > 1;
      if (is_of_image(one.name) || is_one_of(one.name, kOfStep)) continue;
      if (!of_cluster && !plan::sbatch_takes(one.name)) continue;
      asked.push_back({fmt::format("--{}{}{}", one.name, one.value ? "=" : "", one.value.value_or("")),
                       {nullptr, command.line}});
    }
    const bool other = !std::ranges::equal(job, asked, {}, &lint::StepOption::text, &lint::StepOption::text);
    if (!job.empty() && other) return {};
    job = std::move(asked);
  }
  return job;
}

const shell::Submission* only_submission(const shell::Recording& recording) {
  const bool starts = std::ranges::any_of(recording.commands, [](const shell::RecordedCommand& command) {
    const auto work = work_of(command.argv).work;
    return command.fate == shell::Fate::recorded && work != Work::nothing && work != Work::submission;
  });
  return !starts && recording.submitted.size() == 1 ? &recording.submitted[0] : nullptr;
}

std::vector<lint::StepOption> job_of(const shell::Submission& submission) {
  std::vector<lint::StepOption> options;
  lint::read_options(submission.options, {nullptr, submission.line}, options, nullptr);
  std::erase_if(options, [](const auto& option) {
    constexpr std::array<std::string_view, 4> kOfSubmission{"--wrap", "--parsable", "--export", "--chdir"};
    return is_one_of(std::string_view(option.text).substr(0, option.text.find('=')), kOfSubmission);
  });
  return options;
}

shell::Allocation allocation_of(const JobDirectives& directives) {
  shell::Allocation allocation;
  if (!directives.job_name.empty()) allocation.job_name = directives.job_name;
  if (!directives.account.empty()) allocation.account = directives.account;
  if (!directives.partition.empty()) allocation.partition = directives.partition;
  allocation.nodes = directives.size.nodes;
  allocation.tasks_per_node = std::max(1U, directives.size.tasks);
  allocation.cpus_per_task = directives.cpus_per_task;
  allocation.cpus_per_gpu = directives.cpus_per_gpu;
  allocation.variables = directives.variables;
  allocation.counts_tasks = directives.counts_tasks;
  allocation.gpus_per_node = directives.size.gpus;
  allocation.array = directives.array;
  if (directives.components.empty()) return allocation;
  allocation.components = directives.components;
  allocation.nodes = directives.components.back().first + directives.components.back().nodes;
  return allocation;
}

}  // namespace nlaunch::import
