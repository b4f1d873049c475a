#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/allocation.h"
#include "shell/words.h"

/// Servers that a script starts: vLLM, SGLang, Ray.
namespace nlaunch::lint {
namespace {

using shell::program_name;

void check_too_parallel(const LintInput& input, Report& report) {
  if (!input.script) return;
  each_line(*input.script, [&](const Program& program, const std::vector<const Program*>&) {
    const auto gpus = gpus_of(input, program);
    const auto nodes = std::max(1U, number_of(program, {"--nnodes"}).value_or(1));
    const bool over_nodes = value_of(program, {"--distributed-executor-backend"}).has_value();
    const bool on_ray = std::ranges::any_of(
        input.script->programs, [](const Program& other) { return program_name(other.words[0]) == "ray"; });
    if (!is_server(program) || gpus == 0 || over_nodes || on_ray || (program.nodes_of_step > 1 && nodes == 1))
      return;
    const auto wants = number_of(program, {"--tensor-parallel-size", "--tensor_parallel_size", "-tp", "--tp",
                                           "--tp-size", "--num-shard"})
                           .value_or(1);
    if (wants <= gpus * nodes) return;
    const auto sees =
        nodes == 1 ? fmt::format("sees {}", gpus) : fmt::format("its {} nodes have {}", nodes, gpus * nodes);
    report.error(program.span,
                 {fmt::format("the server is configured for {}, but {}", text::count(wants, "GPU"), sees),
                  "it does not start", fmt::format("a tensor-parallel size of {}", gpus * nodes), ""});
  });
}

const Registered<Rule> too_parallel_rule{{
    .order = 448,
    .name = "too-parallel",
    .title = "a server with more tensor-parallel ranks than GPUs",
    .explain = "Each rank of an engine needs its own GPU.",
    .source = "vLLM, Distributed Inference and Serving",
    .check = check_too_parallel,
}};

/// In a container that runs on when the step has ended: `docker exec`, `apptainer exec instance://`.
bool is_in_running_container(const Program& program) {
  static const RE2 kExec(R"(\b(docker|podman|nerdctl)\s+exec\b|\binstance://)");
  return RE2::PartialMatch(std::string(program.span.source_line()), kExec);
}

void check_ray_ends(const LintInput& input, Report& report) {
  if (!input.script || !ran_to_its_end(*input.script)) return;
  const auto& programs = input.script->programs;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const auto& words = programs[i].words;
    const bool starts =
        programs[i].step && words.size() > 1 && program_name(words[0]) == "ray" && words[1] == "start";
    if (!starts || shell::has(words, "--block") || shell::has(words, "--block=true") ||
        is_in_running_container(programs[i]))
      continue;
    const bool goes_on = std::any_of(
        programs.begin() + static_cast<std::ptrdiff_t>(i) + 1, programs.end(), [&](const Program& other) {
          return other.step == programs[i].step && other.rank == programs[i].rank;
        });
    if (goes_on) continue;
    return report.error(
        programs[i].span,
        {"ray start goes to the background, and its task exits",
         "Slurm kills what a step started when its tasks have exited: the node leaves the cluster again",
         "use ray start --block, with srun … &", ""});
  }
}

const Registered<Rule> ray_ends_rule{{
    .order = 449,
    .name = "ray-ends",
    .title = "a Ray node that ends with its step",
    .explain =
        "ray start returns once its processes run in the background. A Slurm step keeps nothing in the "
        "background: --block keeps the task running.",
    .source = "docs.ray.io, Deploying on Slurm; srun(1)",
    .check = check_ray_ends,
}};

void check_open_dashboard(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& program : input.script->programs) {
    if (program_name(program.words[0]) != "ray" || value_of(program, {"--dashboard-host"}) != "0.0.0.0")
      continue;
    return report.warning(program.span,
                          {"Ray's dashboard is open to everyone who can reach the node",
                           "anyone who can connect can start jobs as you: there is no password",
                           "remove --dashboard-host (default 127.0.0.1), and use a tunnel", ""});
  }
}

const Registered<Rule> open_dashboard_rule{{
    .order = 452,
    .name = "open-dashboard",
    .title = "Ray's dashboard on all interfaces",
    .explain = "The dashboard's port accepts jobs from anyone.",
    .source = "docs.ray.io, Security",
    .check = check_open_dashboard,
}};

void check_open_server(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& program : input.script->programs) {
    const auto name = program_name(program.words[0]);
    // TRL's server has no key.
    const bool has_key = value_of(program, {"--api-key"}) || !variable(program, "VLLM_API_KEY").empty() ||
                         name == "trl" || shell::has(program.words, "trl.scripts.vllm_serve");
    if (!program.works || !is_engine(program) || has_key || value_of(program, {"--host"}) != "0.0.0.0")
      continue;
    return report.note(
        program.span,
        {"everyone who can reach the node can use this server: it listens on all interfaces, without a "
         "key",
         "nodes of a cluster are reachable by all its users",
         "--host 127.0.0.1 if only this node needs it, else --api-key", ""});
  }
}

const Registered<Rule> open_server_rule{{
    .order = 454,
    .name = "open-server",
    .title = "a server on all interfaces without a key",
    .explain = "--host 0.0.0.0 accepts requests from every host that can reach the node. vLLM and SGLang "
               "accept all of "
               "them unless --api-key is set.",
    .source = "vLLM, OpenAI-Compatible Server, --api-key; SGLang, Server Arguments, --api-key",
    .check = check_open_server,
}};

void check_output_lost(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  static const RE2 kNowhere(
      R"re(((&>|>&)\s*/dev/null|(^|[^0-9&>])1?>\s*/dev/null\s+2>\s*(&1|/dev/null)|2>\s*/dev/null\s+1?>\s*/dev/null)\s*&\s*$)re");
  std::set<std::uint32_t> told;
  for (const auto& command : input.script->commands) {
    if (!command.works || !command.background || command.span.file != input.script->file) continue;
    const auto text = lines.command(command.span.line);
    if (!RE2::PartialMatch(text, kNowhere) || !told.insert(command.span.line).second) continue;
    report.note(command.span,
                {fmt::format("the output of {} goes to /dev/null", program_name(command.words[0])),
                 "if it fails, nothing tells why", "> NAME-$SLURM_JOB_ID.log 2>&1 &", ""});
  }
}

const Registered<Rule> output_lost_rule{{
    .order = 455,
    .name = "output-lost",
    .title = "a program in the background whose output is thrown away",
    .explain = "A program in the background fails silently: its exit code is easily missed, and its messages "
               "are all "
               "that is left of it.",
    .source = "bash(1), REDIRECTION",
    .check = check_output_lost,
}};

/// `sleep infinity`, `tail -f /dev/null`, or a sleep of months.
bool stays_forever(const std::vector<std::string>& words) {
  constexpr std::uint64_t kMonth = 2'600'000;
  return shell::waits_forever(words) ||
         (program_name(words[0]) == "sleep" && shell::seconds_of_sleep(words) >= kMonth);
}

/// The program that a command starts, also by srun.
std::string started_by(const Script& script, const ScriptCommand& command) {
  const auto name = program_name(command.words[0]);
  if (name != "srun") return name;
  const auto program = std::ranges::find_if(script.programs, [&](const Program& one) {
    return one.works && one.step && one.span.file == command.span.file && one.span.line == command.span.line;
  });
  return program == script.programs.end() ? name : program_name(program->words[0]);
}

bool starts_a_server(const Script& script, const ScriptCommand& command) {
  return std::ranges::any_of(script.programs, [&](const Program& one) {
    return is_server(one) && one.span.file == command.span.file && one.span.line == command.span.line;
  });
}

void check_held_nodes(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty()) return;
  const ScriptCommand* last = nullptr;
  const ScriptCommand* runs = nullptr;   // in the background
  const ScriptCommand* after = nullptr;  // in the foreground, while that runs
  for (const auto& command : input.script->commands) {
    if (command.works) {
      (command.background ? runs : last) = &command;
      const bool serves = runs != nullptr && starts_a_server(*input.script, *runs);
      after = command.background || !serves ? nullptr : &command;
    }
    if (shell::kills(command.words) || program_name(command.words[0]) == "wait") runs = nullptr;
    const auto* work = runs != nullptr && after == nullptr ? runs : last;
    if (work == nullptr || !stays_forever(command.words)) continue;
    const auto line = command.span.source_line();
    static const RE2 kPiped(R"re(\btail\s[^|]*\|)re");  // `tail -f log | grep -q ready`
    if (text::trim(line).ends_with('&') || RE2::PartialMatch(std::string(line), kPiped)) continue;
    const auto name = started_by(*input.script, *work);
    const bool ray = name == "ray" && !work->background;
    return report.note(
        command.span,
        {fmt::format("the job keeps its nodes until its time limit, even after {} has exited", name),
         "nothing ends this wait: a finished or failed run goes on using up the allocation",
         runs != nullptr && after != nullptr
             ? fmt::format("leave it out, and stop {} with kill", started_by(*input.script, *runs))
         : ray              ? "ray start --block, which returns when Ray stops"
         : work->background ? "wait -n, which returns when a program in the background exits"
                            : "leave it out",
         ""});
  }
}

const Registered<Rule> held_nodes_rule{{
    .order = 456,
    .name = "held-nodes",
    .title = "a job that waits until its time limit",
    .explain = "sleep infinity and tail -f /dev/null keep a batch script alive, and with it the job, "
               "whatever happens "
               "to the programs that it started.",
    .source = "sleep(1); sbatch(1), DESCRIPTION",
    .check = check_held_nodes,
}};

/// A program that serves until it is killed.
bool never_ends(const Program& program) {
  const auto& words = program.words;
  const auto name = program_name(words[0]);
  if (name == "ray") return shell::has(words, "start") && shell::has(words, "--block");
  // python tools/vllm_server.py --port 8000
  const bool script = name.starts_with("python") && words.size() > 1 && value_of(program, {"--port"}) &&
                      text::lower(program_name(words[1])).find("server") != std::string::npos;
  return is_server(program) || script;
}

/// The same for a command of the shell, which may be the srun or the container in front of it.
bool never_ends(const Script& script, const ScriptCommand& command) {
  if (never_ends(Program{.words = command.words})) return true;
  const auto is_of_line = [&](const Program& program) {
    return program.works && program.span.file == command.span.file && program.span.line == command.span.line;
  };
  const bool itself = std::ranges::any_of(script.programs, [&](const Program& program) {
    return is_of_line(program) && program_name(program.words[0]) == program_name(command.words[0]);
  });
  return !itself && std::ranges::any_of(script.programs, is_of_line) &&
         std::ranges::all_of(script.programs, [&](const Program& program) {
           return !is_of_line(program) || never_ends(program);
         });
}

/// A server that a `wait` without process ids waits for, if it also waits for a program that ends; nullptr if
/// there is none. Commands in the background are traced when they get to run: their lines tell which they
/// are.
const ScriptCommand* server_before(const Script& script, const ScriptCommand& wait) {
  const bool in_task = wait.shell != script.shell;  // in the text of a step, which is all on its line
  const ScriptCommand* server = nullptr;
  bool ends = false;
  std::set<std::uint32_t> lines;
  for (const auto& one : script.commands) {
    if (!one.works || one.span.file != wait.span.file) continue;
    const bool waited = in_task ? one.span.line == wait.span.line && one.words[0] != "srun"
                                : one.span.line < wait.span.line && lines.insert(one.span.line).second;
    if (!waited) continue;
    if (never_ends(script, one))
      server = &one;
    else
      ends = true;
  }
  return ends ? server : nullptr;
}

/// "vllm", "serve.py": the server itself, which srun or a container may start.
std::string name_of_server(const Script& script, const ScriptCommand& command) {
  auto words = command.words;
  for (const auto& program : script.programs)
    if (!never_ends(Program{.words = words}) && program.works && program.span.file == command.span.file &&
        program.span.line == command.span.line)
      words = program.words;
  const bool by_python = words[0].starts_with("python") && words.size() > 1 && !words[1].starts_with('-');
  return program_name(words[by_python ? 1 : 0]);
}

/// True if something is in the lines up to the end of a command, comments aside.
bool is_in_lines(const SourceLines& lines, std::uint32_t last, const RE2& what) {
  for (std::uint32_t at = 1; at <= lines.end_of_command(last); ++at) {
    const auto line = lines.line(at);
    if (!text::trim(line).starts_with('#') && RE2::PartialMatch(line.substr(0, line.find(" #")), what))
      return true;
  }
  return false;
}

void check_wait_for_server(const LintInput& input, Report& report) {
  if (!input.script || !(input.slurm || !input.batch.empty())) return;
  const auto& script = *input.script;
  static const RE2 kStops(R"re(\b(kill|pkill|killall|scancel|timeout)\b|ray\s+stop|wait\s+-n)re");
  const SourceLines lines(script.file);
  for (const auto& command : script.commands) {
    if (command.words[0] != "wait" || command.words.size() > 1) continue;
    // What stops the server below the wait is never reached.
    if (command.span.file != script.file || is_in_lines(lines, command.span.line, kStops)) continue;
    const auto* server = server_before(script, command);
    if (server == nullptr) continue;
    return report.warning(
        command.span,
        {fmt::format("`wait` also waits for {}, which never ends", name_of_server(script, *server)),
         "after the work is done, the job keeps its nodes until its time limit",
         "wait $PID for the work (PID=$! after its &), then kill the server", ""});
  }
}

const Registered<Rule> wait_for_server_rule{{
    .order = 464,
    .name = "wait-for-server",
    .title = "a wait that includes a server",
    .explain = "`wait` without process ids returns when all programs in the background have exited. A server "
               "(vLLM, SGLang, ray start --block) does not exit by itself. Not reported if the script kills "
               "anything above.",
    .source = "bash(1), wait",
    .check = check_wait_for_server,
}};

void check_ray_cpus(const LintInput& input, Report& report) {
  const bool alone = has_option(input.batch, {"--exclusive"});
  if (!input.script || alone || !has_option(input.batch, {"--cpus-per-task", "--cpus-per-gpu"})) return;
  for (const auto& program : input.script->programs) {
    const auto& words = program.words;
    const bool starts = words.size() > 1 && program_name(words[0]) == "ray" && words[1] == "start";
    if (!starts || value_of(program, {"--num-cpus"})) continue;
    return report.note(
        program.span,
        {"Ray takes all CPUs of the node for its own, not those of the job",
         "it counts the CPUs of the machine: on a shared node it starts more workers than the job has "
         "CPUs",
         "--num-cpus=$SLURM_CPUS_PER_TASK", ""});
  }
}

const Registered<Rule> ray_cpus_rule{{
    .order = 457,
    .name = "ray-cpus",
    .title = "a Ray node that counts the CPUs of the whole machine",
    .explain = "Without --num-cpus, Ray uses the number of CPUs of the machine, whatever the job was given.",
    .source = "docs.ray.io, Deploying on Slurm; ray/_private/utils.py, get_num_cpus",
    .check = check_ray_cpus,
}};

/// `ray start --address 10.0.0.1`
void check_ray_address(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& program : input.script->programs) {
    const auto& words = program.words;
    const bool starts = words.size() > 1 && program_name(words[0]) == "ray" && words[1] == "start";
    const auto address = starts ? value_of(program, {"--address"}) : std::nullopt;
    if (!address || address->empty() || address->contains(':') || *address == "auto" || *address == "local")
      continue;
    return report.error(program.span, {"`ray start --address` has no port: it fails",
                                       "it takes HOST:PORT, the port that the head was started with",
                                       "--address=HOST:6379", ""});
  }
}

const Registered<Rule> ray_address_rule{{
    .order = 515,
    .name = "ray-address",
    .title = "a worker of Ray that is given a host without a port",
    .explain = "Ray takes the address apart at its colon, and refuses one without.",
    .source = "Ray, python/ray/_private/services.py, extract_ip_port",
    .check = check_ray_address,
}};

/// True if `ssh HOST COMMAND` returns while the command still runs.
bool detaches(const ScriptCommand& command) {
  const auto& words = command.words;
  if (program_name(words[0]) != "ssh") return false;
  const auto text = text::trim(words.back());
  const bool goes_on =
      text.find("nohup ") != std::string_view::npos || text.find("setsid ") != std::string_view::npos ||
      text.find("screen -d") != std::string_view::npos || text.find("tmux new") != std::string_view::npos;
  return goes_on && (text.ends_with('&') || std::ranges::find(words, "-f") != words.end());
}

void check_left_on_hosts(const LintInput& input, Report& report) {
  // In a job, Slurm may adopt what ssh starts on its nodes, and end it too.
  if (!input.script || input.slurm || !input.batch.empty()) return;
  const auto& script = *input.script;
  static const RE2 kEnds(
      R"re(\b(?:p?kill|killall|trap|ray stop|kill-session|(?:docker|podman) (?:stop|kill|rm))\b)re");
  if (RE2::PartialMatch(script.file->text, kEnds)) return;
  const auto works_at = [&](const SourceSpan& span) {
    return std::ranges::any_of(script.programs, [&](const Program& program) {
      return program.works && program.span.line == span.line && program.span.file == span.file;
    });
  };
  const auto started = std::ranges::find_if(script.commands, [&](const ScriptCommand& command) {
    return command.span.file == script.file && detaches(command) && works_at(command.span);
  });
  if (started == script.commands.end()) return;
  const SourceLines lines(script.file);
  for (const auto& program : script.programs) {
    const bool stays = program.works && !program.background && program.span.file == script.file &&
                       program.span.line > started->span.line;
    if (!stays || lines.command(program.span.line).find("ssh ") != std::string::npos) continue;
    const auto& words = program.words;
    const bool file = shell::is_shell(words[0]) && words.size() > 1 && !words[1].starts_with('-');
    const auto name = program_name(words[file ? 1 : 0]);
    return report.note(
        started->span,
        {fmt::format("nothing stops this program on the other host if {} fails or is interrupted", name),
         "it goes on without its ssh: it waits for its rendezvous, and holds its GPUs and its port against "
         "the next start",
         "trap 'ssh HOST pkill -f NAME' EXIT", ""});
  }
}

const Registered<Rule> left_on_hosts_rule{{
    .order = 459,
    .name = "left-on-hosts",
    .title = "programs on other hosts that outlive the script",
    .explain = "nohup and setsid keep a program running after its ssh has ended. Outside a job nothing else "
               "ends it.",
    .source = "nohup(1); ssh(1), -f",
    .check = check_left_on_hosts,
}};

/// The port of a server that listens on 127.0.0.1 unless it is told a host: SGLang, Ollama, llama.cpp.
std::optional<std::string> local_port(const Program& program) {
  const auto name = program_name(program.words[0]);
  const bool ollama =
      name == "ollama" && shell::has(program.words, "serve") && variable(program, "OLLAMA_HOST").empty();
  const bool is_local = ollama || name == "llama-server" || shell::has(program.words, "sglang.launch_server");
  if (!is_local || value_of(program, {"--host"})) return std::nullopt;
  return port_of_server(program).port;
}

/// "rec-node-0:30000", or the two in a row: `nc -z rec-node-0 30000`.
bool names_port_of_node(const Program& program, const std::string& port) {
  for (std::size_t i = 0; i < program.words.size(); ++i) {
    const auto& word = program.words[i];
    if (!shell::Allocation::names_node(word)) continue;
    if (word.find(":" + port) != std::string::npos || word.ends_with("/" + port)) return true;
    if (i + 1 < program.words.size() && program.words[i + 1] == port) return true;
  }
  return false;
}

void check_local_server(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& server : input.script->programs) {
    const auto port = server.works ? local_port(server) : std::nullopt;
    if (!port) continue;
    for (const auto& program : input.script->programs) {
      if (&program == &server || !names_port_of_node(program, *port)) continue;
      return report.error(
          server.span,
          {fmt::format(
               "this server listens on 127.0.0.1 only, but line {} uses the name or address of its node",
               program.span.line),
           "connections to any other address of the node are refused, also from the node itself",
           "--host 0.0.0.0 and an --api-key, or localhost in what connects", ""});
    }
  }
}

const Registered<Rule> local_server_rule{{
    .order = 468,
    .name = "local-server",
    .title = "a server that others cannot reach",
    .explain = "SGLang, Ollama and llama.cpp listen on 127.0.0.1 unless they are told a host.",
    .source = "SGLang, Server Arguments, --host; Ollama FAQ; llama.cpp tools/server/README.md",
    .check = check_local_server,
}};

/// `vllm serve m`, and then `python train.py`.
void check_server_in_front(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto& programs = input.script->programs;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const auto& server = programs[i];
    if (!server.works || server.background || !is_server(server)) continue;
    const auto next = std::find_if(
        programs.begin() + static_cast<std::ptrdiff_t>(i) + 1, programs.end(), [&](const Program& one) {
          return one.works && !one.words[0].starts_with('-') && one.span.file == server.span.file &&
                 one.span.line > server.span.line && !(one.step && one.step == server.step);
        });
    if (next == programs.end()) continue;
    return report.error(
        server.span,
        {fmt::format("{} runs in the foreground: {} in line {} starts when it has exited, which a "
                     "server does not",
                     shown_name(server), shown_name(*next), next->span.line),
         "the script stays here until the server fails, or until its time limit",
         "put & at the end of this line, and wait until the server answers", ""});
  }
}

const Registered<Rule> server_in_front_rule{{
    .order = 491,
    .name = "server-in-front",
    .title = "a server in the foreground, and programs behind it",
    .explain =
        "bash starts the next command when the one before has exited. A server goes on until something "
        "stops it.",
    .source = "bash(1), Lists",
    .check = check_server_in_front,
}};

}  // namespace
}  // namespace nlaunch::lint
