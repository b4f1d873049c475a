#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/allocation.h"
#include "shell/words.h"

/// Ports that programs listen on: fixed ones, and one for two servers.
namespace nlaunch::lint {
namespace {

using shell::program_name;

/// A port that a program listens on, and how the script chooses it.
struct ListenedPort {
  std::string port;
  bool by_option = false;   ///< not from MASTER_PORT
  bool by_default = false;  ///< the program's own
  bool serves = false;      ///< not a rendezvous
  std::string option{};     ///< of what serves: "--port "
};

/// True if the launcher listens for its own processes: accelerate does for more than one.
bool binds_default_port(const Program& program, const Launcher& launcher) {
  if (launcher.name == "torchrun" || launcher.name == "deepspeed") return true;
  if (launcher.processes || launcher.name != "accelerate") return launcher.processes.value_or(1) > 1;
  static constexpr std::array<std::string_view, 3> kSeveral{"--multi_gpu", "--use_deepspeed", "--use_fsdp"};
  return value_of(program, {"--config_file", "--config-file"}) ||
         std::ranges::any_of(kSeveral, [&](auto option) { return shell::has(program.words, option); });
}

/// nullopt: it listens on none, or on a free one.
std::optional<ListenedPort> listened_port(const Program& program) {
  const auto name = program_name(program.words[0]);
  const bool head =
      name == "ray" && shell::has(program.words, "start") && shell::has(program.words, "--head");
  if (is_server(program)) {
    const auto of_server = port_of_server(program);
    return ListenedPort{.port = of_server.port,
                        .by_option = true,
                        .by_default = of_server.by_default,
                        .serves = true,
                        .option = of_server.option};
  }
  const auto port = value_of(program, {"--port"});
  if (head || (port && program.background))
    return ListenedPort{.port = port.value_or("6379"),
                        .by_option = true,
                        .by_default = !port,
                        .serves = true,
                        .option = "--port "};
  const auto launcher = launcher_of(program);
  if (launcher && launcher->port && !launcher->port->empty())
    return ListenedPort{.port = *launcher->port, .by_option = true};
  const bool several = launcher && binds_default_port(program, *launcher);
  if (several && !launcher->address && launcher->nodes.value_or(1) == 1 &&
      !shell::has(program.words, "--standalone") &&
      (launcher->name != "accelerate" || variable(program, "MASTER_PORT").empty()))
    return ListenedPort{.port = "29500", .by_option = true, .by_default = true};
  return ListenedPort{.port = variable(program, "MASTER_PORT")};
}

/// A port that is the same each time the script runs.
struct FixedPort {
  const Program* program;
  ListenedPort listened;
};

/// `while lsof -i:$PORT; do PORT=$((PORT + 1)); done` behind `PORT=6000`: the first that is free.
bool is_searched(const SourceFile& file, const std::string& port) {
  const RE2 sets(R"re((?m)\b(\w+)=["']?(?:\$\{\w+:-)?)re" + port + R"re(\b|\bfor\s+(\w+)\s+in\s[^\n]*\b)re" +
                 port + R"re(\b)re");
  std::string name;
  std::string counter;
  if (!RE2::PartialMatch(file.text, sets, &name, &counter)) return false;
  if (name.empty()) name = counter;
  const RE2 looks(R"re(\b(?:lsof|ss|netstat|nc|fuser)\s[^\n]*\$\{?)re" + name +
                  R"re(\b|/dev/tcp/[^\n]*\$\{?)re" + name + R"re(\b)re");
  const RE2 counts(R"re(\bfor\s+)re" + name + R"re(\s+in\b|\b)re" + name + R"re(=["']?\$\(|\(\(\s*)re" +
                   name + R"re(\s*\+)re");
  return RE2::PartialMatch(file.text, looks) && RE2::PartialMatch(file.text, counts);
}

/// A function that tries one port after the other, `while taken "$port"; do port=$((port + 1)); done`.
bool has_port_search(const SourceFile& file) {
  static const RE2 kLooks(R"re(/dev/tcp/[^\n]*\$|\b(?:lsof|ss|netstat|nc|fuser)\s[^\n]*\$)re");
  static const RE2 kCounts(R"re((?i)\b\w*port\w*=["']?\$\(\(\s*\$?\w*port\w*\s*\+|\(\(\s*\w*port\w*\s*\+)re");
  return RE2::PartialMatch(file.text, kLooks) && RE2::PartialMatch(file.text, kCounts);
}

/// The fixed ports of the script's programs, each once.
std::vector<FixedPort> fixed_ports(const LintInput& input) {
  const auto& script = *input.script;
  std::vector<FixedPort> ports;
  for (const auto& program : script.programs) {
    const auto listened = program.works ? listened_port(program) : std::nullopt;
    // Another number is none of a port, but of an argument that moved up.
    if (!listened || !shell::is_port(listened->port) || shell::Allocation::is_port(listened->port)) continue;
    // Programs in the background may start in another order.
    const bool same =
        !script.in_next_job || std::ranges::any_of(script.in_next_job->programs, [&](const Program& one) {
          const auto next = one.works ? listened_port(one) : std::nullopt;
          return next && next->port == listened->port;
        });
    const bool is_on_the_line =
        program.span.source_line().find(listened->port) != std::string::npos || listened->by_default;
    const bool may_be_searched = !is_on_the_line && std::ranges::any_of(input.files, [](const auto& file) {
      return has_port_search(*file);
    });
    if (!same || is_searched(*script.file, listened->port) || may_be_searched) continue;
    const bool written = listened->by_default || std::ranges::any_of(input.files, [&](const auto& file) {
                           return file->text.find(listened->port) != std::string::npos;
                         });
    const bool told = std::ranges::any_of(
        ports, [&](const FixedPort& port) { return port.listened.port == listened->port; });
    if (written && !told) ports.push_back({&program, *listened});
  }
  std::ranges::stable_sort(ports, {}, [](const FixedPort& port) {
    return std::pair(port.program->span.line, text::whole_number<std::uint16_t>(port.listened.port));
  });
  return ports;
}

/// "ports 8000 and 29500 are fixed", "torchrun uses port 29500, its default"
std::string name_ports(const std::vector<FixedPort>& ports) {
  const auto& first = ports.front();
  if (ports.size() == 1 && first.listened.by_default)
    return fmt::format("{} uses port {}, its default", shown_name(*first.program), first.listened.port);
  if (ports.size() == 1) return fmt::format("port {} is fixed", first.listened.port);
  std::vector<std::string> numbers;
  for (const auto& port : ports) numbers.push_back(port.listened.port);
  const auto last = numbers.back();
  numbers.pop_back();
  return fmt::format("ports {} and {} are fixed", text::join(numbers, ", "), last);
}

constexpr std::uint32_t kPartOfNode = 4;  // GPUs: fewer leave a part of the node to others

/// "--main_process_port "
std::string option_of_launcher(const std::optional<Launcher>& launcher) {
  return launcher && launcher->name == "accelerate" ? "--main_process_port " : "--master_port ";
}

void tell_fixed_port(const LintInput& input, const std::vector<FixedPort>& ports, Report& report) {
  const auto& [program, listened] = ports.front();
  const auto launcher = launcher_of(*program);
  // torchrun --standalone binds a free port, but only for the processes of one node.
  const bool one_node = input.nodes.value_or(1) == 1 && !spans_nodes(*program);
  const bool torch = !launcher || launcher->name == "torchrun";
  const bool part = input.gpus.value_or(0) < kPartOfNode;
  const bool array = has_tasks_at_once(input);
  const bool has_own = !torch && listened.by_option;
  const std::string of_job = "$((20000 + SLURM_JOB_ID % 10000))";
  report.note(
      listened.by_option ? program->span : place_of(input, *program, "MASTER_PORT"),
      {fmt::format("{}, but {}", name_ports(ports),
                   array  ? "tasks of the array can run on one node"
                   : part ? "the job uses only part of a node"
                          : "nothing here requests whole nodes (--exclusive)"),
       array ? "the second one on a node fails with \"address already in use\", or meets the first one's "
               "processes"
             : "another job on this node that runs the same script may already use it",
       listened.serves     ? listened.option + of_job
       : has_own           ? option_of_launcher(launcher) + of_job
       : one_node && torch ? "MASTER_PORT=" + of_job + ", or torchrun --standalone"
                           : "MASTER_PORT=" + of_job,
       ""});
}

/// `--port ${PORT:-8000}`: the next run can have another one.
bool can_be_given(const FixedPort& port) {
  return !port.listened.by_default &&
         std::string_view(port.program->span.file->text).find("-" + port.listened.port + "}") !=
             std::string_view::npos;
}

/// `ray stop`, `pkill -f vllm` above it: a second run ends the first one instead.
bool is_freed_before(const FixedPort& port) {
  static const RE2 kFrees(
      R"re((?:^|[;&|({]|\bthen|\bdo|\belse)\s*(?:ray\s+stop|(?:sudo\s+)?(?:pkill|killall)|fuser\s+-k)\b)re");
  const SourceLines lines(port.program->span.file);
  for (std::uint32_t at = 1; at < port.program->span.line; ++at)
    if (RE2::PartialMatch(lines.line(at), kFrees)) return true;
  return false;
}

/// The script asks whether something answers on a server's port, and not whether the server runs: another one
/// that is there already answers.
bool is_asked(const Script& script, const FixedPort& port) {
  static const RE2 kLooks(R"re(\bkill\s+-(?:0|s\s*0)\b|\bwait\s+-n\b|\bps\s+-p\b)re");
  const bool looks = RE2::PartialMatch(script.file->text, kLooks);
  return !looks && is_server(*port.program) && std::ranges::any_of(script.programs, [&](const Program& one) {
    return !one.works && shell::names_port(one.words, port.listened.port);
  });
}

/// Outside of a job: a second run on the same machine.
void tell_port_of_machine(const Script& script, std::vector<FixedPort> ports, Report& report) {
  // A program in the background may be a client, or serve nobody here.
  std::erase_if(ports, [&](const FixedPort& port) {
    const bool head = program_name(port.program->words[0]) == "ray";
    return (can_be_given(port) && !is_asked(script, port)) || is_freed_before(port) ||
           (port.listened.serves && !head && !is_server(*port.program));
  });
  if (ports.empty()) return;
  const auto& [program, listened] = ports.front();
  if (can_be_given(ports.front()))
    return report.note(program->span,
                       {fmt::format("port {} is used unless another one is given: if a server is there "
                                    "already, the wait ends at once",
                                    listened.port),
                        "this server cannot listen there, and the clients talk to the other one",
                        "kill -0 $PID behind the wait", ""});
  const auto launcher = launcher_of(*program);
  report.note(
      program->span,
      {fmt::format("{}: a second run on this machine fails", name_ports(ports)),
       listened.serves ? "its server cannot listen there, and its clients reach the first run's server"
                       : "\"address already in use\", or its processes meet those of the first run",
       listened.serves ? listened.option + "${PORT:-" + listened.port + "}"
       : launcher && launcher->name != "torchrun"
           ? option_of_launcher(launcher) + "${MASTER_PORT:-29500}"
           : "torchrun --standalone, or --master_port ${MASTER_PORT:-29500}",
       ""});
}

void check_fixed_port(const LintInput& input, Report& report) {
  if (!input.script || has_other_job_id(*input.script)) return;
  const bool job = input.slurm || !input.batch.empty();
  const bool shares = input.gpus && *input.gpus < kWholeNode;
  const bool alone = std::ranges::any_of(
      input.batch, [](const StepOption& option) { return option.text.starts_with("--exclusive"); });
  if (job && (input.batch.empty() || !shares || alone)) return;
  // Nobody starts a script that only serves twice.
  const bool only_serves = std::ranges::all_of(
      input.script->programs, [](const Program& one) { return !one.works || is_server(one); });
  if (!job && only_serves) return;
  const auto ports = fixed_ports(input);
  if (ports.empty()) return;
  if (job)
    tell_fixed_port(input, ports, report);
  else
    tell_port_of_machine(*input.script, ports, report);
}

const Registered<Rule> fixed_port_rule{{
    .order = 442,
    .name = "fixed-port",
    .title = "a fixed port on a shared node",
    .explain = "Two jobs on one node cannot use the same port, nor can two tasks of an array. A port derived "
               "from the "
               "job id is different for each of them. torchrun, accelerate and deepspeed use 29500 if they "
               "are told no port.",
    .source = "bind(2), EADDRINUSE",
    .check = check_fixed_port,
}};

/// Lines between two servers, or of the loop that starts both, kill something.
bool is_killed_between(const SourceLines& lines, const SourceSpan& first, const SourceSpan& second) {
  static const RE2 kKills(
      R"re((?:^|[;&|({`]|\bthen|\bdo|\belse|\bxargs(?:\s+-\S+)*)\s*(?:sudo\s+)?(?:p?kill\s+(?:-[^0ls\s]\S*\s|[^-])|killall\b|fuser\s+-k))re");
  const bool loop = first.line >= second.line || first.file != lines.file();
  const auto begin = loop && first.file != lines.file() ? 1 : first.line + 1;
  const auto end = loop ? lines.count() + 1 : second.line;
  for (auto at = begin; at < end; ++at)
    if (RE2::PartialMatch(lines.line(at), kKills)) return true;
  return false;
}

void check_same_port(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  const auto& programs = input.script->programs;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (!programs[i].works || !programs[i].background || !is_server(programs[i])) continue;
    const auto port = value_of(programs[i], {"--port", "-p"});
    for (std::size_t k = 0; k < i && port; ++k) {
      const auto& before = programs[k];
      const bool by_name = std::any_of(programs.begin() + static_cast<std::ptrdiff_t>(k),
                                       programs.begin() + static_cast<std::ptrdiff_t>(i),
                                       [](const Program& one) { return shell::kills_by_name(one.words); });
      const bool ended = by_name || shell::had_ended(before.waited, programs[i].waited);
      const bool killed = is_killed_between(lines, before.span, programs[i].span);
      const bool at_once =
          before.works && before.background && before.node == programs[i].node && !ended && !killed;
      if (!at_once || !is_server(before) || value_of(before, {"--port", "-p"}) != port) continue;
      return report.error(
          programs[i].span,
          {fmt::format("two servers on a node use port {}", text::printable(*port)),
           "the second fails with \"address already in use\", or its requests go to the first",
           "--port $((8000 + i))", ""});
    }
  }
}

const Registered<Rule> same_port_rule{{
    .order = 447,
    .name = "same-port",
    .title = "servers with the same port on a node",
    .explain = "Only one process on a node can listen on a port.",
    .source = "bind(2), EADDRINUSE",
    .check = check_same_port,
}};

/// The port of the servers that a line starts, if all have the same one; empty: none.
std::string port_of_line(const Script& script, const SourceSpan& line) {
  std::string port;
  for (const auto& program : script.programs) {
    if (!program.works || program.span.file != line.file || program.span.line != line.line) continue;
    if (!is_server(program) || !program.background || program.step) return "";
    const auto own = port_of_server(program).port;
    if (!port.empty() && own != port) return "";
    port = own;
  }
  return port;
}

/// `wait`, `sleep 5`, `kill -0 $PID`, a look at the port: by then a killed server may have exited.
bool lets_time_pass(const ScriptCommand& command) {
  return shell::is_any_of(program_name(command.words[0]), {"wait", "sleep", "kill", "lsof", "ss", "nc",
                                                           "netstat", "fuser", "pgrep", "ps", "curl"}) &&
         !shell::kills(command.words);
}

void check_port_still_used(const LintInput& input, Report& report) {
  if (!input.script) return;
  const ScriptCommand* kill = nullptr;  // after which nothing waited
  std::string last;                     // the port of the server that it may have killed
  for (const auto& command : input.script->commands) {
    if (shell::kills(command.words)) kill = &command;
    if (lets_time_pass(command) || (command.works && !command.background)) kill = nullptr;
    if (!command.works || !command.background) continue;
    const auto port = port_of_line(*input.script, command.span);
    if (port.empty()) continue;
    if (kill != nullptr && port == last)
      return report.note(
          kill->span,
          {fmt::format("the next server starts on port {} at once, while the killed one still exits",
                       text::printable(port)),
           "\"address already in use\", or too little memory on the GPU; and the old one may answer the "
           "first "
           "question whether the new one is ready",
           "wait $PID below the kill", ""});
    last = port;
    kill = nullptr;
  }
}

const Registered<Rule> port_still_used_rule{{
    .order = 526,
    .name = "port-still-used",
    .title = "a server that starts before the one before it has exited",
    .explain =
        "kill returns at once; a server takes seconds to free its GPU and its port. Reported if the next "
        "server with this port starts without a wait, a sleep or a look in between.",
    .source = "kill(2); bash(1), wait",
    .check = check_port_still_used,
}};

void check_ephemeral_port(const LintInput& input, Report& report) {
  if (!input.script) return;
  constexpr std::uint32_t kFirst = 32768;
  constexpr std::uint32_t kLast = 60999;
  for (const auto& program : input.script->programs) {
    if (program_name(program.words[0]) != "ray" || !shell::has(program.words, "start")) continue;
    for (const std::string option : {"--port", "--node-manager-port", "--object-manager-port",
                                     "--ray-client-server-port", "--dashboard-agent-listen-port",
                                     "--runtime-env-agent-port", "--min-worker-port", "--dashboard-port"}) {
      const auto port = number_of(program, {option});
      if (!port || *port < kFirst || *port > kLast || shell::Allocation::is_port(std::to_string(*port)))
        continue;
      return report.note(program.span,
                         {fmt::format("{} {} is one that outgoing connections get", option, *port),
                          "if one has it already when Ray starts, Ray fails now and then: Linux takes the "
                          "ports from 32768 to 60999 for them",
                          "a port below 32768", ""});
    }
  }
}

const Registered<Rule> ephemeral_port_rule{{
    .order = 550,
    .name = "ephemeral-port",
    .title = "a port of Ray that an outgoing connection may have",
    .explain =
        "The kernel gives outgoing connections a port of this range, which nothing can listen on then.",
    .source = "ip(7), ip_local_port_range",
    .check = check_ephemeral_port,
}};

}  // namespace
}  // namespace nlaunch::lint
