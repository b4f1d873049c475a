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

/// What the programs of a recorded script say of themselves: launchers, servers, their options.
namespace nlaunch::lint {

/// "2" of `--nodes=2`; empty: it is another option.
std::string value_of(const StepOption& option, std::string_view name);

/// The first option of this name; nullptr where there is none.
const StepOption* find_option(const std::vector<StepOption>& options, std::string_view name);
/// One of these is there; a short one may have its value behind it: "-c4".
bool has_option(const std::vector<StepOption>& options, std::initializer_list<std::string_view> names);

/// The first value of one of these options: `--nnodes 2`, `--nnodes=2`.
std::optional<std::string> value_of(const Program& program, std::initializer_list<std::string_view> names);
std::optional<std::uint32_t> number_of(const Program& program, std::initializer_list<std::string_view> names);
/// Of its environment; empty: it has none.
std::string variable(const Program& program, const std::string& name);

/// A launcher that starts a process for each GPU, and what its options say.
struct Launcher {
  std::string name{};
  std::optional<std::uint32_t> nodes{};
  std::optional<std::uint32_t> processes{};  ///< of a node; with `counts_all` those of all
  std::optional<std::string> address{};      ///< where its nodes meet, without the port
  std::optional<std::string> port{};
  std::string rank{};       ///< of the node; empty: not said
  bool ranked = false;      ///< it takes that from outside (a static rendezvous)
  bool counts_all = false;  ///< accelerate
  bool reaches = false;     ///< it starts itself on other nodes (deepspeed)
};
/// torchrun, accelerate, deepspeed, Lightning's; nothing for another program.
std::optional<Launcher> launcher_of(const Program& program);

/// vLLM, SGLang, TRL's server of vLLM, Text Generation Inference.
bool is_server(const Program& program);
/// GPUs that the program sees: CUDA_VISIBLE_DEVICES, else those of the node; 0: not known.
std::uint32_t gpus_of(const LintInput& input, const Program& program);
/// Where a variable of a program is set; the program, where it is not known.
SourceSpan place_of(const LintInput& input, const Program& program, const std::string& name);

/// The script has a launcher that starts programs on other nodes by itself: deepspeed, pdsh, a list of hosts.
bool reaches_hosts_itself(const LintInput& input);

/// The script was recorded to its end: what it does not start, it does not start.
bool ran_to_its_end(const Script& script);

/// Calls `look` for each line that starts a program, with that of its first task and those of all.
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
