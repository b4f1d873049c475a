#include "shell/stand_ins.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "shell/answers.h"
#include "shell/notes.h"
#include "shell/tiny_program.h"
#include "shell/trace.h"
#include "sys/files.h"

namespace nlaunch::shell {
namespace {

namespace fs = std::filesystem;

constexpr auto kHandler = "command_not_found_handle";
constexpr std::string_view kStep = "NLAUNCH_RECORDED_STEP";  ///< the launcher's index
constexpr std::string_view kInTask = "NLAUNCH_RECORDED_TASK";
constexpr std::string_view kChdir = "NLAUNCH_RECORDED_FOLDER";
constexpr std::string_view kUntil = "NLAUNCH_RECORDED_UNTIL";

/// Names that a script finds on its PATH although they may not exist on this machine.
std::vector<std::string> known_programs() {
  std::vector<std::string> names{
      "sbatch", "scancel", "python", "python3", "torchrun", "accelerate", "deepspeed",  "ray",
      "vllm",   "uv",      "pip",    "pip3",    "conda",    "mamba",      "micromamba", "scp",
      "rsync",  "wandb",   "hf",     "nvcc",    "tmux",     "screen",     "pkill",      "killall",
      "lfs",    "aws",     "gsutil", "gcloud",  "kubectl",  "tar",        "unzip",      "gzip",
      "node",   "make",    "cmake",  "gcc",     "g++",      "module",     "ml",         "huggingface-cli"};
  for (const auto& more : {names_of_answers(), names_of_launchers()})
    names.insert(names.end(), more.begin(), more.end());
  return names;
}

/// Read by every bash before its script. Defines the functions of a cluster's login shell that change the
/// shell itself.
std::string start_file(const OwnFiles& own, const RecordRequest& request) {
  return fmt::format(R"({0}() {{ exec {1} "$@" 198<{7}; }}
nlaunch_conda() {{
  command "$@" || return
  shift
  case ${{1-}} in
    activate) ;;
    deactivate)
      [[ -n ${{CONDA_PREFIX-}} ]] || return 0
      PATH=${{PATH/"$CONDA_PREFIX/bin:"/}}
      unset CONDA_PREFIX CONDA_DEFAULT_ENV
      [[ -n ${{NLAUNCH_CONDA_BELOW-}} ]] || return 0  # the environment before that one
      export CONDA_PREFIX=${{NLAUNCH_CONDA_BELOW%%:*}}
      export CONDA_DEFAULT_ENV=${{CONDA_PREFIX##*/}}
      [[ $CONDA_PREFIX == */envs/* ]] || CONDA_DEFAULT_ENV=base
      NLAUNCH_CONDA_BELOW=${{NLAUNCH_CONDA_BELOW#*:}}
      PATH=$CONDA_PREFIX/bin:$PATH
      return 0 ;;
    *) return 0 ;;
  esac
  while [[ ${{2-}} == -* ]]; do  # -n NAME, --stack NAME
    shift
  done
  [[ -n ${{NLAUNCH_CONDA-}} || -z ${{CONDA_EXE-}} ]] || NLAUNCH_CONDA=${{CONDA_EXE%/*/conda}}
  # Only what looks like an installation tells where its environments are.
  NLAUNCH_BASE=${{CONDA_PREFIX-}}
  NLAUNCH_BASE=${{NLAUNCH_BASE%/envs/*}}
  [[ -n ${{NLAUNCH_CONDA-}} || ${{NLAUNCH_BASE##*/}} != *@(conda|mamba|forge)* ]] || NLAUNCH_CONDA=$NLAUNCH_BASE
  unset NLAUNCH_BASE
  if [[ -n ${{CONDA_PREFIX-}} ]]; then
    NLAUNCH_CONDA_BELOW=$CONDA_PREFIX:${{NLAUNCH_CONDA_BELOW-}}
    PATH=${{PATH/"$CONDA_PREFIX/bin:"/}}
  fi
  case ${{NLAUNCH_CONDA-}}:${{NLAUNCH_ACTIVATED-}} in
    :*conda*|:*mamba*|:*forge*)  # that was conda itself
      NLAUNCH_CONDA=$NLAUNCH_ACTIVATED
      deactivate ;;
  esac
  export CONDA_DEFAULT_ENV=${{2-base}} CONDA_PREFIX
  [[ $CONDA_DEFAULT_ENV != */* ]] || CONDA_DEFAULT_ENV=$(realpath -m "$CONDA_DEFAULT_ENV")
  CONDA_PREFIX=$CONDA_DEFAULT_ENV
  [[ $CONDA_PREFIX == /* ]] || CONDA_PREFIX=${{NLAUNCH_CONDA-{5}/miniconda3}}/envs/$CONDA_DEFAULT_ENV
  [[ ${{2-base}} != base ]] || CONDA_PREFIX=${{NLAUNCH_CONDA-{5}/miniconda3}}
  PATH=$CONDA_PREFIX/bin:$PATH
}}
conda() {{ nlaunch_conda conda "$@"; }}
mamba() {{ nlaunch_conda mamba "$@"; }}
micromamba() {{ nlaunch_conda micromamba "$@"; }}
deactivate() {{
  unset NLAUNCH_ACTIVATED
  [[ -n ${{VIRTUAL_ENV-}} ]] || return 0
  PATH=${{PATH/"$VIRTUAL_ENV/bin:"/}}
  unset VIRTUAL_ENV
}}
module() {{ command module "$@"; export LD_LIBRARY_PATH=${{LD_LIBRARY_PATH-/rec/modules/lib}}; }}
ml() {{ command ml "$@"; export LD_LIBRARY_PATH=${{LD_LIBRARY_PATH-/rec/modules/lib}}; }}
if [[ -n ${{NLAUNCH_RECORDED_FOLDER-}} ]]; then cd "$NLAUNCH_RECORDED_FOLDER"; unset NLAUNCH_RECORDED_FOLDER OLDPWD; fi
RANDOM={6}
exec 199>>{2}
BASH_XTRACEFD=199
PS4=$'{3}'
for nlaunch_name in PRELOAD LIBRARY_PATH AUDIT; do
  nlaunch_kept=ND_$nlaunch_name
  if [[ -n ${{!nlaunch_kept+x}} ]]; then export "LD_$nlaunch_name=${{!nlaunch_kept}}"; unset "$nlaunch_kept"; fi
done
unset nlaunch_name nlaunch_kept
{4}set -x
)",
                     kHandler, own.other(), own.trace(), Trace::kPrompt,
                     request.keeps_trace ? fmt::format("set -T\ntrap '{}' DEBUG\n", Trace::kGoesOn) : "",
                     Allocation::kHome, 1 + request.later, kAskedByHandler);
}

/// Files that `source NAME` finds on PATH, such as those next to conda: `source activate ENVIRONMENT`. In the
/// directory of a virtual environment, it is that environment's own.
constexpr std::array<std::pair<const char*, const char*>, 2> kSourcedByName{
    {{"activate",
      "if [[ $PWD == */bin ]]; then export VIRTUAL_ENV=${PWD%/bin} PATH=$PWD:$PATH; "
      "else conda activate \"${1-base}\"; fi\n"},
     {"deactivate", "conda deactivate\n"}}};

/// "3.1.0.0", which identifies a program's task.
std::string text_of(const Task& task) {
  return fmt::format("{}={:d}.{:d}.{:d}.{:d}", kInTask, task.rank, task.local_rank, task.node,
                     task.node_of_step);
}

/// As set by srun and Open MPI's mpirun.
std::vector<std::string> variables_of(const Task& task) {
  return {fmt::format("SLURM_PROCID={}", task.rank), fmt::format("SLURM_LOCALID={}", task.local_rank),
          fmt::format("SLURM_NODEID={}", task.node_of_step),
          fmt::format("SLURMD_NODENAME={}", Allocation::host(task.node))};
}

bool is_name(std::string_view text) {
  static const RE2 kName(R"([A-Za-z_]\w*)");
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), kName);
}

/// What every login of the user has, also one by ssh.
constexpr std::array<std::pair<const char*, std::string_view>, 4> kOfLogin{
    {{"USER", Allocation::kUser}, {"LOGNAME", Allocation::kUser}, {"TMPDIR", "/tmp"}, {"LANG", "C.UTF-8"}}};

/// Text that contains the node of a task.
std::string for_node(std::string text, std::uint32_t node, std::uint32_t nodes) {
  const std::array<std::pair<std::string_view, std::string>, 4> names{{{"{node}", std::to_string(node)},
                                                                       {"{host}", Allocation::host(node)},
                                                                       {"{first}", Allocation::host(0)},
                                                                       {"{nodes}", std::to_string(nodes)}}};
  for (const auto& [name, value] : names) {
    for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size()))
      text.replace(at, name.size(), value);
  }
  return text;
}

void name_hosts(const RecordRequest& request, ScratchLayer& layer, Written& written) {
  constexpr const char* kHosts = "/etc/hosts";
  std::string hosts = "127.0.0.1 localhost\n";
  for (std::uint32_t node = 0; node < request.allocation.nodes; ++node)
    hosts += fmt::format("{} {}\n", Allocation::address(node), Allocation::host(node));
  if (!layer.make_folder("/etc")) return;
  if (const auto place = layer.map(kHosts, Access::replace))
    (void)sys::write_file_atomically(*place, hosts, 0644);
  written.given(kHosts);
}

/// Creates the file and the directory that contains it.
void make_file(const fs::path& path, const std::string& text, mode_t mode, ScratchLayer& layer) {
  if (!layer.make_folder(path.parent_path())) return;
  if (const auto place = layer.map(path, Access::create))
    (void)sys::write_file_atomically(*place, text, mode);
}

}  // namespace

bool is_of_given(std::string_view text) {
  return text.find(kTextOfGiven.substr(0, kTextOfGiven.size() - 1)) != std::string_view::npos;
}

bool make_own_files(const OwnFiles& own, const RecordRequest& request) {
  std::error_code error;
  fs::create_directory(own.programs(), error);
  fs::create_directory(own.answers(), error);
  const auto put = [](const std::string& path, const std::string& text, mode_t mode) {
    return sys::write_file_atomically(path, text, mode).has_value();
  };
  const bool made = put(own.start(), start_file(own, request), 0644) && put(own.trace(), "", 0644) &&
                    put(own.other(), "\n", 0755) && put(own.input(), "", 0644) && put(own.output(), "", 0644);
  return made &&
         std::ranges::all_of(kSourcedByName,
                             [&](const auto& one) {
                               return put(fmt::format("{}/{}", own.programs(), one.first), one.second, 0644);
                             }) &&
         std::ranges::all_of(known_programs(), [&](const auto& name) {
           return put(fmt::format("{}/{}", own.programs(), name), "", 0755);
         });
}

void make_given_files(const RecordRequest& request, ScratchLayer& layer, Written& written) {
  name_hosts(request, layer, written);
  for (const auto& named : request.existing) {
    const auto path = (fs::path(folder_of(request)) / named).lexically_normal();
    if (path.has_filename())
      make_file(path, std::string(kTextOfGiven), 0755, layer);
    else
      layer.make_folder(path.parent_path());
    written.given(path);
  }
  for (const auto& file : request.files) {
    if (file.path.ends_with('/')) {
      const auto folder = file.path.substr(0, file.path.size() - 1);
      if (layer.make_folder(folder)) written.made_folder(folder);
    } else {
      make_file(file.path, file.text.value_or(""), file.executable ? 0755 : 0644, layer);
    }
  }
}

std::vector<std::string> environment_of(const RecordRequest& request, const OwnFiles& own) {
  const auto& job = request.allocation;
  const auto first = job.component(0).value_or(Allocation::Component{});
  const auto tasks = first.nodes * first.tasks_per_node;
  const auto cpus = job.cpus_per_gpu > 0 ? job.cpus_per_gpu * std::max(1U, first.gpus_per_node)
                                         : std::max(1U, job.cpus_per_task) * job.tasks_per_node;
  std::vector<std::string> entries{
      fmt::format("PATH={}:/usr/local/bin:/usr/bin:/bin", own.programs()),
      fmt::format("BASH_ENV={}", own.start()),
      fmt::format("HOSTNAME={}", Allocation::host(0)),
      fmt::format("SLURM_JOB_ID={}", job.job_id),
      fmt::format("SLURM_JOBID={}", job.job_id),
      fmt::format("SLURM_JOB_NAME={}", job.job_name),
      fmt::format("SLURM_JOB_NODELIST={}", Allocation::host_list(first)),
      fmt::format("SLURM_NODELIST={}", Allocation::host_list(first)),
      fmt::format("SLURM_JOB_NUM_NODES={}", first.nodes),
      fmt::format("SLURM_NNODES={}", first.nodes),
      fmt::format("SLURM_NTASKS={}", tasks),
      fmt::format("SLURM_NPROCS={}", tasks),
      fmt::format("SLURM_TASKS_PER_NODE={}(x{})", job.tasks_per_node, first.nodes),
      fmt::format("SLURM_CPUS_ON_NODE={}", cpus),
      fmt::format("SLURM_SUBMIT_DIR={}", folder_of(request)),
      fmt::format("SLURM_SUBMIT_HOST={}", Allocation::kLoginHost),
      fmt::format("SLURM_JOB_PARTITION={}", job.partition),
      fmt::format("SLURM_JOB_ACCOUNT={}", job.account),
      fmt::format("SLURM_JOB_USER={}", Allocation::kUser),
      fmt::format("SLURM_CLUSTER_NAME={}", Allocation::kCluster),
      fmt::format("HOME={}", Allocation::kHome),
  };
  for (const auto& [name, value] : kOfLogin) entries.push_back(fmt::format("{}={}", name, value));
  if (job.counts_tasks) entries.push_back(fmt::format("SLURM_NTASKS_PER_NODE={}", job.tasks_per_node));
  if (job.cpus_per_task > 0) entries.push_back(fmt::format("SLURM_CPUS_PER_TASK={}", job.cpus_per_task));
  // Without these, the site's defaults decide.
  if (job.cpus_per_task > 0 || job.cpus_per_gpu > 0)
    entries.push_back(fmt::format("SLURM_JOB_CPUS_PER_NODE={}{}", cpus,
                                  first.nodes > 1 ? fmt::format("(x{})", first.nodes) : ""));
  if (first.gpus_per_node > 0) {
    entries.push_back(fmt::format("SLURM_GPUS_ON_NODE={}", first.gpus_per_node));
    entries.push_back(fmt::format("SLURM_GPUS_PER_NODE={}", first.gpus_per_node));
    std::vector<std::string> gpus(first.gpus_per_node);
    for (std::size_t i = 0; i < gpus.size(); ++i) gpus[i] = std::to_string(i);
    entries.push_back("SLURM_JOB_GPUS=" + text::join(gpus, ","));
  }
  entries.insert(entries.end(), job.variables.begin(), job.variables.end());
  if (!job.components.empty()) {  // sbatch(1), output environment variables
    entries.push_back(fmt::format("SLURM_HET_SIZE={}", job.components.size()));
    for (std::size_t i = 0; i < job.components.size(); ++i) {
      const auto& one = job.components[i];
      const auto add = [&](std::string_view name, const auto& value) {
        entries.push_back(fmt::format("{}_HET_GROUP_{}={}", name, i, value));
      };
      add("SLURM_JOB_ID", job.job_id);
      add("SLURM_JOB_NODELIST", Allocation::host_list(one));
      add("SLURM_JOB_NUM_NODES", one.nodes);
      add("SLURM_NTASKS_PER_NODE", one.tasks_per_node);
    }
  }
  if (!job.array.empty()) {
    const auto [least, most] = std::ranges::minmax(job.array);
    entries.push_back(fmt::format("SLURM_ARRAY_JOB_ID={}", job.job_id));
    entries.push_back(fmt::format("SLURM_ARRAY_TASK_ID={}", job.array_task.value_or(job.array.front())));
    entries.push_back(fmt::format("SLURM_ARRAY_TASK_COUNT={}", job.array.size()));
    entries.push_back(fmt::format("SLURM_ARRAY_TASK_MIN={}", least));
    entries.push_back(fmt::format("SLURM_ARRAY_TASK_MAX={}", most));
  }
  if (!request.chdir.empty()) entries.push_back(fmt::format("{}={}", kChdir, request.chdir));
  for (auto& entry : variables_of({0, 0, 0})) entries.push_back(std::move(entry));
  if (request.per_node || !request.in_job)
    std::erase_if(entries, [](const auto& entry) { return entry.starts_with("SLURM"); });
  if (request.per_node) return entries;
  for (const auto& given : request.variables)
    std::erase_if(entries, [name = given.substr(0, given.find('=') + 1)](const auto& entry) {
      return entry.starts_with(name);
    });
  entries.insert(entries.end(), request.variables.begin(), request.variables.end());
  return entries;
}

bool is_own_variable(std::string_view entry) {
  constexpr std::array<std::string_view, 7> kNames{
      "BASH_ENV=", "BASH_XTRACEFD=", "PS4=", "_=", "SHLVL=", "OLDPWD=", "SHELLOPTS="};
  return entry.starts_with(kStep) || entry.starts_with(kInTask) || entry.starts_with(kChdir) ||
         entry.starts_with(kUntil) ||
         std::ranges::any_of(kNames, [&](auto name) { return entry.starts_with(name); });
}

std::string without_own(std::string text, const OwnFiles& own) {
  const auto replace = [&](const std::string& part, std::string_view by) {
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + by.size()))
      text.replace(at, part.size(), by);
  };
  replace(":" + own.programs(), "");
  replace(own.programs() + ":", "");
  // What `which nvcc` finds, and `dirname $(dirname $(which nvcc))`: a folder of the cluster.
  replace(own.folder.native(), "/rec/own");
  replace("/rec/own/bin/", "/rec/own/");
  return text;
}

std::optional<std::string> value_of(const std::vector<std::string>& environment, std::string_view name) {
  for (const auto& entry : environment) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> until_of(const std::vector<std::string>& environment) {
  return text::whole_number<std::uint64_t>(value_of(environment, kUntil).value_or(""));
}

std::optional<std::size_t> launcher_of(const std::vector<std::string>& environment) {
  return text::whole_number<std::uint32_t>(value_of(environment, kStep).value_or(""));
}

std::optional<Task> task_of(const std::vector<std::string>& environment) {
  const auto parts = text::split(value_of(environment, kInTask).value_or(""), '.');
  if (parts.size() != 4) return std::nullopt;
  const auto number = [&](std::size_t i) { return text::whole_number<std::uint32_t>(parts[i]).value_or(0); };
  return Task{number(0), number(1), number(2), number(3)};
}

std::string activation(const std::string& path, const std::string& command) {
  const auto words = text::split(command, ' ');
  const auto folder = fs::path(path).parent_path().parent_path().native();
  if (words.size() > 2)
    return fmt::format("NLAUNCH_CONDA={}\nconda activate {}\n", text::shell_quote(folder), words[2]);
  return fmt::format(
      "export VIRTUAL_ENV={0}\nexport PATH={0}/bin:$PATH\nNLAUNCH_ACTIVATED={0}\nexport -n "
      "NLAUNCH_ACTIVATED\n",
      text::shell_quote(folder));
}

std::string StandInScripts::put(const std::string& lines) {
  return put_file("#!/bin/bash -p\n" + lines);  // -p: without BASH_ENV, so that it is not traced
}

std::string StandInScripts::answer(const std::string& text, int code) {
  const auto program = tiny_program(text, code);
  if (program.empty()) return put(fmt::format("printf %s {}\nexit {}\n", text::shell_quote(text), code));
  return put_file(program);
}

std::string StandInScripts::put_file(const std::string& content) {
  const auto [path, is_new] =
      paths_.try_emplace(content, fmt::format("{}/{}", own_.answers(), paths_.size()));
  if (is_new) (void)sys::write_file_atomically(path->second, content, 0755);
  return path->second;
}

std::string script_of_tasks(const Started& started, const StartOfTasks& start, const RecordRequest& request,
                            const OwnFiles& own) {
  // A program that is not on PATH here is recorded under its name.
  const auto& name = started.argv[0];
  const auto words = text::shell_join(started.argv);
  const auto command = name.find('/') != std::string::npos
                           ? "exec " + words
                           : fmt::format("type -P {} >/dev/null && exec {}; exec {} {}",
                                         text::shell_quote(name), words, own.other(), words);
  auto script = fmt::format("export {}={}\n", kStep, start.launcher);
  if (start.until) {
    // The recorder ends a program whose time is over with SIGTERM; timeout(1) then exits with 124.
    constexpr int kByTerm = 143;
    return script + fmt::format("export {}={}\n({})\ncode=$?\n((code == {})) && exit 124\nexit $code\n",
                                kUntil, *start.until, command, kByTerm);
  }
  if (!started.folder.empty()) script += fmt::format("cd {}\n", text::shell_quote(started.folder));
  if (started.tasks.empty()) return script + command + "\n";
  const auto size = started.tasks.size();
  // srun gives each task all of its own standard input.
  const bool hands_on = size > 1 && reads_commands(started.argv);
  if (hands_on) script += "IFS= read -r -d '' nlaunch_text\n";
  const auto* input = hands_on ? " <<<\"$nlaunch_text\"" : "";
  auto of_step = variables_of_step(request.allocation, started.tasks, start.step);
  for (auto& variable : of_step) variable = text::shell_quote(variable);
  script += fmt::format("export {}\n", text::join(of_step, " "));
  const auto recorded = recorded_for(started.tasks, request.all_tasks);
  // Otherwise a task fails only because of what is not here.
  const auto* keep = request.failing ? " || nlaunch_code=$?" : "";
  for (std::size_t i = 0; i < size; ++i) {
    const auto& task = started.tasks[i];
    if (recorded[i] != i) continue;
    auto variables = variables_of(task);
    variables.push_back(text_of(task));
    variables.push_back(fmt::format("HOSTNAME={}", Allocation::host(task.node)));
    for (const auto& one : started.variables) {
      if (one.find('=') != std::string::npos) variables.push_back(text::shell_quote(one));
      if (one.find('=') == std::string::npos && !started.keeps_environment && is_name(one))
        variables.push_back(fmt::format("{0}=\"${0}\"", one));
    }
    if (start.mpi) {
      variables.push_back(fmt::format("OMPI_COMM_WORLD_RANK={}", task.rank));
      variables.push_back(fmt::format("OMPI_COMM_WORLD_LOCAL_RANK={}", task.local_rank));
      variables.push_back(fmt::format("OMPI_COMM_WORLD_SIZE={}", size));
      variables.push_back(fmt::format("OMPI_COMM_WORLD_LOCAL_SIZE={}",
                                      std::ranges::count(started.tasks, task.node, &Task::node)));
    }
    if (started.keeps_environment) {
      script += fmt::format("(export {}; {}){}{}\n", text::join(variables, " "), command, input, keep);
    } else {
      auto kept = fmt::format("PATH=\"$PATH\" BASH_ENV=\"$BASH_ENV\" HOME=\"$HOME\" {0}=\"${0}\"", kStep);
      for (const auto& [variable, value] : kOfLogin)
        if (started.logs_in) kept += fmt::format(" {}={}", variable, value);
      // What the script was submitted with may be of the login shell.
      for (const auto& one : request.variables) variables.insert(variables.begin(), text::shell_quote(one));
      script +=
          fmt::format("({}exec env -i {} {} {}){}{}\n", started.logs_in ? "cd \"$HOME\" 2>/dev/null; " : "",
                      kept, text::join(variables, " "), words, input, keep);
    }
  }
  return script + "exit ${nlaunch_code:-0}\n";
}

std::string script_of_nodes(const Words& script, const RecordRequest& request) {
  const auto nodes = request.allocation.nodes;
  std::vector<Task> tasks;
  for (std::uint32_t node = 0; node < nodes; ++node) tasks.push_back({node, 0, node, node});
  auto lines = fmt::format("export {}=0\n", kStep);
  const auto recorded = recorded_for(tasks, request.all_tasks);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (recorded[node] != node) continue;
    std::vector<std::string> variables{text_of(tasks[node]),
                                       fmt::format("HOSTNAME={}", Allocation::host(node))};
    for (const auto& one : request.variables)
      variables.push_back(text::shell_quote(for_node(one, node, nodes)));
    Words words;
    for (const auto& word : script) words.push_back(for_node(word, node, nodes));
    lines +=
        fmt::format("(export {}; exec /bin/bash {})\n", text::join(variables, " "), text::shell_join(words));
  }
  return lines + "exit 0\n";
}

}  // namespace nlaunch::shell
