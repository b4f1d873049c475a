#include "import/step_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>

#include "base/text.h"
#include "shell/srun.h"

namespace nlaunch::import {
namespace {

using shell::SrunOption;

/// nlaunch places, logs and stops its own processes, or Slurm ignores the option within a job.
constexpr std::string_view kOwn =
    " het-group pack-group nodes ntasks ntasks-per-node tasks-per-node nodelist exclude relative gpus "
    "gpus-per-node "
    "gpus-per-task gres "
    "cpus-per-task chdir export jobid overlap exact exclusive whole oversubscribe overcommit output error "
    "open-mode label unbuffered job-name verbose quiet wait quit-on-interrupt disable-status immediate async "
    "interactive comment mail-type mail-user wckey account partition qos clusters cluster-constraint "
    "constraint "
    "prefer reservation licenses begin deadline delay-boot dependency nice priority switches segment "
    "contiguous "
    "spread-job use-min-nodes reboot hold acctg-freq slurmd-debug msg-timeout threads tree-width send-libs "
    "time-min "
    "mincpus cores-per-socket sockets-per-node ntasks-per-core ntasks-per-socket power tmp bb bbf extra ";
constexpr std::string_view kNumbersOfTasks =
    " nodes ntasks ntasks-per-node tasks-per-node cpus-per-task gpus-per-node gpus-per-task ";
/// nlaunch's own step also gets these options.
constexpr std::string_view kCarried = " network mpi hint cpu-freq gpu-freq ";
/// So it does for a step with one task per node, like nlaunch's agent.
constexpr std::string_view kBindings = " cpu-bind mem-bind gpu-bind ";

bool is_among(std::string_view list, std::string_view name) {
  return list.find(fmt::format(" {} ", name)) != std::string_view::npos;
}

struct Reason {
  std::string_view name;
  std::string_view text;
};

std::string_view reason_in(std::span<const Reason> reasons, std::string_view name) {
  const auto found = std::ranges::find(reasons, name, &Reason::name);
  return found == reasons.end() ? std::string_view() : found->text;
}

/// Why no experiment is the same job.
constexpr std::array<Reason, 13> kRefused{{
    {"nodefile", "the nodes are in a file: name them with --nodelist"},
    {"distribution", "a plan numbers its processes node by node (block)"},
    {"ntasks-per-gpu", "set the number of tasks with --ntasks-per-node"},
    {"ntasks-per-tres", "set the number of tasks with --ntasks-per-node"},
    {"gpus-per-socket", "set the number of GPUs with --gpus-per-node"},
    {"task-prolog", "Slurm runs it before each task, but nlaunch does not: put it in front of the program"},
    {"task-epilog", "Slurm runs it after each task, but nlaunch does not"},
    {"prolog", "srun runs it before the step, but nlaunch does not: make it a line of the script"},
    {"epilog", "srun runs it after the step, but nlaunch does not: make it a line of the script"},
    {"input", "the tasks read a file as standard input, but a role has no standard input"},
    {"container", "the container is an OCI bundle, which nlaunch cannot start"},
    {"test-only", "the step does not start"},
    {"no-allocate", "the step is outside the job"},
}};

/// Options that the plan handles differently.
constexpr std::array<Reason, 10> kNoted{{
    {"time", "the step's own time limit; the job's is `slurm: {time: ...}`"},
    {"kill-on-bad-exit", "if a process fails, nlaunch stops the run"},
    {"no-kill", "if a node fails, nlaunch stops the run"},
    {"accel-bind",
     "nlaunch chooses the GPUs of each process, and does not bind processes to a network interface"},
    {"cpu-bind",
     "nlaunch binds each process to the CPUs near its GPUs (`cpu_binding`). For another binding, use "
     "`wrapper: [numactl, ...]`"},
    {"mem-bind", "nlaunch does not bind memory. To bind it, use `wrapper: [numactl, ...]`"},
    {"gpu-bind", "nlaunch chooses the GPUs of each process"},
    {"pty", "the program has no terminal"},
    {"signal", "`walltime` sets the signal that is sent before the time limit"},
    {"propagate", "limits are those of the node (`ulimit`)"},
}};

/// Changes nothing within its option.
bool is_harmless(const SrunOption& option) {
  const auto value = option.value.value_or("");
  if (option.name == "distribution") return value.starts_with("block") || value.starts_with("*");
  if (option.name == "input") return value == "none" || value == "all" || text::whole_number<unsigned>(value);
  if (option.name == "kill-on-bad-exit") return value != "0";
  if (option.name == "mem") return value == "0";
  if (is_among(kBindings, option.name)) {
    const auto kind = value.substr(value.rfind(',') + 1);
    return kind == "none" || kind == "no" || kind == "quiet" || kind == "verbose" || kind == "q" ||
           kind == "v";
  }
  return false;
}

std::string text_of(const SrunOption& option) {
  const auto* dashes = option.name.size() == 1 ? "-" : "--";
  return fmt::format("{}{}{}{}", dashes, option.name, option.value ? "=" : "", option.value.value_or(""));
}

/// A step from which a role is made.
struct Step {
  std::string role;
  std::uint32_t line = 0;
  std::vector<SrunOption> options;
  bool one_on_each_node = true;
};

/// The image in which its tasks run: its options by name.
using Image = std::map<std::string, std::string>;

class Steps {
 public:
  Steps(const shell::Recording& recording, Imported& out) : recording_(recording), out_(out) {}

  void import() {
    collect();
    for (const auto& step : steps_)
      for (const auto& option : step.options) one(step, option);
    compare_images();
  }

 private:
  void collect() {
    for (const auto& command : recording_.commands) {
      if (shell::program_name(command.argv[0]) != "srun") continue;
      const auto options = shell::options_of_srun(command.argv);
      const auto name = shell::value_of(options, "container-name");
      if (name && shell::value_of(options, "container-image")) named_.try_emplace(*name, options);
    }
    for (const auto& role : out_.roles) {
      if (!role.part) continue;
      const auto& part = out_.parts[*role.part];
      const auto index = step_of(part.commands[0]);
      Step step{role.name, role.line, {}, true};
      if (index) step.options = shell::options_of_srun(recording_.commands[*index].argv);
      if (index) add_variables(recording_.commands[*index].environment, step.options);
      if (index) step.line = recording_.commands[*index].line;
      go_on_in_named(step.options);
      step.one_on_each_node =
          std::ranges::all_of(part.tasks, [](const auto& task) { return task.local_rank == 0; });
      steps_.push_back(std::move(step));
    }
  }

  /// A variable stands for an option that srun was not given (srun(1), input environment variables).
  static void add_variables(const std::vector<std::string>& environment, std::vector<SrunOption>& options) {
    constexpr std::string_view kDistribution = "SLURM_DISTRIBUTION=";
    for (const auto& entry : environment)
      if (entry.starts_with(kDistribution) && !shell::value_of(options, "distribution"))
        options.push_back({"distribution", entry.substr(kDistribution.size())});
  }

  /// A container that an earlier step created and named.
  void go_on_in_named(std::vector<SrunOption>& options) const {
    const auto name = shell::value_of(options, "container-name");
    const auto known = name ? named_.find(*name) : named_.end();
    if (known == named_.end() || shell::value_of(options, "container-image")) return;
    for (const auto& option : known->second)
      if (is_of_image(option.name) &&
          std::ranges::find(options, option.name, &SrunOption::name) == options.end())
        options.push_back(option);
  }

  /// The srun that a command is in.
  [[nodiscard]] std::optional<std::size_t> step_of(std::size_t command) const {
    for (auto above = recording_.commands[command].launcher; above;
         above = recording_.commands[*above].launcher)
      if (shell::program_name(recording_.commands[*above].argv[0]) == "srun") return above;
    return std::nullopt;
  }

  void note(std::uint32_t line, std::string text) {
    auto& notes = out_.remarks[Destination::roles];
    const bool known = std::ranges::any_of(
        notes, [&](const Remark& other) { return other.line == line && other.text == text; });
    if (!known) notes.push_back({line, std::move(text)});
  }

  void refuse(std::uint32_t line, std::string text) { out_.not_said.push_back({line, std::move(text)}); }

  void one(const Step& step, const SrunOption& option) {
    const auto count = option.value.value_or("1");
    const auto least = text::whole_number<std::uint32_t>(count.substr(0, count.find('-'))).value_or(0);
    if (option.name == "nodes" && least > out_.nodes)
      return refuse(step.line,
                    fmt::format("srun {}: the job has {}, so Slurm does not start the step",
                                text::printable(text_of(option)), text::count(out_.nodes, "node")));
    if (is_among(kNumbersOfTasks, option.name) && count != "none" &&
        count.find_first_of("0123456789") == std::string::npos)
      return refuse(
          step.line,
          fmt::format("srun {} has no number. If it comes from a variable, set it with --env NAME=VALUE",
                      text::printable(text_of(option))));
    if (is_among(kOwn, option.name) || is_harmless(option)) return;
    const auto text = text::printable(text_of(option));
    const bool carried = is_of_image(option.name) || is_among(kCarried, option.name) || !option.known;
    if (carried && option.value && option.value->empty())
      return refuse(step.line, fmt::format("srun {}: there is no value after the =. If it comes from a "
                                           "variable, set it with --env NAME=VALUE",
                                           text));
    if (const auto why = reason_in(kRefused, option.name); !why.empty())
      return refuse(step.line, fmt::format("srun {}: {}", text, why));
    if (carried || (is_among(kBindings, option.name) && step.one_on_each_node && steps_.size() == 1))
      return carry(step, option);
    const auto why = reason_in(kNoted, option.name);
    note(step.line, fmt::format("srun {} is not imported{}{}", text, why.empty() ? "" : ": ", why));
  }

  void carry(const Step& step, const SrunOption& option) {
    const auto text = escaped(text_of(option));
    const auto front = text.substr(0, text.find('='));
    const auto same = std::ranges::find_if(out_.srun, [&](const ImportedEntry& one) {
      return one.value == front || one.value.starts_with(front + "=");
    });
    if (same != out_.srun.end()) {
      if (same->value != text && !is_of_image(option.name))
        note(step.line,
             fmt::format("srun {} is not imported: nlaunch's step uses {} for all roles", text, same->value));
      return;
    }
    if (const auto said = said_of_image(option.name); !said.empty())
      out_.remarks[Destination::scheduler].push_back({step.line, said});
    if (!option.known)
      out_.remarks[Destination::scheduler].push_back(
          {step.line, fmt::format("srun itself does not know {}: it is passed on as a site-specific option",
                                  text::printable(text))});
    if (option.name == "mpi" && option.value != "none")
      note(step.line, fmt::format("srun {}: it applies to nlaunch's agents; the processes they start are not "
                                  "MPI ranks. A program that calls MPI_Init sees only itself",
                                  text::printable(text)));
    out_.srun.push_back({"", text, step.line, ""});
  }

  /// nlaunch's step is in one image, and so are all roles.
  void compare_images() {
    std::optional<Image> first;
    const Step* other = nullptr;
    for (const auto& step : steps_) {
      Image image;
      for (const auto& option : step.options)
        if (is_of_image(option.name) && option.name != "container-workdir")
          image[option.name] = option.value.value_or("");
      image.erase("container-name");
      if (!first) {
        first = image;
        other = &step;
      } else if (image != *first) {
        return refuse(
            step.line,
            fmt::format(
                "{} runs in {}, but {} in {}: nlaunch's step has one image for all roles. To "
                "give a program its own container, put `apptainer exec`, `singularity exec` or `enroot "
                "start` in front of it",
                step.role, name_of(image), other->role, name_of(*first)));
      }
    }
  }

  static std::string name_of(const Image& image) {
    std::vector<std::string> options;
    for (const auto& [name, value] : image)
      options.push_back(text::printable(fmt::format("--{}{}{}", name, value.empty() ? "" : "=", value)));
    return options.empty() ? "no container" : text::join(options, " ");
  }

  const shell::Recording& recording_;
  Imported& out_;
  std::vector<Step> steps_;
  std::map<std::string, std::vector<SrunOption>> named_;  ///< options of the step that created a container
};

}  // namespace

bool is_of_image(std::string_view option) {
  return option.starts_with("container-") || option.starts_with("no-container-") || option == "uenv" ||
         option == "view" || option == "environment";
}

std::string said_of_image(std::string_view option) {
  if (option == "container-image")
    return "the container of nlaunch's step, and therefore of all roles: see docs/containers.md, pyxis";
  if (option == "uenv" || option == "environment")
    return fmt::format("--{} applies to nlaunch's step, and therefore to all roles", option);
  return {};
}

void import_steps(const shell::Recording& recording, Imported& out) {
  Steps(recording, out).import();
}

}  // namespace nlaunch::import
