#include "shell/recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>

#include "base/text.h"
#include "shell/answers.h"
#include "shell/launchers.h"
#include "sys/files.h"

namespace nlaunch::shell {
namespace {

namespace fs = std::filesystem;

constexpr auto kHandler = "command_not_found_handle";
constexpr std::string_view kStep = "NLAUNCH_RECORDED_STEP";  ///< the launcher's index
constexpr std::string_view kInTask = "NLAUNCH_RECORDED_TASK";
constexpr int kNotFound = 127;

/// Names that a script finds on its PATH though they may not be on this machine.
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

/// The recorder's own files, which no script writes to.
struct OwnFiles {
  fs::path folder;
  [[nodiscard]] std::string trace() const { return folder / "trace"; }
  [[nodiscard]] std::string start() const { return folder / "start.sh"; }
  [[nodiscard]] std::string programs() const { return folder / "bin"; }
  [[nodiscard]] std::string other() const { return folder / "other"; }  ///< for what is found nowhere
  [[nodiscard]] std::string answers() const { return folder / "answers"; }
  [[nodiscard]] std::string output() const { return folder / "output"; }
};

/// Read by every bash before its script. The functions are those that a cluster's login has, and that change
/// their shell.
std::string start_file(const OwnFiles& own) {
  return fmt::format(R"({0}() {{ {1} "$@"; }}
conda() {{
  command conda "$@"
  [[ ${{1-}} == activate ]] || return 0
  export CONDA_DEFAULT_ENV=${{2-base}} CONDA_PREFIX
  CONDA_PREFIX=$CONDA_DEFAULT_ENV
  [[ $CONDA_PREFIX == /* ]] || CONDA_PREFIX=/rec/conda/envs/$CONDA_DEFAULT_ENV
  PATH=$CONDA_PREFIX/bin:$PATH
}}
mamba() {{ conda "$@"; }}
micromamba() {{ conda "$@"; }}
module() {{ command module "$@"; export LD_LIBRARY_PATH=${{LD_LIBRARY_PATH-/rec/modules/lib}}; }}
ml() {{ command ml "$@"; export LD_LIBRARY_PATH=${{LD_LIBRARY_PATH-/rec/modules/lib}}; }}
exec 199>>{2}
BASH_XTRACEFD=199
PS4=$'{3}'
for nlaunch_name in PRELOAD LIBRARY_PATH AUDIT; do
  nlaunch_kept=ND_$nlaunch_name
  if [[ -n ${{!nlaunch_kept+x}} ]]; then export "LD_$nlaunch_name=${{!nlaunch_kept}}"; unset "$nlaunch_kept"; fi
done
unset nlaunch_name nlaunch_kept
set -x
)",
                     kHandler, own.other(), own.trace(), Trace::kPrompt);
}

/// For `source …/bin/activate`, of a virtual environment that is on the cluster alone, and `source activate
/// NAME`, of conda.
std::string activation(const std::string& path, const std::string& command) {
  const auto words = text::split(command, ' ');
  if (words.size() > 2) return "conda activate " + words[2] + "\n";
  return fmt::format("export VIRTUAL_ENV={0}\nexport PATH={0}/bin:$PATH\n",
                     text::shell_quote(fs::path(path).parent_path().parent_path().native()));
}

/// Variables that the recorder or bash itself has set.
bool is_own(std::string_view entry) {
  constexpr std::array<std::string_view, 7> kNames{
      "BASH_ENV=", "BASH_XTRACEFD=", "PS4=", "_=", "SHLVL=", "OLDPWD=", "SHELLOPTS="};
  return entry.starts_with(kStep) || entry.starts_with(kInTask) ||
         std::ranges::any_of(kNames, [&](auto name) { return entry.starts_with(name); });
}

std::optional<std::string> value_of(const std::vector<std::string>& environment, std::string_view name) {
  for (const auto& entry : environment) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::optional<std::uint32_t> number_of(const std::vector<std::string>& environment, std::string_view name) {
  const auto value = value_of(environment, name);
  return value ? text::whole_number<std::uint32_t>(*value) : std::nullopt;
}

/// As srun and Open MPI's mpirun set them.
std::vector<std::string> variables_of(const Task& task) {
  return {fmt::format("SLURM_PROCID={}", task.rank), fmt::format("SLURM_LOCALID={}", task.local_rank),
          fmt::format("SLURM_NODEID={}", task.node),
          fmt::format("SLURMD_NODENAME={}", Allocation::host(task.node))};
}

bool is_mpi(const std::string& name) {
  return name.starts_with("mpi") || name == "orterun";
}

/// Programs of the system run from these folders alone.
bool is_of_system(const fs::path& path) {
  const auto folder = path.parent_path();
  return folder == "/usr/bin" || folder == "/bin" || folder == "/usr/local/bin";
}

bool is_shell(const std::string& name) {
  return name == "bash" || name == "sh" || name == "dash";
}

/// Each launcher's commands behind it, whatever ran beside them.
std::vector<RecordedCommand> by_launcher(std::vector<RecordedCommand> commands) {
  std::vector<std::vector<std::size_t>> started(commands.size() + 1);
  for (std::size_t i = 0; i < commands.size(); ++i)
    started[commands[i].launcher.value_or(commands.size())].push_back(i);
  std::vector<RecordedCommand> ordered;
  ordered.reserve(commands.size());
  const auto add = [&](const auto& self, std::size_t launcher, std::optional<std::size_t> place) -> void {
    for (const auto index : started[launcher]) {
      ordered.push_back(std::move(commands[index]));
      ordered.back().launcher = place;
      self(self, index, ordered.size() - 1);
    }
  };
  add(add, commands.size(), std::nullopt);
  return ordered;
}

/// The script among the arguments of a shell; nothing for -c, or without one.
std::optional<std::string> script_of_shell(const Words& argv) {
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const auto& word = argv[i];
    if (word == "-c" || (word.size() > 2 && word[0] == '-' && word[1] != '-' && word.ends_with('c')))
      return std::nullopt;
    if (word == "-o" || word == "-O" || word == "--rcfile" || word == "--init-file") {
      ++i;
    } else if (!word.starts_with('-') && !word.starts_with('+')) {
      return word;
    }
  }
  return std::nullopt;
}

class Recorder final : public Watcher {
 public:
  Recorder(const RecordRequest& request, ScratchLayer& layer, OwnFiles own)
      : request_(request), layer_(layer), own_(std::move(own)) {}

  bool prepare() {
    std::error_code error;
    fs::create_directory(own_.programs(), error);
    fs::create_directory(own_.answers(), error);
    const auto put = [](const std::string& path, const std::string& text, mode_t mode) {
      return sys::write_file_atomically(path, text, mode).has_value();
    };
    layer_.permit(own_.trace());
    layer_.permit(own_.output());
    const bool made = put(own_.start(), start_file(own_), 0644) && put(own_.trace(), "", 0644) &&
                      put(own_.other(), "", 0755) && put(own_.output(), "", 0644);
    return made && std::ranges::all_of(known_programs(), [&](const auto& name) {
             return put(fmt::format("{}/{}", own_.programs(), name), "", 0755);
           });
  }

  [[nodiscard]] std::vector<std::string> environment() const {
    const auto& job = request_.allocation;
    const auto tasks = job.nodes * job.tasks_per_node;
    std::vector<std::string> entries{
        fmt::format("PATH={}:/usr/local/bin:/usr/bin:/bin", own_.programs()),
        fmt::format("BASH_ENV={}", own_.start()),
        fmt::format("HOSTNAME={}", Allocation::host(0)),
        fmt::format("SLURM_JOB_ID={}", job.job_id),
        fmt::format("SLURM_JOBID={}", job.job_id),
        fmt::format("SLURM_JOB_NAME={}", job.job_name),
        fmt::format("SLURM_JOB_NODELIST={}", job.host_list()),
        fmt::format("SLURM_NODELIST={}", job.host_list()),
        fmt::format("SLURM_JOB_NUM_NODES={}", job.nodes),
        fmt::format("SLURM_NNODES={}", job.nodes),
        fmt::format("SLURM_NTASKS={}", tasks),
        fmt::format("SLURM_NPROCS={}", tasks),
        fmt::format("SLURM_NTASKS_PER_NODE={}", job.tasks_per_node),
        fmt::format("SLURM_TASKS_PER_NODE={}(x{})", job.tasks_per_node, job.nodes),
        fmt::format("SLURM_CPUS_ON_NODE={}", std::max(1U, job.cpus_per_task) * job.tasks_per_node),
        fmt::format("SLURM_SUBMIT_DIR={}", folder()),
        "SLURM_SUBMIT_HOST=rec-login",
        "SLURM_JOB_PARTITION=rec-partition",
        "SLURM_JOB_USER=rec-user",
        "SLURM_CLUSTER_NAME=rec-cluster",
        "USER=rec-user",
        "LOGNAME=rec-user",
        "HOME=/rec/home",
        "TMPDIR=/tmp",
        "LANG=C.UTF-8",
    };
    if (job.cpus_per_task > 0) entries.push_back(fmt::format("SLURM_CPUS_PER_TASK={}", job.cpus_per_task));
    if (job.gpus_per_node > 0) {
      entries.push_back(fmt::format("SLURM_GPUS_ON_NODE={}", job.gpus_per_node));
      entries.push_back(fmt::format("SLURM_GPUS_PER_NODE={}", job.gpus_per_node));
    }
    for (auto& entry : variables_of({0, 0, 0})) entries.push_back(std::move(entry));
    entries.insert(entries.end(), request_.variables.begin(), request_.variables.end());
    return entries;
  }

  [[nodiscard]] std::string folder() const {
    std::error_code error;
    return fs::absolute(request_.script, error).parent_path().lexically_normal();
  }

  std::string on_start(const ProgramStart& start) override {
    read_trace();
    if (fs::path(start.path).parent_path() == own_.answers()) return start.path;
    auto argv = start.argv;
    if (start.path == own_.other() && !argv.empty()) argv.erase(argv.begin());  // the handler's arguments
    if (argv.empty()) return answer({"", kNotFound});
    if (is_searched_elsewhere(start, argv[0])) return {};
    note_pipes(start);
    const auto name = program_name(argv[0]);
    const auto program = program_name(start.path);
    const bool runs = is_of_system(start.path) && only_computes(program) && !layer_.covers(start.path);
    if (runs && is_shell(program)) return start_of_shell(start, argv, program);
    if (runs) return start.path;
    if (auto interpreter = interpreter_of(start.path))
      return script("exec {} {} \"$@\"\n", *interpreter, text::shell_quote(start.path));
    if (auto said = answer_of(argv, request_.allocation, node_of_process(start))) {
      note(start, std::move(argv), Fate::answered);
      return answer(*said);
    }
    const auto started = started_by(argv, request_.allocation);
    note(start, std::move(argv), started ? Fate::launcher : Fate::recorded);
    return started ? put_script(tasks_script(*started, is_mpi(name))) : answer({});
  }

  void on_fork(pid_t parent, pid_t child) override { parents_[child] = parent; }
  void on_end(pid_t) override { read_trace(); }

  /// What `source` and `cd` look for, and is on the cluster alone.
  std::string stand_in(pid_t pid, const std::string& path, Missing asked) override {
    read_trace();
    const auto* place = trace_.place_of(pid);
    if (place == nullptr) return {};
    // `exec NAME` looks for it by itself: it seems to be where it looks last, and its start is recorded.
    if (asked == Missing::name)
      return place->command.starts_with("exec ") &&
                     place->command.find(program_name(path)) != std::string::npos &&
                     fs::path(path).parent_path() == last_of_search_
                 ? own_.other()
                 : std::string();
    constexpr std::array<std::string_view, 4> kBuiltins{"source ", ". ", "cd ", "pushd "};
    const bool looks =
        std::ranges::any_of(kBuiltins, [&](auto word) { return place->command.starts_with(word); });
    if (!looks || place->command.find(program_name(path)) == std::string::npos) return {};
    if (std::ranges::find(recording_.not_here, path) == recording_.not_here.end())
      recording_.not_here.push_back(path);
    return program_name(path) == "activate" ? put_script(activation(path, place->command)) : "/dev/null";
  }

  Recording take(const GuardedEnd& end) {
    read_trace();
    recording_.assignments = trace_.assignments();
    for (auto& one : recording_.assignments) {
      one.script = layer_.unmapped(one.script);
      one.value = without_own(std::move(one.value));
    }
    for (const auto& entry : environment()) {
      if (!is_own(entry)) recording_.environment.push_back(without_own(entry));
    }
    for (const auto& [command, pipe] : printing_) {
      if (is_read_by_shell(pipe)) recording_.commands[command].output_is_read = true;
    }
    recording_.commands = by_launcher(std::move(recording_.commands));
    recording_.stopped = end.stopped;
    constexpr int kSignal = 128;
    recording_.exit_code = WIFEXITED(end.status) ? WEXITSTATUS(end.status) : kSignal + WTERMSIG(end.status);
    return std::move(recording_);
  }

 private:
  /// A search along PATH tries each folder; what is in none is recorded where it looks last.
  bool is_searched_elsewhere(const ProgramStart& start, const std::string& name) const {
    std::error_code error;
    const auto there = layer_.covers(start.path) || fs::exists(start.path, error);
    if (there || name.find('/') != std::string::npos) return false;
    const auto path = value_of(start.environment, "PATH").value_or("");
    return !path.empty() && !is_last_of_path(path, start.path, start.pid);
  }

  /// The folder of a program is the last that a search along PATH looks into.
  bool is_last_of_path(const std::string& path, const std::string& program, pid_t pid) const {
    const auto last = layer_.resolved(path.substr(path.rfind(':') + 1), true, pid);
    return last && *last == fs::path(program).parent_path();
  }

  /// bash runs, sh as bash, which tells what it does; a script that is on the cluster alone is recorded.
  std::string start_of_shell(const ProgramStart& start, const Words& argv, const std::string& program) {
    const auto file = script_of_shell(argv);
    if (file) {
      const auto path = layer_.resolved(fs::path(start.folder) / *file, true, start.pid);
      std::error_code error;
      if (path && !fs::exists(layer_.map_to_read(*path), error)) {
        recording_.not_here.push_back(*path);
        note(start, argv, Fate::recorded);
        return answer({});
      }
    }
    const bool tells = program == "bash" && value_of(start.environment, "BASH_ENV") == own_.start();
    return tells ? start.path
                 : script("export BASH_ENV={} PATH=\"${{PATH:-/usr/bin:/bin}}:{}\"\nexec /bin/bash \"$@\"\n",
                          own_.start(), own_.programs());
  }

  /// The shell of a script's first line, with its options; nothing for another program.
  std::optional<std::string> interpreter_of(const std::string& path) const {
    const auto where = layer_.map_to_read(path);
    const auto descriptor = sys::open_regular_file(where);
    if (!descriptor) return std::nullopt;
    std::array<char, 128> begin{};
    const std::string_view text(begin.data(), sys::read_up_to(descriptor->get(), begin));
    if (!text.starts_with("#!")) return std::nullopt;
    auto words = text::split(text::trim(text.substr(2, text.find('\n') - 2)), ' ');
    if (program_name(words[0]) == "env" && words.size() > 1) words.erase(words.begin());
    if (!is_shell(program_name(words[0]))) return std::nullopt;
    words[0] = "/bin/bash";
    return text::shell_join(words);
  }

  std::uint32_t node_of_process(const ProgramStart& start) const {
    return number_of(start.environment, "SLURM_NODEID").value_or(0);
  }

  void note(const ProgramStart& start, Words argv, Fate fate) {
    RecordedCommand command;
    command.fate = fate;
    command.argv = std::move(argv);
    for (auto& word : command.argv) word = without_own(std::move(word));
    for (const auto& entry : start.environment) {
      if (!is_own(entry)) command.environment.push_back(without_own(entry));
    }
    command.folder = start.folder;
    for (const auto& [fd, file] : start.files) {
      constexpr int kMost = 9;  // those that a script redirects
      if (fd <= kMost && file.starts_with('/') && file != "/dev/null" &&
          !file.starts_with(own_.folder.native()))
        command.files[fd] = file;
    }
    command.background = start.background;
    if (const auto step = number_of(start.environment, kStep); step && *step < recording_.commands.size())
      command.launcher = *step;
    if (value_of(start.environment, kInTask)) {
      command.task = Task{number_of(start.environment, "SLURM_PROCID").value_or(0),
                          number_of(start.environment, "SLURM_LOCALID").value_or(0), node_of_process(start)};
    }
    if (const auto* place = place_of(start.pid)) {
      command.script = layer_.unmapped(place->script);
      command.line = place->line;
    } else if (command.launcher) {
      command.script = recording_.commands[*command.launcher].script;
      command.line = recording_.commands[*command.launcher].line;
    }
    if (const auto out = start.files.find(STDOUT_FILENO);
        fate == Fate::recorded && out != start.files.end() && out->second.starts_with("pipe:"))
      printing_.emplace_back(recording_.commands.size(), out->second);
    recording_.commands.push_back(std::move(command));
  }

  // --- Who reads what a program prints ---

  void note_pipes(const ProgramStart& start) {
    const auto in = start.files.find(STDIN_FILENO);
    const auto out = start.files.find(STDOUT_FILENO);
    if (in == start.files.end() || !in->second.starts_with("pipe:")) return;
    passed_on_[in->second] = out == start.files.end() ? "" : out->second;
  }

  /// `$(…)` and `| while read`, not `| tee log`.
  [[nodiscard]] bool is_read_by_shell(std::string pipe) const {
    constexpr int kLongest = 20;
    for (int i = 0; i < kLongest && pipe.starts_with("pipe:"); ++i) {
      const auto next = passed_on_.find(pipe);
      if (next == passed_on_.end()) return true;
      pipe = next->second;
    }
    return false;
  }

  std::string without_own(std::string text) const {
    for (const auto& own : {":" + own_.programs(), own_.programs() + ":", own_.programs() + "/"}) {
      for (auto at = text.find(own); at != std::string::npos; at = text.find(own, at))
        text.replace(at, own.size(), own.back() == '/' ? "/usr/bin/" : "");
    }
    return text;
  }

  // --- Scripts that stand in for programs ---

  /// Starts the program once for each task that shows something: the first, second and last of each node.
  [[nodiscard]] std::string tasks_script(const Started& started, bool mpi) const {
    // What is on no PATH here is recorded under its name.
    const auto& name = started.argv[0];
    const auto words = text::shell_join(started.argv);
    const auto command = name.find('/') != std::string::npos
                             ? "exec " + words
                             : fmt::format("type -P {} >/dev/null && exec {}; exec {} {}",
                                           text::shell_quote(name), words, own_.other(), words);
    auto script = fmt::format("export {}={}\n", kStep, recording_.commands.size() - 1);
    if (started.tasks.empty()) return script + command + "\n";
    const auto size = started.tasks.size();
    script += fmt::format("export {}=1 SLURM_STEP_NUM_TASKS={} SLURM_NTASKS={} SLURM_NPROCS={}\n", kInTask,
                          size, size, size);
    for (std::size_t i = 0; i < size; ++i) {
      const auto& task = started.tasks[i];
      const bool last = i + 1 == size || started.tasks[i + 1].node != task.node;
      if (task.local_rank > 1 && !last) continue;
      auto variables = variables_of(task);
      variables.push_back(fmt::format("HOSTNAME={}", Allocation::host(task.node)));
      if (mpi) {
        variables.push_back(fmt::format("OMPI_COMM_WORLD_RANK={}", task.rank));
        variables.push_back(fmt::format("OMPI_COMM_WORLD_LOCAL_RANK={}", task.local_rank));
        variables.push_back(fmt::format("OMPI_COMM_WORLD_SIZE={}", size));
      }
      if (started.keeps_environment) {
        script += fmt::format("(export {}; {})\n", text::join(variables, " "), command);
      } else {
        const auto kept = fmt::format(
            "PATH=\"$PATH\" BASH_ENV=\"$BASH_ENV\" HOME=\"$HOME\" {0}=\"${0}\" {1}=1", kStep, kInTask);
        script += fmt::format("(cd \"$HOME\" 2>/dev/null; exec env -i {} {} {})\n", kept,
                              text::join(variables, " "), words);
      }
    }
    return script + "exit 0\n";
  }

  std::string answer(const Answer& said) {
    return script("printf %s {}\nexit {}\n", text::shell_quote(said.text), said.code);
  }

  template <class... T>
  std::string script(fmt::format_string<T...> format, T&&... arguments) {
    return put_script(fmt::format(format, std::forward<T>(arguments)...));
  }

  /// The path of a script of these lines.
  std::string put_script(const std::string& lines) {
    const auto [place, is_new] =
        scripts_.try_emplace(lines, fmt::format("{}/{}", own_.answers(), scripts_.size()));
    // -p: without BASH_ENV, so that it is in no trace.
    if (is_new) (void)sys::write_file_atomically(place->second, "#!/bin/bash -p\n" + lines, 0755);
    return place->second;
  }

  /// Where the process, or the shell that forked it, has come to.
  [[nodiscard]] const Place* place_of(pid_t pid) const {
    constexpr int kDeepest = 50;
    for (int i = 0; i < kDeepest; ++i) {
      const auto* place = trace_.place_of(pid);
      if (place != nullptr && !place->script.empty()) return place;  // of bash -c: the line that starts it
      const auto parent = parents_.find(pid);
      if (parent == parents_.end()) break;
      pid = parent->second;
    }
    return nullptr;
  }

  void read_trace() {
    if (!trace_file_) {
      auto opened = sys::open_regular_file(own_.trace());
      if (!opened) return;
      trace_file_ = std::move(*opened);
    }
    std::array<char, 65536> room{};
    for (;;) {
      const auto got = sys::read_up_to(trace_file_.get(), room);
      trace_.read({room.data(), got}, own_.folder);
      if (got < room.size()) break;
    }
  }

  const RecordRequest& request_;
  ScratchLayer& layer_;
  OwnFiles own_;
  Recording recording_;
  Trace trace_;
  sys::UniqueFd trace_file_;
  fs::path last_of_search_ = fs::weakly_canonical("/bin");  ///< of the PATH that a script begins with
  std::map<pid_t, pid_t> parents_;
  std::map<std::string, std::string> scripts_;                 ///< lines → path
  std::vector<std::pair<std::size_t, std::string>> printing_;  ///< a recorded command → the pipe it prints to
  std::map<std::string, std::string> passed_on_;               ///< a pipe → where its reader prints
};

/// Removed with all that is in it.
struct TemporaryFolder {
  fs::path path;
  ~TemporaryFolder() {
    std::error_code error;
    make_passable(path);
    fs::remove_all(path, error);
  }
  /// What a script has closed with chmod.
  static void make_passable(const fs::path& folder) {
    std::error_code error;
    fs::permissions(folder, fs::perms::owner_all, fs::perm_options::add, error);
    fs::directory_iterator entry(folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      if (fs::is_directory(entry->symlink_status(error))) make_passable(entry->path());
    }
  }
};

}  // namespace

const Assignment* Recording::origin(const std::string& name, const std::string& value) const {
  const Assignment* found = nullptr;
  for (const auto& one : assignments) {
    if (one.name == name && one.value == value) found = &one;
  }
  return found;
}

namespace {

/// The signal that asked this process to end meanwhile is in `signal`.
Result<Recording> record_until(const RecordRequest& request, int& signal) {
  std::error_code error;
  auto name = (fs::temp_directory_path(error) / "nlaunch-record-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    return failure("shell.scratch", "cannot make the folder {}; TMPDIR says where it is made", name);
  const TemporaryFolder scratch{fs::canonical(name, error)};
  const OwnFiles own{scratch.path / "own"};
  fs::create_directory(own.folder, error);
  fs::create_directory(scratch.path / "layer", error);
  ScratchLayer layer(scratch.path / "layer");
  Recorder recorder(request, layer, own);
  if (!recorder.prepare()) return failure("shell.scratch", "cannot write to {}", name);
  const sys::UniqueFd output(::open(own.output().c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  GuardedProgram program;
  program.argv = {"/bin/bash", "--noprofile", "--norc", fs::absolute(request.script, error)};
  program.argv.insert(program.argv.end(), request.arguments.begin(), request.arguments.end());
  program.environment = recorder.environment();
  program.folder = recorder.folder();
  program.out = output.get();
  program.limits = request.limits;
  const auto end = run_guarded(program, layer, recorder);
  if (!end) return std::unexpected(end.error());
  signal = end->signal;
  auto recording = recorder.take(*end);
  constexpr std::uint64_t kLargestOutput = 64U << 20U;
  constexpr std::size_t kKept = 64U << 10U;
  const auto said = sys::read_regular_file(own.output(), kLargestOutput).value_or("");
  recording.output = layer.without_layer(said.substr(said.size() - std::min(said.size(), kKept)));
  return recording;
}

}  // namespace

Result<Recording> record(const RecordRequest& request) {
  int signal = 0;
  auto recording = record_until(request, signal);
  if (signal != 0) ::raise(signal);
  return recording;
}

}  // namespace nlaunch::shell
