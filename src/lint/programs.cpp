#include "lint/programs.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "base/text.h"
#include "lint/script_text.h"
#include "shell/words.h"

namespace nlaunch::lint {
namespace {

using shell::program_name;

std::pair<std::string, std::string> parted(const std::string& endpoint) {
  const auto colon = endpoint.rfind(':');
  return {endpoint.substr(0, colon), colon == std::string::npos ? "" : endpoint.substr(colon + 1)};
}

Launcher torchrun(const Program& program) {
  Launcher out{.name = "torchrun"};
  out.nodes = number_of(program, {"--nnodes"});
  out.processes = number_of(program, {"--nproc_per_node", "--nproc-per-node"});
  out.address = value_of(program, {"--master_addr", "--master-addr"});
  out.port = value_of(program, {"--master_port", "--master-port"});
  if (const auto endpoint = value_of(program, {"--rdzv_endpoint", "--rdzv-endpoint"}))
    std::tie(out.address, out.port) = parted(*endpoint);
  out.rank = value_of(program, {"--node_rank", "--node-rank"}).value_or("");
  out.ranked = value_of(program, {"--rdzv_backend", "--rdzv-backend"}).value_or("static") == "static";
  return out;
}

Launcher accelerate(const Program& program) {
  Launcher out{.name = "accelerate", .counts_all = true};
  out.nodes = number_of(program, {"--num_machines"});
  out.processes = number_of(program, {"--num_processes"});
  out.address = value_of(program, {"--main_process_ip"});
  out.port = value_of(program, {"--main_process_port"});
  out.rank = value_of(program, {"--machine_rank"}).value_or("");
  // A separate file may set what the command line does not.
  out.ranked = value_of(program, {"--rdzv_backend"}).value_or("static") == "static" &&
               !value_of(program, {"--config_file", "--config-file"});
  return out;
}

Launcher deepspeed(const Program& program) {
  Launcher out{.name = "deepspeed", .reaches = true};
  out.nodes = number_of(program, {"--num_nodes"});
  out.processes = number_of(program, {"--num_gpus"});
  out.address = value_of(program, {"--master_addr"});
  out.port = value_of(program, {"--master_port"});
  return out;
}

Launcher lightning(const Program& program) {
  Launcher out{.name = program_name(program.words[0])};
  out.nodes = number_of(program, {"--num-nodes", "--num_nodes"});
  out.processes = number_of(program, {"--devices"});
  out.address = value_of(program, {"--main-address"});
  out.port = value_of(program, {"--main-port"});
  out.rank = value_of(program, {"--node-rank"}).value_or("");
  out.ranked = true;
  return out;
}

}  // namespace

std::string value_of(const StepOption& option, std::string_view name) {
  const std::string_view text = option.text;
  return text.starts_with(name) && text.substr(name.size()).starts_with('=')
             ? std::string(text.substr(name.size() + 1))
             : std::string();
}

const StepOption* find_option(const std::vector<StepOption>& options, std::string_view name) {
  const auto found = std::ranges::find_if(options, [&](const StepOption& option) {
    return option.text == name || option.text.starts_with(std::string(name) + "=") ||
           (!name.starts_with("--") && option.text.starts_with(name));
  });
  return found == options.end() ? nullptr : &*found;
}

bool has_option(const std::vector<StepOption>& options, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(names, [&](auto name) { return find_option(options, name) != nullptr; });
}

bool has_tasks_at_once(const LintInput& input) {
  const auto* array = find_option(input.batch, "--array");
  return array != nullptr &&
         array->text.find_first_of("-,", std::string_view("--array=").size()) != std::string::npos &&
         !array->text.ends_with("%1");
}

std::optional<std::string> value_of(const Program& program, std::initializer_list<std::string_view> names) {
  for (std::size_t i = 1; i < program.words.size(); ++i) {
    const std::string_view word = program.words[i];
    for (const auto name : names) {
      if (word == name && i + 1 < program.words.size()) return program.words[i + 1];
      if (word.starts_with(name) && word.substr(name.size()).starts_with('='))
        return std::string(word.substr(name.size() + 1));
    }
  }
  return std::nullopt;
}

std::optional<std::uint32_t> number_of(const Program& program,
                                       std::initializer_list<std::string_view> names) {
  const auto text = value_of(program, names);
  return text ? text::whole_number<std::uint32_t>(*text) : std::nullopt;
}

std::string variable(const Program& program, const std::string& name) {
  const auto found = program.environment.find(name);
  return found == program.environment.end() ? "" : found->second;
}

std::optional<Launcher> launcher_of(const Program& program) {
  const auto name = program_name(program.words[0]);
  const auto has = [&](std::string_view word) { return shell::has(program.words, word); };
  const bool module = name.starts_with("python") && has("-m");
  if (name == "torchrun" || (module && (has("torch.distributed.run") || has("torch.distributed.launch"))))
    return torchrun(program);
  if ((name == "accelerate" && has("launch")) || (module && has("accelerate.commands.launch")))
    return accelerate(program);
  if (name == "deepspeed") return deepspeed(program);
  if ((name == "lightning" || name == "fabric") && has("run")) return lightning(program);
  return std::nullopt;
}

namespace {

/// A program that serves a model, and its default port.
struct Engine {
  std::string_view name;  ///< of the program, or of the module that Python runs
  std::string_view word;  ///< that is among its words; empty: any
  std::string_view port;
  std::string_view option = "--port";
  bool loads = true;  ///< a model; false: it passes requests on, or serves anything
};

// From the documentation or the argument parser of each: see port_of_server().
constexpr auto kEngines = std::to_array<Engine>({
    {"vllm", "serve", "8000"},
    {"vllm.entrypoints.openai.api_server", "", "8000"},
    {"vllm.entrypoints.api_server", "", "8000"},
    {"sglang", "serve", "30000"},
    {"sglang.launch_server", "", "30000"},
    {"sglang_router.launch_router", "", "30000", "--port", false},
    {"trl", "vllm-serve", "8000"},
    {"axolotl", "vllm-serve", "8000"},
    {"trl.scripts.vllm_serve", "", "8000"},
    {"swift", "rollout", "8000"},
    {"swift", "deploy", "8000"},
    {"openrlhf.cli.serve_rm", "", "5000"},
    {"text-generation-launcher", "", "3000"},
    {"text-embeddings-router", "", "3000"},
    {"infinity_emb", "v2", "7997"},
    {"tritonserver", "", "8000", "--http-port"},
    {"ollama", "serve", "11434"},
    {"llama-server", "", "8080"},
    {"llama_cpp.server", "", "8000"},
    {"lmdeploy", "serve", "23333", "--server-port"},
    {"fastchat.serve.controller", "", "21001", "--port", false},
    {"fastchat.serve.model_worker", "", "21002"},
    {"fastchat.serve.vllm_worker", "", "21002"},
    {"fastchat.serve.openai_api_server", "", "8000", "--port", false},
    {"aphrodite.endpoints.openai.api_server", "", "2242"},
    {"uvicorn", "", "8000", "--port", false},
});

/// nullptr: it is none.
const Engine* engine_of(const Program& program) {
  const auto name = program_name(program.words[0]);
  const auto* found = std::ranges::find_if(kEngines, [&](const Engine& one) {
    const bool module = one.name.contains('.') && shell::has(program.words, one.name);
    return (module || name == one.name) && (one.word.empty() || shell::has(program.words, one.word));
  });
  return found == kEngines.end() ? nullptr : found;
}

}  // namespace

PortOfServer port_of_server(const Program& program) {
  const auto name = program_name(program.words[0]);
  const auto* engine = engine_of(program);
  if (engine == nullptr)
    return {program.asked_port.empty() ? value_of(program, {"--port"}).value_or("") : program.asked_port,
            "--port ", false};
  if (name == "ollama") {
    const auto port = parted(variable(program, "OLLAMA_HOST")).second;
    return {port.empty() ? "11434" : port, "OLLAMA_HOST=127.0.0.1:", port.empty()};
  }
  auto port = value_of(program, {std::string(engine->option)});
  const bool reads_port = name.starts_with("text-") && !variable(program, "PORT").empty();
  if (!port && reads_port) port = variable(program, "PORT");
  return {port.value_or(std::string(engine->port)), fmt::format("{} ", engine->option), !port.has_value()};
}

bool spans_nodes(const Program& program) {
  const auto launcher = launcher_of(program);
  if (launcher && launcher->nodes) return *launcher->nodes > 1;
  if (text::whole_number<std::uint32_t>(variable(program, "NNODES")).value_or(1) > 1) return true;
  return program.nodes_of_step > 1 && (!launcher || launcher->address);
}

bool is_engine(const Program& program) {
  return engine_of(program) != nullptr;
}

bool is_server(const Program& program) {
  // `python serve_vllm.py &`
  static const RE2 kServes(
      R"re((?i)^(?:(?:serve|serving|launch_server)(?:[_-]\w+)?|(?:\w+[_-])?(?:serve|server))\.py$)re");
  const bool by_name =
      program.background && program.works && program_name(program.words[0]).starts_with("python") &&
      RE2::PartialMatch(shown_name(program), kServes) && shown_name(program) != "parameter_server.py";
  return by_name || !program.asked_port.empty() || is_engine(program);
}

bool has_other_job_id(const Script& script) {
  static const RE2 kIds(
      R"re(\$\{?(?:JOB_ID|PBS_JOBID|LSB_JOBID|OAR_JOB_ID|FLUX_JOB_ID)\b|\buuidgen\b|[+*%] *JOB_ID\b)re");
  return RE2::PartialMatch(script.file->text, kIds);
}

bool asks(const shell::RecordedCommand& command) {
  static const shell::Options kAsks{"curl", "wget", "nc", "ncat", "ray", "ps", "pgrep", "grep", "egrep"};
  return command.fate == shell::Fate::answered &&
         (kAsks.contains(program_name(command.argv[0])) || command.argv[0].starts_with(shell::kConnection));
}

bool is_ray_node(const Program& program) {
  return program_name(program.words[0]) == "ray" && shell::has(program.words, "start") &&
         (shell::has(program.words, "--block") || program.background);
}

std::uint32_t gpus_of(const LintInput& input, const Program& program) {
  const auto visible = variable(program, "CUDA_VISIBLE_DEVICES");
  return visible.empty() ? input.gpus.value_or(0)
                         : static_cast<std::uint32_t>(text::split(visible, ',').size());
}

SourceSpan place_of(const LintInput& input, const Program& program, const std::string& name) {
  for (const auto& environment : input.environments)
    for (const auto& setting : environment.settings)
      if (setting.name == name && !setting.unset) return setting.span;
  return program.span;
}

bool reaches_hosts_itself(const LintInput& input) {
  for (const auto& file : input.files)
    if (text::lower(file->text).find("hostfile") != std::string::npos) return true;
  return input.script && std::ranges::any_of(input.script->programs, [](const Program& program) {
           const auto name = program_name(program.words[0]);
           return name == "deepspeed" || name == "pdsh" || name == "nlaunch" ||
                  std::ranges::any_of(program.words,
                                      [](const auto& word) { return word.ends_with("deepy.py"); });
         });
}

bool always_succeeds(const ScriptCommand& command) {
  constexpr std::array<std::string_view, 29> kNames{
      "mv",    "cp",         "ls",    "du",     "tail",       "cat",    "echo",     "printf", "date",  "true",
      ":",     "export",     "unset", "sleep",  "deactivate", "pwd",    "hostname", "squeue", "sacct", "seff",
      "dcgmi", "nvidia-smi", "sync",  "module", "ml",         "uptime", "free",     "df",     "clear"};
  const auto& words = command.words;
  if (words[0] == "ray") return words.size() > 1 && words[1] == "stop";
  if (words[0] == "rm")
    return words.size() > 1 && words[1].starts_with('-') && words[1].find('f') != std::string::npos;
  if (words[0] == "exit")
    return words.size() > 1 && words[1] == "0" && command.span.source_line().find('$') == std::string::npos;
  if (words[0] == "wait") return words.size() == 1;
  if (words[0] == "set") return words.size() > 1 && (words[1].starts_with('-') || words[1].starts_with('+'));
  const auto name = words[0].substr(0, words[0].find('='));
  const bool assigns = name.size() < words[0].size() && is_variable_name(name) &&
                       command.span.source_line().find("$(") == std::string::npos;
  return assigns || std::ranges::find(kNames, words[0]) != kNames.end();
}

std::string shown_name(const Program& program) {
  if (const auto launcher = launcher_of(program)) return launcher->name;
  const auto name = program_name(program.words[0]);
  const auto& words = program.words;
  if (name == "ray" && words.size() > 1 && !words[1].starts_with('-')) return name + " " + words[1];
  if (!name.starts_with("python")) return name;
  const auto first = std::find_if(words.begin() + 1, words.end(), [](const auto& word) {
    return word == "-m" || word == "-c" || word.ends_with(".py");
  });
  if (first == words.end() || *first == "-c") return name;
  if (*first != "-m") return program_name(*first);
  return first + 1 == words.end() ? name : *(first + 1);
}

std::string shown_duration(std::uint64_t seconds) {
  constexpr std::uint64_t kMinute = 60;
  return seconds >= 2 * kMinute ? text::count((seconds + kMinute / 2) / kMinute, "minute")
                                : text::count(seconds, "second");
}

const Trial* trial_of(const Script& script, const SourceSpan& span) {
  const auto found = std::ranges::find_if(script.trials, [&](const Trial& trial) {
    const auto& of = script.programs[trial.program].span;
    return of.file == span.file && of.line == span.line;
  });
  return found == script.trials.end() ? nullptr : &*found;
}

bool tells_failure(const Script& script, const SourceSpan& span) {
  const auto* trial = trial_of(script, span);
  return trial != nullptr && trial->exit_code.value_or(0) != 0;
}

bool is_of_node(const Script& script, const std::string& path) {
  constexpr std::array<std::string_view, 6> kOfNode{"/tmp/",     "/dev/shm/", "/run/",
                                                    "/var/tmp/", "/local/",   "/scratch/local/"};
  const bool own = !script.folder.empty() && path.starts_with(script.folder + "/");
  return !own && std::ranges::any_of(kOfNode, [&](auto folder) { return path.starts_with(folder); });
}

bool ran_to_its_end(const Script& script) {
  return std::ranges::all_of(script.unread, [](const Unread& one) { return one.severity == Severity::note; });
}

}  // namespace nlaunch::lint
