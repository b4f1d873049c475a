#include "lint/script_programs.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "lint/programs.h"
#include "lint/script_text.h"
#include "shell/launchers.h"
#include "sys/files.h"

namespace nlaunch::lint {
namespace {

using shell::is_any_of;
using shell::program_name;
using shell::RecordedCommand;

class ProgramReader {
 public:
  ProgramReader(const shell::Recording& recording, const shell::Allocation& allocation,
                ScriptSources& sources, LintInput& input)
      : recording_(recording), allocation_(allocation), sources_(sources), input_(input) {}

  void read() {
    for (const auto& command : recording_.commands) add(command);
    note_asked_ports();
  }

 private:
  void add(const RecordedCommand& command) {
    constexpr std::size_t kMost = 500;
    auto& programs = input_.script->programs;
    if (programs.size() >= kMost) return;
    const auto* told = &command;  // where a line is known
    while (sources_.of(told->script).count() == 0 && told->launcher)
      told = &recording_.commands[*told->launcher];
    const auto span = sources_.of(told->script).whole(sources_.begin_of_command(told->script, told->line));
    for (const auto& file : command.given)
      if (is_named_by(command, file.path)) add_own_file(file, span);
    if (command.fate == shell::Fate::launcher) return;
    Program program{.words = as_read(command.argv), .span = span};
    program.called = span.file == sources_.main().file() ? span : place_of_call(told->script);
    for (const auto& entry : command.environment) {
      const auto equals = entry.find('=');
      if (equals != std::string::npos)
        program.environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
    program.works =
        command.fate == shell::Fate::recorded && !command.output_is_read && !is_helper(command.argv);
    program.background = command.background;
    program.waited = command.waited;
    program.output = output_of(command);
    program.recorded_as = static_cast<std::size_t>(&command - recording_.commands.data());
    for (auto at = command.launcher; at; at = recording_.commands[*at].launcher) {
      program.background = program.background || recording_.commands[*at].background;
      const auto tasks = tasks_of(*at);
      if (program.step || tasks.empty()) continue;
      program.step = *at;
      std::map<std::uint32_t, std::uint32_t> on_node;
      for (const auto& task : tasks)
        program.local_tasks = std::max(program.local_tasks, ++on_node[task.node]);
      program.nodes_of_step = static_cast<std::uint32_t>(on_node.size());
    }
    if (command.task) {
      program.node = command.task->node;
      program.rank = command.task->rank;
    }
    if (program.works) add_readings(command);
    programs.push_back(std::move(program));
  }

  /// Where the main script calls a file: `bash FILE`, `./FILE`. Without a file if it does not, or sources it.
  SourceSpan place_of_call(const std::string& script) {
    const auto name = program_name(script);
    for (const auto& command : input_.script->commands) {
      const auto file = shell::is_shell(command.words[0]) ? shell::script_of_shell(command.words)
                                                          : std::optional(command.words[0]);
      if (command.span.file == sources_.main().file() && file && program_name(*file) == name)
        return command.span;
    }
    return {};
  }

  /// A server of the user's own: the first program in the background with a port that another command asks,
  /// or has in a URL.
  void note_asked_ports() {
    // `--url http://localhost:8000`
    const auto has_url = [](const RecordedCommand& one, const std::string& port) {
      return one.fate == shell::Fate::recorded && std::ranges::any_of(one.argv, [&](const std::string& word) {
               return word.contains("://") && shell::Allocation::names_host(word) &&
                      shell::names_port({word}, port);
             });
    };
    const auto is_asked = [&](const std::string& port, std::size_t program) {
      const auto& all = recording_.commands;
      const auto first = std::ranges::find_if(all, [&](const auto& one) {
        return (asks(one) && shell::names_port(one.argv, port)) || has_url(one, port);
      });
      return shell::is_port(port) && first != all.end() &&
             program < static_cast<std::size_t>(first - all.begin());
    };
    std::map<std::string, std::string> servers;  // port → name
    for (auto& program : input_.script->programs) {
      if (!program.works || !program.background || program_name(program.words[0]) == "ray") continue;
      if (is_engine(program)) servers.emplace(port_of_server(program).port, shown_name(program));
      for (const auto& word : program.words) {
        const auto port = word.substr(word.find('=') + 1);
        if (is_engine(program) || !is_asked(port, program.recorded_as)) continue;
        const auto of = servers.emplace(port, shown_name(program)).first;
        if (of->second == shown_name(program)) program.asked_port = port;
      }
    }
  }

  /// `program > log`, but not `>> log`.
  static std::string output_of(const RecordedCommand& command) {
    const auto out = command.files.find(1);
    const bool is_file =
        out != command.files.end() && out->second.starts_with('/') && !out->second.starts_with("/dev/");
    return is_file && !command.appends ? out->second : "";
  }

  /// By its own name, not that of its directory.
  static bool is_named_by(const RecordedCommand& command, const std::string& path) {
    const auto relative = std::filesystem::path(path).lexically_relative(command.folder).native();
    const auto names = [&](const std::string& text) {
      return shell::names_path(text, path, false) ||
             (!relative.empty() && shell::names_path(text, relative, false)) || text == "./" + relative;
    };
    return std::ranges::any_of(command.argv, names) ||
           std::ranges::any_of(command.environment, [&](const auto& entry) { return names(entry); });
  }

  void add_own_file(const shell::WrittenFile& file, const SourceSpan& span) {
    auto& files = input_.script->own_files;
    if (file.path.ends_with('/') || std::ranges::find(files, file.path, &OwnFile::path) != files.end())
      return;
    files.push_back({file.path, file.text.value_or(""), span});
  }

  /// The source of a Python program, and configurations that its words name: `--config grpo.yaml`.
  void add_readings(const RecordedCommand& command) {
    const auto& argv = command.argv;
    for (const auto& word : argv)
      if (const auto file = word.substr(word.find('=') + 1);
          file.ends_with(".yaml") || file.ends_with(".yml"))
        add_reading(command, file);
    const auto file =
        std::ranges::find_if(argv, [](const std::string& word) { return word.ends_with(".py"); });
    if (program_name(argv[0]).starts_with("python") && file != argv.end() && !shell::has(argv, "-m"))
      add_reading(command, *file);
  }

  /// Its text, if it is here.
  void add_reading(const RecordedCommand& command, const std::string& file) {
    const auto path = (std::filesystem::path(command.folder) / file).lexically_normal();
    if (!files_read_.insert(path.native()).second) return;
    constexpr std::uint64_t kLargest = 1U << 20U;
    auto text = sys::read_regular_file(path.native(), kLargest);
    if (!text) return;
    const auto beside = path.lexically_proximate(sources_.folder());
    input_.readings.push_back(
        {beside.native().starts_with("..") ? path.native() : beside.native(), std::move(*text)});
  }

  /// The commands that a launcher starts; empty if it replaces itself with the command.
  std::vector<shell::Task> tasks_of(std::size_t launcher) {
    const auto known = tasks_.find(launcher);
    if (known != tasks_.end()) return known->second;
    const auto started = shell::started_by(recording_.commands[launcher].argv, allocation_);
    return tasks_[launcher] = started ? started->tasks : std::vector<shell::Task>();
  }

  const shell::Recording& recording_;
  const shell::Allocation& allocation_;
  ScriptSources& sources_;
  LintInput& input_;
  std::map<std::size_t, std::vector<shell::Task>> tasks_;  ///< by launcher
  std::set<std::string> files_read_;
};

}  // namespace

shell::Words as_read(shell::Words words) {
  if (const auto at = shell::behind_runners(words); at > 0 && at < words.size()) {
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at));
    if (words[0].ends_with(".py")) words.insert(words.begin(), "python");
  }
  const bool ray = words.size() > 2 && program_name(words[0]).starts_with("python") && words[1] == "-m" &&
                   words[2] == "ray.scripts.scripts";
  if (!ray) return words;
  words.erase(words.begin(), words.begin() + 2);
  words[0] = "ray";
  return words;
}

bool is_helper(const shell::Words& called) {
  static const shell::Options kHelpers{
      "ml",         "module",   "pip",    "pip3",        "conda",   "mamba",
      "micromamba", "git",      "wget",   "curl",        "rsync",   "scp",
      "tar",        "unzip",    "gzip",   "zstd",        "pigz",    "huggingface-cli",
      "hf",         "wandb",    "make",   "cmake",       "gcc",     "g++",
      "nvcc",       "scancel",  "sbatch", "pkill",       "killall", "kill",
      "nvidia-smi", "rocm-smi", "ip",     "ibstat",      "lfs",     "tmux",
      "screen",     "aws",      "gsutil", "gcloud",      "kubectl", "ibv_devinfo",
      "env",        "printenv", "source", "notify-send", "mail",    "top",
      "htop",       "dcgmi",    "uname",  "fuser",       "ulimit",  "ssh-keygen",
      "numactl"};
  const auto argv = as_read(called);
  const auto name = program_name(argv.at(0));
  const auto verb = argv.size() > 1 ? argv[1] : std::string();
  if (name == "wandb" && is_any_of(verb, {"agent", "launch-agent"})) return false;
  if (kHelpers.contains(name)) return true;
  if (argv.size() == 2 && is_any_of(verb, {"--version", "-V", "--help", "--check"})) return true;
  if (name == "ray") return is_any_of(verb, {"stop", "status", "--version"});
  if (name == "uv") return true;
  if (name == "enroot" || name == "apptainer" || name == "singularity" || name == "docker")
    return is_any_of(verb, {"import", "create", "pull", "build", "remove", "rm", "stop", "load", "inspect"});
  const bool pip = argv.size() > 2 && verb == "-m" && is_any_of(argv[2], {"pip", "venv", "ensurepip"});
  return name.starts_with("python") && (pip || is_any_of(verb, {"--version", "-V"}));
}

void add_programs(const shell::Recording& recording, const shell::Allocation& allocation,
                  ScriptSources& sources, LintInput& input) {
  ProgramReader(recording, allocation, sources, input).read();
}

}  // namespace nlaunch::lint
