#include "import/work.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "shell/answers.h"

namespace nlaunch::import {
namespace {

using shell::is_any_of;

using shell::Words;

bool is_python(const std::string& name) {
  return name.starts_with("python");
}

/// "vllm" for "/opt/venv/bin/vllm", "torch.distributed.run" for `python -u -m torch.distributed.run`, "train"
/// for `python train.py`; after `uv run` and similar programs.
struct Program {
  std::string name;
  std::size_t at = 0;  ///< its word
};

Program program_of(const Words& argv, std::size_t outer = 0) {
  const auto from = shell::behind_runners(argv, outer);
  if (from >= argv.size()) return {"", argv.size()};
  const auto name = shell::program_name(argv[from]);
  static const shell::Options kPython{"-W", "-X"};
  if (!is_python(name)) return {name, from};
  for (auto i = from + 1; i < argv.size(); ++i) {
    if (argv[i] == "-m" && i + 1 < argv.size()) return {argv[i + 1], i + 1};
    if (argv[i] == "-c" || argv[i] == "-") return {name, from};
    if (kPython.contains(argv[i])) {
      ++i;
    } else if (!argv[i].starts_with('-')) {
      return {shell::program_name(argv[i]), i};
    }
  }
  return {name, from};
}

bool ends_any(std::string_view name, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](auto end) { return name.ends_with(end); });
}

/// The input of a row's test: the program, the word after it, the whole line.
struct Asked {
  std::string name;
  std::string second;
  const Words& argv;
};

bool is_ray_start(const Asked& asked) {
  return asked.name == "ray" && asked.second == "start";
}

bool is_training_word(std::string_view word) {
  constexpr std::array<std::string_view, 12> kWords{"train", "grpo", "ppo",  "sft",  "dpo",   "finetune",
                                                    "dapo",  "rlhf", "gspo", "rloo", "learn", "pretrain"};
  return std::ranges::any_of(kWords, [&](auto one) { return word.find(one) != std::string_view::npos; });
}

/// The base name of the file or module: "main_ppo" for "verl.trainer.main_ppo".
std::string_view own_name(std::string_view name) {
  if (name.ends_with(".py") || name.ends_with(".sh")) name.remove_suffix(3);
  return name.substr(name.rfind('.') + 1);
}

bool serves(std::string_view name) {
  const auto own = own_name(name);
  return own.find("serve") != std::string_view::npos || own.find("api") != std::string_view::npos;
}

bool trains(const Asked& asked) {
  return is_any_of(asked.name,
                   {"torchrun", "accelerate", "deepspeed", "torch.distributed.run",
                    "torch.distributed.launch", "axolotl", "llamafactory-cli", "swift", "tune"}) ||
         (asked.name == "wandb" && is_any_of(asked.second, {"agent", "launch-agent"})) ||
         (asked.name == "ray" && asked.second == "symmetric-run") ||
         (is_training_word(text::lower(own_name(asked.name))) && !serves(text::lower(asked.name)));
}

struct WorkRow {
  bool (*fits)(const Asked& asked);
  WorkOf work;
};

/// The first match counts.
constexpr WorkRow kRows[] = {
    {[](const Asked& a) { return is_ray_start(a) && shell::has(a.argv, "--head"); }, {Work::ray_head, ""}},
    {is_ray_start, {Work::ray_worker, ""}},
    {[](const Asked& a) {
       return a.name == "ray" && is_any_of(a.second, {"stop", "disable-usage-stats"});
     },
     {Work::nothing, "nlaunch stops what it starts"}},
    {[](const Asked& a) {
       return a.name == "ray" && is_any_of(a.second, {"list", "summary", "memory"});
     },
     {Work::nothing, "it only prints"}},
    {[](const Asked& a) {
       return (a.name == "vllm" && a.second == "serve") ||
              (is_any_of(a.name, {"trl", "axolotl"}) && a.second == "vllm-serve") ||
              ends_any(a.name, {"vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server",
                                "sglang.launch_server", "vllm_serve", "trl.scripts.vllm_serve"}) ||
              a.name == "sglang" || a.name == "lmdeploy" || a.name == "trtllm-serve" ||
              a.name == "text-generation-launcher" || a.name == "llama-server" ||
              (a.name == "ollama" && a.second == "serve") ||
              (is_python(shell::program_name(a.argv[0])) && serves(text::lower(a.name)) &&
               (a.name.find("vllm") != std::string::npos || a.name.find("sglang") != std::string::npos));
     },
     {Work::engine, ""}},
    {[](const Asked& a) {
       return is_any_of(a.name, {"module", "ml"});
     },
     {Work::nothing, "the profile's modules"}},
    {[](const Asked& a) {
       return is_any_of(a.name, {"conda", "mamba", "micromamba"}) &&
              is_any_of(a.second, {"activate", "deactivate", "info", "list", "env", "config", "init"});
     },
     {Work::nothing, "the environment it sets up is in `env`"}},
    {[](const Asked& a) {
       return is_any_of(a.name, {"pkill", "killall", "fuser", "ipcrm", "reset"});
     },
     {Work::nothing, "nlaunch places processes on nodes itself and stops what it starts"}},
    {[](const Asked& a) {
       return is_any_of(a.name, {"sbatch", "scancel", "salloc"});
     },
     {Work::submission, "`nlaunch submit` submits jobs; `walltime` sets what follows"}},
    {[](const Asked& a) {
       return is_any_of(a.name, {"tmux", "screen"}) || (a.name == "nvcc" && a.second == "--version");
     },
     {Work::nothing, "it is only for interactive use"}},
    {[](const Asked& a) {
       return is_any_of(a.second, {"--version", "-V"}) || (is_python(a.name) && a.argv.size() == 1);
     },
     {Work::nothing, "it only prints"}},
    {[](const Asked& a) {
       return (a.name == "wandb" && !is_any_of(a.second, {"sync", "agent", "launch-agent"})) ||
              a.name == "ulimit";
     },
     {Work::nothing, "it sets up the user's account: do it once by hand"}},
    {trains, {Work::training, ""}},
};

std::string with_hyphens(std::string_view text) {
  std::string out(text);
  std::ranges::replace(out, '_', '-');
  return out;
}

}  // namespace

WorkOf work_of(const Words& argv) {
  const auto program = program_of(argv);
  const Asked asked{program.name, program.at + 1 < argv.size() ? argv[program.at + 1] : "", argv};
  for (const auto& row : kRows)
    if (row.fits(asked)) return row.work;
  return {};
}

std::string role_name_of(const Words& argv) {
  auto name = program_of(argv).name;
  const auto dot = name.rfind('.');
  if (ends_any(name, {".py", ".sh"})) {
    name.resize(dot);
  } else if (dot != std::string::npos) {
    name = name.substr(dot + 1);  // of a module
  }
  std::string plain;
  for (const char c : text::lower(name)) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (fits || (!plain.empty() && plain.back() != '-')) plain += fits ? c : '-';
  }
  constexpr std::size_t kLongest = 40;
  plain = plain.substr(0, kLongest);
  while (plain.ends_with('-')) plain.pop_back();
  return plain.empty() || plain[0] < 'a' ? "service" + plain : plain;
}

std::optional<std::string> option_of(const Words& argv, std::string_view name) {
  std::optional<std::string> value;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    const auto equals = argv[i].find('=');
    if (with_hyphens(argv[i].substr(0, equals)) != with_hyphens(name)) continue;
    if (equals != std::string::npos)
      value = argv[i].substr(equals + 1);
    else if (i + 1 < argv.size())
      value = argv[i + 1];
  }
  return value;
}

std::optional<std::uint32_t> number_option_of(const Words& argv, std::string_view name) {
  const auto value = option_of(argv, name);
  constexpr std::uint32_t kMost = 1024;
  const auto number = value ? text::whole_number<std::uint32_t>(*value) : std::nullopt;
  return number ? std::optional(std::min(*number, kMost)) : std::nullopt;
}

bool works_on_files(const Words& argv) {
  constexpr std::string_view kNames =
      " cp mv ln install dd tar unzip gzip rsync scp wget curl aws hf huggingface-cli gsutil gcloud lfs git "
      "pip "
      "pip3 uv poetry conda mamba npm node apt make cmake gcc g++ nvcc wandb ray ollama docker podman "
      "enroot ";
  const auto name = program_of(argv).name;
  return shell::changes_files(name) || kNames.contains(" " + name + " ");
}

bool makes_ranks(const Words& argv) {
  return is_any_of(program_of(argv).name, {"torchrun", "accelerate", "deepspeed", "torch.distributed.run",
                                           "torch.distributed.launch"});
}

bool hands_its_environment_on(const Words& argv, std::uint32_t gpus) {
  const auto several = [&](std::string_view name) { return number_option_of(argv, name).value_or(1) > 1; };
  const bool one = number_option_of(argv, "--num_processes") == 1U || gpus <= 1;
  return program_of(argv).name == "accelerate" && one && !several("--num_processes") &&
         !several("--num_machines") && !shell::has(argv, "--multi_gpu") &&
         !option_of(argv, "--config_file") && !shell::has(argv, "--use_deepspeed") &&
         !shell::has(argv, "--use_fsdp");
}

std::optional<std::uint32_t> gpus_said_by(const Words& argv, std::uint32_t nodes) {
  const auto work = work_of(argv).work;
  if (work == Work::engine) {
    std::uint32_t gpus = 0;
    for (const auto* name : {"--tensor-parallel-size", "--tp-size", "--tp", "-tp"})
      gpus = std::max(gpus, number_option_of(argv, name).value_or(0));
    std::uint32_t copies = 1;
    for (const auto* name : {"--data-parallel-size", "--dp-size", "--dp", "-dp", "--pipeline-parallel-size"})
      copies = std::max(copies, number_option_of(argv, name).value_or(1));
    return std::max(1U, gpus) * copies;
  }
  if (const auto each = number_option_of(argv, "--nproc-per-node")) return each;
  if (const auto all = number_option_of(argv, "--num-processes"))
    return (*all + nodes - 1) / std::max(1U, nodes);
  return number_option_of(argv, "--num-gpus");
}

}  // namespace nlaunch::import
