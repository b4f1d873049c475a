#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lint/lint_input.h"
#include "shell/recorder.h"

/// What the command lines of a recorded script's programs mean: launchers, servers, their options.
namespace nlaunch::lint {

/// "2" for `--nodes=2`; empty for another option.
std::string value_of(const StepOption& option, std::string_view name);

/// The first option with this name, or nullptr.
const StepOption* find_option(const std::vector<StepOption>& options, std::string_view name);
/// True if one of these is present; a short one may have its value attached: "-c4".
bool has_option(const std::vector<StepOption>& options, std::initializer_list<std::string_view> names);

/// True for a job array of several tasks that may run at the same time: not `--array=3`, `--array=0-9%1`.
bool has_tasks_at_once(const LintInput& input);

/// The first value of one of these options: `--nnodes 2`, `--nnodes=2`.
std::optional<std::string> value_of(const Program& program, std::initializer_list<std::string_view> names);
std::optional<std::uint32_t> number_of(const Program& program, std::initializer_list<std::string_view> names);
/// A variable of its environment; empty if not set.
std::string variable(const Program& program, const std::string& name);

/// A launcher that starts one process per GPU, and its options.
struct Launcher {
  std::string name{};
  std::optional<std::uint32_t> nodes{};
  std::optional<std::uint32_t> processes{};  ///< per node; with `counts_all`, of all nodes
  std::optional<std::string> address{};      ///< the rendezvous address, without the port
  std::optional<std::string> port{};
  std::string rank{};       ///< of the node; empty: not set
  bool ranked = false;      ///< the rank comes from outside (a static rendezvous)
  bool counts_all = false;  ///< accelerate
  bool reaches = false;     ///< starts itself on other nodes (deepspeed)
};
/// torchrun, accelerate, deepspeed, Lightning's; nullopt for another program.
std::optional<Launcher> launcher_of(const Program& program);
/// It starts processes on several nodes.
bool spans_nodes(const Program& program);
inline constexpr std::uint32_t kWholeNode = 8;  ///< GPUs: as many as most nodes have

/// Its name for people: "torchrun", "vllm", "sglang.launch_server" and "train.py" for what Python runs.
std::string shown_name(const Program& program);
/// "10 minutes", "45 seconds"
std::string shown_duration(std::uint64_t seconds);

/// vLLM, SGLang, TRL's server of vLLM, Text Generation Inference: it serves a model.
bool is_engine(const Program& program);
/// An engine, a proxy of one, or a program in the background whose port the script asks.
bool is_server(const Program& program);
/// It names the job's id of PBS, SGE, LSF, OAR or Flux, which has no value here.
bool has_other_job_id(const Script& script);
/// A command that asks whether something answers, or whether a process is there.
bool asks(const shell::RecordedCommand& command);
/// `ray start --block`, `ray start &`: a node of a Ray cluster.
bool is_ray_node(const Program& program);
/// Where a server listens.
struct PortOfServer {
  std::string port{};
  std::string option{};     ///< what sets it: "--port ", "OLLAMA_HOST=127.0.0.1:"
  bool by_default = false;  ///< nothing sets it
};
/// Defaults: vLLM, SGLang, ms-swift, OpenRLHF, Triton, LMDeploy, Ollama, llama.cpp, FastChat, Aphrodite,
/// Infinity, uvicorn and Hugging Face's servers, their documentation of the options. The last read PORT too
/// (launcher/src/main.rs), Ollama reads HOST:PORT from OLLAMA_HOST (envconfig/config.go).
PortOfServer port_of_server(const Program& program);
/// GPUs that the program sees: CUDA_VISIBLE_DEVICES, else those of the node; 0: unknown.
std::uint32_t gpus_of(const LintInput& input, const Program& program);
/// Where a variable of a program is set; the program's span if unknown.
SourceSpan place_of(const LintInput& input, const Program& program, const std::string& name);

/// True if the script has a launcher that starts programs on other nodes itself: deepspeed, pdsh, a host
/// list.
bool reaches_hosts_itself(const LintInput& input);

/// True if the command succeeds whatever the programs before it did: echo, `exit 0`, `A=1`, but not
/// `exit $code`. Also mv and cp, which are recorded as work of the job.
bool always_succeeds(const ScriptCommand& command);

/// The trial in which a program of this line fails; nullptr if there was none.
const Trial* trial_of(const Script& script, const SourceSpan& span);
/// True if the script exits with another code than 0 if a program of this line fails.
bool tells_failure(const Script& script, const SourceSpan& span);

/// True for a path on the disk of a node: only its own processes see it. A copy of the script for bash is in
/// a temporary directory itself, and what is there is the script's own.
bool is_of_node(const Script& script, const std::string& path);

/// True if the script was recorded to its end, so that the recording has everything it starts.
bool ran_to_its_end(const Script& script);

/// Calls `look` for each line that starts a program, with the program of its first task and those of all
/// tasks.
template <class Look>
void each_line(const Script& script, const Look& look) {
  std::set<std::pair<const SourceFile*, std::uint32_t>> seen;
  for (const auto& program : script.programs) {
    if (!program.works || !seen.insert({program.span.file.get(), program.span.line}).second) continue;
    std::vector<const Program*> tasks;
    for (const auto& other : script.programs) {
      if (other.works && other.step == program.step && other.span.line == program.span.line &&
          other.span.file == program.span.file && other.words[0] == program.words[0])
        tasks.push_back(&other);
    }
    look(program, tasks);
  }
}

}  // namespace nlaunch::lint
