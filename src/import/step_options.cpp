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

/// nlaunch places, logs and ends its own processes, or Slurm does not look at it within a job.
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
/// nlaunch's own step has it too.
constexpr std::string_view kCarried = " network mpi hint cpu-freq gpu-freq ";
/// So does it where it is of one task on each node, as nlaunch's agent is.
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
    {"nodefile", "the nodes are in a file: name them by --nodelist"},
    {"distribution", "a plan numbers its processes node by node (block)"},
    {"ntasks-per-gpu", "say how many tasks there are by --ntasks-per-node"},
    {"ntasks-per-tres", "say how many tasks there are by --ntasks-per-node"},
    {"gpus-per-socket", "say how many GPUs there are by --gpus-per-node"},
    {"task-prolog", "Slurm runs it before each task, and nlaunch does not: write it in front of the program"},
    {"task-epilog", "Slurm runs it after each task, and nlaunch does not"},
    {"prolog", "srun runs it before the step, and nlaunch does not: write it as a line of the script"},
    {"epilog", "srun runs it after the step, and nlaunch does not: write it as a line of the script"},
    {"input", "the tasks read a file as their standard input, which no role has"},
    {"container", "the container is an OCI bundle, which nlaunch does not start"},
    {"test-only", "the step does not start"},
    {"no-allocate", "the step is outside of the job"},
}};

/// What is otherwise in the plan.
constexpr std::array<Reason, 10> kNoted{{
    {"time", "the step's own time limit; the job's is `slurm: {time: ...}`"},
    {"kill-on-bad-exit", "where a process of the plan fails, nlaunch ends the run"},
    {"no-kill", "where a node fails, nlaunch ends the run"},
    {"accel-bind", "nlaunch chooses the GPUs of each process, and binds no process to a network interface"},
    {"cpu-bind",
     "nlaunch binds each process to the CPUs near its GPUs (`cpu_binding`). `wrapper: [numactl, ...]` binds "
     "otherwise"},
    {"mem-bind", "nlaunch binds no process to memory. `wrapper: [numactl, ...]` binds"},
    {"gpu-bind", "nlaunch chooses the GPUs of each process"},
    {"pty", "the program has no terminal"},
    {"signal", "`walltime` says which signal comes before the time limit"},
    {"propagate", "limits are those of the node (`ulimit`)"},
}};

/// Within its option that changes nothing.
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

/// A step that a role is made of.
struct Step {
  std::string role;
  std::uint32_t line = 0;
  std::vector<SrunOption> options;
  bool one_on_each_node = true;
};

/// What its tasks run in: the options of its image by their names.
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
      if (index) step.line = recording_.commands[*index].line;
      go_on_in_named(step.options);
      step.one_on_each_node =
          std::ranges::all_of(part.tasks, [](const auto& task) { return task.local_rank == 0; });
      steps_.push_back(std::move(step));
    }
  }

  /// A container that an earlier step has made and named.
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
                    fmt::format("srun {}: the job has {}, and Slurm does not start the step",
                                text::printable(text_of(option)), text::count(out_.nodes, "node")));
    if (is_among(kNumbersOfTasks, option.name) && count != "none" &&
        count.find_first_of("0123456789") == std::string::npos)
      return refuse(step.line,
                    fmt::format("srun {} says no number. Where that is a variable, --env NAME=VALUE sets it",
                                text::printable(text_of(option))));
    if (is_among(kOwn, option.name) || is_harmless(option)) return;
    const auto text = text::printable(text_of(option));
    const bool carried = is_of_image(option.name) || is_among(kCarried, option.name) || !option.known;
    if (carried && option.value && option.value->empty())
      return refuse(step.line, fmt::format("srun {}: nothing stands behind the =. Where that is a variable, "
                                           "--env NAME=VALUE sets it",
                                           text));
    if (const auto why = reason_in(kRefused, option.name); !why.empty())
      return refuse(step.line, fmt::format("srun {}: {}", text, why));
    if (carried || (is_among(kBindings, option.name) && step.one_on_each_node && steps_.size() == 1))
      return carry(step, option);
    const auto why = reason_in(kNoted, option.name);
    note(step.line, fmt::format("srun {} is not taken over{}{}", text, why.empty() ? "" : ": ", why));
  }

  void carry(const Step& step, const SrunOption& option) {
    const auto text = escaped(text_of(option));
    const auto front = text.substr(0, text.find('='));
    const auto same = std::ranges::find_if(out_.srun, [&](const ImportedEntry& one) {
      return one.value == front || one.value.starts_with(front + "=");
    });
    if (same != out_.srun.end()) {
      if (same->value != text && !is_of_image(option.name))
        note(step.line, fmt::format("srun {} is not taken over: nlaunch's step has {} for all roles", text,
                                    same->value));
      return;
    }
    if (const auto said = said_of_image(option.name); !said.empty())
      out_.remarks[Destination::scheduler].push_back({step.line, said});
    if (!option.known)
      out_.remarks[Destination::scheduler].push_back(
          {step.line, fmt::format("srun itself does not know {}: it is passed on as an option of the cluster",
                                  text::printable(text))});
    if (option.name == "mpi" && option.value != "none")
      note(step.line,
           fmt::format("srun {}: nlaunch's agents have it, and what they start is no rank of MPI. A "
                       "program that calls MPI_Init finds itself alone",
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
                "{} runs in {}, and {} in {}: nlaunch's own step has one image for all roles. "
                "`apptainer exec`, `singularity exec` or `enroot start` in front of a program gives it "
                "a container of its own",
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
  std::map<std::string, std::vector<SrunOption>> named_;  ///< options of the step that has made a container
};

}  // namespace

bool is_of_image(std::string_view option) {
  return option.starts_with("container-") || option.starts_with("no-container-") || option == "uenv" ||
         option == "view" || option == "environment";
}

std::string said_of_image(std::string_view option) {
  if (option == "container-image")
    return "the container of nlaunch's step, and so of all roles: docs/containers.md, pyxis";
  if (option == "uenv" || option == "environment")
    return fmt::format("--{} of nlaunch's step, and so of all roles", option);
  return {};
}

void import_steps(const shell::Recording& recording, Imported& out) {
  Steps(recording, out).import();
}

}  // namespace nlaunch::import
