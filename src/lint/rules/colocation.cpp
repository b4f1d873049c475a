#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/registry.h"
#include "base/text.h"
#include "lint/rule.h"

/// GPUs that an engine shares with another role.
namespace nlaunch::lint {
namespace {

/// A server that reserves a share of its GPUs' memory at startup.
struct Server {
  std::string_view name;
  std::string_view option;
  std::string_view unless_told;  ///< how much it reserves without the option
};
constexpr Server kVllm{"vLLM", "--gpu-memory-utilization", "0.9 of it"};
constexpr Server kSglang{"SGLang", "--mem-fraction-static", "most of it"};

/// The words of a command, including those in texts for a shell: [bash, -c, "vllm serve ..."].
std::vector<std::string> words_of(const std::vector<std::string>& command) {
  auto text = text::join(command, " ");
  std::ranges::replace(text, '\n', ' ');
  return text::split(text, ' ');
}

const Server* server_in(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const auto program = std::string_view(words[i]).substr(words[i].rfind('/') + 1);
    const auto& next = words[i + 1];
    const bool module = program == "-m";
    if ((program == "vllm" && next == "serve") || (program == "trl" && next == "vllm-serve") ||
        (module && next.starts_with("vllm.entrypoints.")))
      return &kVllm;
    if ((program == "sglang" && next == "serve") || (module && next == "sglang.launch_server"))
      return &kSglang;
  }
  return nullptr;
}

/// "--gpu-memory-utilization 0.4", "--gpu_memory_utilization=0.4".
std::optional<std::string> value_of(const std::vector<std::string>& words, std::string_view option) {
  std::optional<std::string> value;
  for (auto word = words.begin(); word != words.end(); ++word) {
    const auto equals = word->find('=');
    auto name = word->substr(0, equals);
    std::ranges::replace(name, '_', '-');
    if (name != option) continue;
    if (equals != std::string::npos)
      value = word->substr(equals + 1);
    else if (word + 1 != words.end())
      value = word[1];
  }
  return value;
}

void check_gpu_memory(const LintInput& input, Report& report) {
  for (const auto& environment : input.environments) {
    const auto words = words_of(environment.command);
    const auto* server = server_in(words);
    if (server == nullptr || environment.shares_gpus_with.empty()) continue;
    report.of(environment.name);
    const auto said = value_of(words, server->option);
    const auto wanted =
        environment.gpu_memory
            ? fmt::format("{} \"${{self.gpu_memory}}\"", server->option)
            : fmt::format("gpu_memory: 0.45 in the role, and {} \"${{self.gpu_memory}}\"", server->option);
    if (!said) {
      report.warning(environment.command_span,
                     {fmt::format("{} shares its GPUs with {}, but has no limit on the memory it uses",
                                  server->name, environment.shares_gpus_with),
                      fmt::format("it uses {}: the other role, or {} itself, runs out of memory",
                                  server->unless_told, server->name),
                      wanted, ""});
      continue;
    }
    const auto share = parse_fraction(*said);
    if (share && environment.gpu_memory && *share > *environment.gpu_memory) {
      report.warning(
          environment.command_span,
          {fmt::format("{} {}, but the role's gpu_memory is {:g}", server->option, *said,
                       *environment.gpu_memory),
           fmt::format("the plan assumes less than it uses: with {} on the same GPUs, they can run out of "
                       "memory",
                       environment.shares_gpus_with),
           wanted, ""});
    }
  }
}

const Registered<Rule> gpu_memory_rule{{
    .order = 295,
    .name = "gpu-memory",
    .title = "an engine on shared GPUs that uses more than its share of their memory",
    .explain = "vLLM and SGLang reserve their share of GPU memory at startup, and most of it by default. If "
               "another "
               "role is on the same GPUs, the one that starts second runs out of memory.",
    .source = "vLLM: vllm/config/cache.py (gpu_memory_utilization); SGLang: sglang/srt/server_args.py "
              "(mem_fraction_static)",
    .check = check_gpu_memory,
}};

}  // namespace
}  // namespace nlaunch::lint
