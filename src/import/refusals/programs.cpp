#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "base/secrets.h"
#include "base/text.h"
#include "import/kills.h"
#include "import/refusals/refusal.h"
#include "shell/launchers.h"
#include "shell/mpirun.h"
#include "shell/srun.h"

/// How the script starts a program: by what, with which GPUs, arguments and secrets.
namespace nlaunch::import {
namespace {

/// True for a step that the recorder does not take apart.
bool is_not_taken_apart(const Part& part) {
  const auto name = part.argv.empty() ? std::string() : shell::program_name(part.argv[0]);
  return name == "srun" || name.starts_with("mpi") || name == "orterun";
}

/// An argument that should name a host but is empty: "--node-ip-address=", "--address :6379".
std::optional<std::string> empty_host(const shell::Words& argv) {
  static const RE2 kName(R"(--([\w-]*[-_])?(addr|address|ip|host|endpoint|master)([-_][\w-]*)?)");
  static const RE2 kEmpty(R"(:\d{2,5})");
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const auto equals = argv[i].find('=');
    if (!RE2::FullMatch(argv[i].substr(0, equals), kName)) continue;
    const bool apart = equals == std::string::npos;
    if (apart && i + 1 == argv.size()) continue;
    const auto value = apart ? argv[i + 1] : argv[i].substr(equals + 1);
    if (value.empty() || RE2::FullMatch(value, kEmpty)) return apart ? argv[i] + " " + value : argv[i];
  }
  return std::nullopt;
}

/// True if the program moves itself to the background, so that exit code 0 does not mean it is done.
bool detaches(const shell::Words& argv) {
  const auto name = shell::program_name(argv[0]);
  const auto has = [&](const char* word) { return shell::has(argv, word); };
  return (name == "nginx" &&
          std::ranges::none_of(argv, [](const auto& word) { return word.contains("daemon off"); })) ||
         (name == "redis-server" && has("--daemonize")) || name == "slapd" ||
         (name == "mongod" && has("--fork")) || (name == "pg_ctl" && has("start")) ||
         (name == "nvidia-cuda-mps-control" && has("-d")) ||
         ((name == "singularity" || name == "apptainer") && has("instance") &&
          (has("start") || has("run"))) ||
         (name == "ray" && has("submit") && has("--no-wait"));
}

/// "/dev/fd/63", in the command line of a program: what `<(...)` and `>(...)` become.
std::optional<std::string> substituted(const shell::Words& argv) {
  static const RE2 kPipe(R"((?:^|=)(/dev/fd/\d+)$)");
  std::string path;
  for (const auto& word : argv)
    if (RE2::PartialMatch(word, kPipe, &path)) return path;
  return std::nullopt;
}

/// `xargs -P 8` on the line of a part: it starts several of them at once.
bool is_of_parallel_xargs(const shell::Recording& recording, const Part& part) {
  static const shell::Options kValued{"-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s"};
  static const RE2 kParallel(R"(-[a-zA-Z0-9]*P(\d*)|--max-procs=(\d+))");
  return std::ranges::any_of(recording.traced, [&](const auto& one) {
    const bool here = part.line == 0 || (one.line == part.line && one.script == part.script);
    if (!here || !one.text.starts_with("xargs ")) return false;
    const auto words = shell::words_of(one.text);
    const auto program = shell::program_at(words, 1, kValued);
    for (std::size_t i = 1; i < std::min(program, words.size()); ++i) {
      std::string number;
      std::string of_long;
      if (!RE2::FullMatch(words[i], kParallel, &number, &of_long)) continue;
      if (number.empty()) number = of_long.empty() && i + 1 < words.size() ? words[i + 1] : of_long;
      return number != "1";
    }
    return false;
  });
}

Sentences starts_a_node(const Examined& script) {
  return of_roles(script, [](const ImportedRole&, const Part& part) -> std::string {
    if (!shell::node_of(part.argv[0])) return {};
    return fmt::format(
        "line {}: srun starts '{}', the name of a node: it gets several nodes as several words. Join them "
        "with commas",
        part.line, text::printable(part.argv[0]));
  });
}

Sentences substitutes_a_process(const Examined& script) {
  return of_roles(script, [](const ImportedRole&, const Part& part) -> std::string {
    const auto path = substituted(part.argv);
    if (!path) return {};
    return fmt::format(
        "line {}: `{}` reads or writes {}, a process substitution, which exists only while bash runs the "
        "script: use a file instead",
        part.line, text::printable(text::shell_join(part.argv)), *path);
  });
}

Sentences uses_parallel_xargs(const Examined& script) {
  return of_roles(script, [&](const ImportedRole&, const Part& part) -> std::string {
    if (!is_of_parallel_xargs(script.recording, part)) return {};
    return fmt::format(
        "line {}: xargs starts several programs at once (-P), and which of them run at the same time is not "
        "known: start them with & in a loop, and `wait`",
        part.line);
  });
}

/// `parallel -j 2 python train.py --lr {} ::: 1e-4 1e-5`
Sentences starts_in_parallel(const Examined& script) {
  return of_roles(script, [](const ImportedRole& role, const Part& part) -> std::string {
    if (part.argv.empty() || shell::program_name(part.argv[0]) != "parallel") return {};
    return fmt::format(
        "line {}: parallel starts several programs at once, which are not recorded: start them with & in a "
        "loop, and `wait`",
        role.line);
  });
}

/// What import does not understand of an mpirun; empty if it is something else.
std::string why_no_mpirun(const shell::Words& argv) {
  if (argv.empty() || !shell::is_mpirun(shell::program_name(argv[0])) || shell::has(argv, ":")) return {};
  const auto call = shell::read_mpirun(argv);
  if (!call.unknown.empty())
    return fmt::format(
        "import does not know the option {} of {}: the next word may be its value or the program. "
        "Leave it out, or write it with = if it has a value",
        text::printable(call.unknown[0]), shell::program_name(argv[0]));
  if (!call.placed_by.empty())
    return fmt::format(
        "how many processes {} --{} puts on a node is not known here: use --map-by ppr:N:node, or -N",
        shell::program_name(argv[0]), text::printable(call.placed_by));
  if (!call.hosts.empty() && call.mapping == shell::Mapping::fill && call.processes)
    return fmt::format(
        "{} places {} processes on hosts with fewer slots, or on hosts that are not of the job: write "
        "-H HOST:N,HOST:N",
        shell::program_name(argv[0]), *call.processes);
  if (call.mapping == shell::Mapping::cyclic)
    return fmt::format(
        "this {} numbers its processes round the nodes (node, --bynode), but a plan node by node: "
        "use --map-by slot, or one process on each node",
        shell::program_name(argv[0]));
  return {};
}

Sentences has_a_step_of_several(const Examined& script) {
  return of_roles(script, [](const ImportedRole& role, const Part& part) -> std::string {
    if (!is_not_taken_apart(part)) return {};
    if (const auto why = why_no_mpirun(part.argv); !why.empty())
      return fmt::format("line {}: {}", role.line, why);
    return fmt::format(
        "line {}: this step cannot be imported. It starts several programs (`a : b`, --multi-prog), or its "
        "nodes are not nodes of the job: give each program its own step, on nodes of the job",
        role.line);
  });
}

/// `mpirun --hostfile FILE`, where the hosts in FILE have other numbers of processes than the job's nodes.
Sentences places_by_a_file(const Examined& script) {
  return of_each(script.recording.commands, [&](const auto& command) -> std::string {
    if (command.fate != shell::Fate::launcher || !shell::is_mpirun(shell::program_name(command.argv[0])))
      return {};
    const auto file = shell::read_mpirun(command.argv).hostfile;
    const auto given = std::ranges::find_if(command.given, [&](const shell::WrittenFile& one) {
      return !file.empty() && one.text && one.path.ends_with(file.substr(file.rfind('/') + 1));
    });
    if (file.empty()) return {};
    if (given == command.given.end())
      return fmt::format(
          "line {}: {} places processes by the hosts in {}, which are not known here: name them with -H "
          "HOST:N,HOST:N",
          command.line, shell::program_name(command.argv[0]), text::printable(file));
    std::vector<std::string> hosts;
    for (const auto& [host, slots] : shell::hosts_in_file(*given->text))
      hosts.push_back(fmt::format("{}:{}", host, slots.value_or(script.allocation.tasks_per_node)));
    auto by_file = command.argv;
    const std::vector<std::string> option{"-H", text::join(hosts, ",")};
    by_file.insert(by_file.begin() + 1, option.begin(), option.end());
    const auto placed = shell::started_by(command.argv, script.allocation);
    const auto wanted = shell::started_by(by_file, script.allocation);
    if (hosts.empty() || (wanted && placed && wanted->tasks == placed->tasks)) return {};
    return fmt::format(
        "line {}: the hosts in {} do not get the processes that the job's nodes get in a plan: name "
        "them with -H host:N,host:N",
        command.line, text::printable(file));
  });
}

/// A word that is a program, whatever stands before it.
bool is_program(const std::string& word) {
  static const shell::Options kPrograms{"accelerate", "bash", "conda", "deepspeed", "julia",
                                        "node",       "ray",  "sh",    "sgl",       "torchrun",
                                        "uv",         "vllm", "nsys",  "ncu"};
  const auto name = shell::program_name(word);
  const auto launchers = shell::names_of_launchers();
  return word.contains('/') || name.starts_with("python") || kPrograms.contains(name) ||
         std::ranges::find(launchers, name) != launchers.end();
}

/// `srun --quotatype spot python train.py`: whether a site's option has a value is not known.
Sentences has_an_unknown_option(const Examined& script) {
  return of_each(script.recording.commands, [&](const auto& command) -> std::string {
    if (command.fate != shell::Fate::launcher || shell::program_name(command.argv[0]) != "srun") return {};
    const auto options = shell::options_of_srun(command.argv);
    const auto program = shell::words_of_srun(command.argv);
    const auto words = shell::rest(command.argv, program);
    if (options.empty() || options.back().known || options.back().value || words.size() < 2 ||
        is_program(words[0]) || !is_program(words[1]))
      return {};
    return fmt::format(
        "line {}: srun itself does not know --{}: is `{}` its value, or the program? Write --{}={}",
        command.line, text::printable(options.back().name), text::printable(words[0]),
        text::printable(options.back().name), text::printable(words[0]));
  });
}

Sentences lacks_a_host(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    const auto word = empty_host(script.recording.commands[part.commands[0]].argv);
    if (!word) return {};
    return fmt::format(
        "line {}: `{}` has no host: the script gets it from the output of a program, which is not known "
        "here. Give the output with --prints 'PART OF THE COMMAND=TEXT'",
        role.line, text::printable(*word));
  });
}

Sentences starts_a_daemon(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    if (!detaches(part.program)) return {};
    const auto line = text::printable(text::shell_join(script.recording.commands[part.commands[0]].argv));
    if (shell::has(part.program, "--no-wait"))
      return fmt::format(
          "line {}: `{}` returns when the job is submitted, and the run would end with it: leave --no-wait "
          "out",
          role.line, line);
    return fmt::format(
        "line {}: `{}` moves itself to the background, where nlaunch does not see it: start it in the "
        "foreground, with & (nginx: -g 'daemon off;')",
        role.line, line);
  });
}

/// A program in the background that only the cluster knows to be stopped, before another one starts.
Sentences stops_unknown_programs(const Examined& script) {
  const auto& recording = script.recording;
  const auto by_id = of_roles(script, [](const ImportedRole& role, const Part& part) -> std::string {
    if (part.program.empty() || shell::program_name(part.program[0]) != "kill") return {};
    return fmt::format(
        "line {}: `{}` ends a process by its id, which is another one in each run: use the shell's "
        "own kill, kill $PID",
        role.line, text::printable(text::shell_join(part.program)));
  });
  if (!by_id.empty()) return by_id;
  const auto kills = unknown_kills(recording);
  if (kills.empty()) return {};
  const auto first_trace = [&](const std::string& file, std::uint32_t line) {
    return std::ranges::find_if(recording.traced,
                                [&](const auto& one) { return one.script == file && one.line == line; });
  };
  const auto last_trace = [&](const Part& part) {
    return std::find_if(recording.traced.rbegin(), recording.traced.rend(),
                        [&](const auto& one) { return one.script == part.script && one.line == part.line; })
        .base();
  };
  for (const auto& kill : kills) {
    const auto before = [&](const Part& part) {
      return kill.command ? part.commands[0] < *kill.command
                          : first_trace(part.script, part.line) < first_trace(kill.file, kill.line);
    };
    const auto behind = [&](const Part& part) {
      return kill.command ? part.commands.back() > *kill.command
                          : last_trace(part) > first_trace(kill.file, kill.line);
    };
    for (const auto& a : script.out.roles) {
      if (!a.part || !before(script.out.parts[*a.part])) continue;
      const auto& stopped = script.out.parts[*a.part];
      const bool ray = stopped.program.size() > 1 && shell::program_name(stopped.program[0]) == "ray" &&
                       stopped.program[1] == "start";
      if (!(stopped.background || ray) || (kill.text.starts_with("ray") && !ray)) continue;
      for (const auto& b : script.out.roles) {
        if (!b.part || b.part == a.part) continue;
        const auto& next = script.out.parts[*b.part];
        const bool new_cluster = next.program.size() > 1 && shell::program_name(next.program[0]) == "ray" &&
                                 next.program[1] == "start";
        if (kill.text.starts_with("ray") && !new_cluster) continue;
        if (!behind(next) || before(next) || (!ray && had_exited(recording, stopped, next))) continue;
        return {
            fmt::format("line {}: `{}` stops what runs then, such as {}, before {} in line {} starts: in the "
                        "plan they would run at the same time. Split the script there",
                        kill.line, text::printable(kill.text), a.name, b.name, b.line)};
      }
    }
  }
  return {};
}

Sentences has_no_name(const Examined& script) {
  return of_roles(script, [](const ImportedRole& role, const Part&) -> std::string {
    if (!role.command.empty() && !role.command[0].empty()) return {};
    return fmt::format("line {}: the program name is empty", role.line);
  });
}

/// `export ROCR_VISIBLE_DEVICES=$SLURM_LOCALID` in the batch script: one value for all tasks of a node.
Sentences gives_tasks_one_gpu(const Examined& script) {
  return of_roles(script, [](const ImportedRole& role, const Part& part) -> std::string {
    for (const auto* name : {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
      const auto visible = part.changes.find(name);
      const bool is_set = visible != part.changes.end() && visible->second && !visible->second->empty();
      if (!is_set || part.tasks.size() < 2 || visible->second->contains(',')) continue;
      return fmt::format(
          "line {}: the script sets {}={} for all tasks of {}, and Slurm may set it again for each: leave it "
          "out, or set it in each task",
          role.line, name, text::printable(*visible->second), role.name);
    }
    return {};
  });
}

/// CUDA_VISIBLE_DEVICES=MIG-...: which GPU that is a part of, only the node knows.
Sentences names_a_slice(const Examined& script) {
  return of_roles(script, [](const ImportedRole& role, const Part& part) -> std::string {
    const auto visible = part.changes.find("CUDA_VISIBLE_DEVICES");
    if (visible == part.changes.end() || !visible->second || !visible->second->contains("-") ||
        *visible->second == "-1")
      return {};
    return fmt::format(
        "line {}: {} sees {} by its UUID (CUDA_VISIBLE_DEVICES), which is of one node: give its number",
        role.line, role.name, text::printable(*visible->second));
  });
}

/// `--base-gpu-id 4`, `--device cuda:2`: a GPU by its number on the node, of which the role sees a part.
Sentences numbers_gpus_of_the_node(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    static const RE2 kDevice(R"(^(?:[-+]*[\w.-]+=)?cuda:(\d+)$)");
    static const RE2 kBase(R"(^--base-gpu-id=(\d+)$)");
    const auto sees = role.rendezvous && role.gpus == 1 ? script.out.gpus : role.gpus;
    if (sees >= script.out.gpus) return {};  // of a node that has no such GPU
    for (std::size_t i = 1; i < part.argv.size() && sees > 0; ++i) {
      std::uint32_t gpu = 0;
      const bool named =
          RE2::FullMatch(part.argv[i], kDevice, &gpu) || RE2::FullMatch(part.argv[i], kBase, &gpu) ||
          (part.argv[i - 1] == "--base-gpu-id" && RE2::FullMatch(part.argv[i], R"((\d+))", &gpu));
      if (!named || gpu < sees) continue;
      const auto said =
          part.argv[i - 1] == "--base-gpu-id" ? part.argv[i - 1] + " " + part.argv[i] : part.argv[i];
      return fmt::format(
          "line {}: `{}` is a GPU by its number on the node, but {} sees only its own {}, numbered from 0: "
          "choose them with CUDA_VISIBLE_DEVICES in the script, and leave this out",
          part.line, text::printable(said), role.name, text::count(sees, "GPU"));
    }
    return {};
  });
}

/// `tmux new-session -d "vllm serve ..."`, `screen -dm`.
Sentences hides_programs(const Examined& script) {
  return of_each(script.recording.commands, [](const auto& command) -> std::string {
    const auto& argv = command.argv;
    const auto name = shell::program_name(argv[0]);
    const auto has = [&](const char* word) { return shell::has(argv, word); };
    const bool in_tmux =
        name == "tmux" &&
        (has("send-keys") || has("send") ||
         (has("-d") && !argv.back().starts_with('-') && argv.back().find(' ') != std::string::npos));
    const bool in_screen = name == "screen" && (has("-dm") || has("-d") || has("-dmS"));
    if (!in_tmux && !in_screen) return {};
    return fmt::format(
        "line {}: `{}` starts a program in a terminal of its own, which is not imported: start it with &",
        command.line, text::printable(text::shell_join(argv)));
  });
}

/// A function that `export -f` hands on: nothing in a plan can.
Sentences calls_a_function(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    for (const auto& entry : script.recording.commands[part.commands[0]].environment) {
      static const RE2 kFunction(R"(^BASH_FUNC_(\w+)%%=)");
      std::string name;
      if (!RE2::PartialMatch(entry, kFunction, &name)) continue;
      const auto uses = [&](const std::string& word) {
        return RE2::PartialMatch(word, fmt::format(R"((^|[^\w./-]){}($|[^\w./-]))", name));
      };
      if (std::ranges::any_of(part.argv, uses))
        return fmt::format(
            "line {}: `{}` calls {}, a function of the script (export -f): put it into a file of its own",
            role.line, text::printable(text::shell_join(part.argv)), name);
    }
    return {};
  });
}

/// Which of two secrets with the same text a program is given is not known.
Sentences has_equal_secrets(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    for (const auto& one : role.handed_over) {
      std::vector<std::string> names;
      for (const auto& [name, value] : part.changes)
        if (value == one.value && looks_like_secret(name)) names.push_back(name);
      if (names.size() > 1)
        return fmt::format(
            "line {}: {} have the same value, and which of them {} is given is not known: give each its own",
            role.line, text::join(names, " and "), role.name);
    }
    return {};
  });
}

/// `exec -a NAME PROGRAM`: argv[0] is not the program.
Sentences starts_under_another_name(const Examined& script) {
  return of_each(script.recording.traced, [](const auto& one) -> std::string {
    static const RE2 kOtherName(R"(^exec\s+(?:-[cl]+\s+)*-c?l?a\s+(\S+)\s+(\S+))");
    std::string name;
    std::string program;
    if (!RE2::PartialMatch(one.text, kOtherName, &name, &program)) return {};
    return fmt::format("line {}: `exec -a` starts {} under another name, {}, which no role does", one.line,
                       text::printable(program), text::printable(name));
  });
}

}  // namespace

std::span<const Refusal> refusals_of_programs() {
  static constexpr std::array kRefusals{
      Refusal{"import.node-as-program", starts_a_node},
      Refusal{"import.substitution", substitutes_a_process},
      Refusal{"import.xargs", uses_parallel_xargs},
      Refusal{"import.parallel", starts_in_parallel},
      Refusal{"import.step", has_a_step_of_several},
      Refusal{"import.step", places_by_a_file},
      Refusal{"import.step", has_an_unknown_option},
      Refusal{"import.empty-host", lacks_a_host},
      Refusal{"import.detaches", starts_a_daemon},
      Refusal{"import.kill", stops_unknown_programs},
      Refusal{"import.visible", gives_tasks_one_gpu},
      Refusal{"import.visible", names_a_slice},
      Refusal{"import.visible", numbers_gpus_of_the_node},
      Refusal{"import.terminal", hides_programs},
      Refusal{"import.function", calls_a_function},
      Refusal{"import.secret", has_equal_secrets},
      Refusal{"import.empty-program", has_no_name},
      Refusal{"import.name", starts_under_another_name},
  };
  return kRefusals;
}

}  // namespace nlaunch::import
