#include "emit/import/wrappers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "lint/script_steps.h"

namespace nlaunch::emit {
namespace {

std::string long_name(std::string_view option) {
  constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"-N", "nodes"},    {"-n", "ntasks"},  {"-c", "cpus-per-task"},
      {"-w", "nodelist"}, {"-x", "exclude"}, {"-G", "gpus"}};
  for (const auto& [letter, word] : kShort) {
    if (option == letter) return std::string(word);
  }
  return std::string(option.substr(std::min(option.find_first_not_of('-'), option.size())));
}

void drop(Launch& launch, std::size_t count) {
  const auto most = std::min(count, launch.words.size());
  launch.words.erase(launch.words.begin(), launch.words.begin() + static_cast<std::ptrdiff_t>(most));
}

void add_variable(Launch& launch, const std::string& text, std::uint32_t line) {
  Value value;
  value.add({Piece::Kind::text, text.substr(text.find('=') + 1)});
  launch.variables.push_back({text.substr(0, text.find('=')), std::move(value), line});
}

void add_value(Launch& launch, const Value& word) {
  auto value = word;
  auto& first = value.pieces.front().text;
  const auto name = first.substr(0, first.find('='));
  if (!is_variable_name(name) || name.size() == first.size()) return;  // made when the script runs
  first.erase(0, name.size() + 1);
  launch.variables.push_back({name, std::move(value), launch.line});
}

void read_step(Launch& launch, Doings& doings) {
  launch.step = true;
  drop(launch, 1);
  while (!launch.words.empty() && launch.words.front().known().starts_with('-')) {
    auto option = launch.words.front().known();
    auto value = std::string();
    const auto equals = option.find('=');
    const bool two = lint::srun_takes_value(option);
    drop(launch, 1);
    if (two && !launch.words.empty()) {
      value = launch.words.front().known();
      drop(launch, 1);
    } else if (equals != std::string::npos) {
      value = option.substr(equals + 1);
      option.resize(equals);
    }
    launch.options.emplace_back(long_name(option), value);
    const auto& name = launch.options.back().first;
    if (name == "export") {
      for (const auto& one : text::split(value, ',')) {
        if (!is_assignment(one)) continue;
        add_variable(launch, one, launch.line);
        launch.variables.back().weak = true;
      }
    } else if (name == "network") {
      const auto text = fmt::format("--network={}", value);
      if (std::ranges::find(doings.srun, text, &ImportedEntry::value) == doings.srun.end())
        doings.srun.push_back({"", text, launch.line, ""});
    } else if (name.starts_with("container")) {
      auto text =
          fmt::format("srun --{}: nlaunch has to be in the image; srun: [...] here takes the option", name);
      doings.remarks.push_back({Place::scheduler, {launch.line, std::move(text)}});
    }
  }
}

}  // namespace

bool is_variable_name(std::string_view text) {
  return !text.empty() && (text[0] < '0' || text[0] > '9') && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_assignment(std::string_view text) {
  const auto equals = text.find('=');
  return equals != std::string_view::npos && is_variable_name(text.substr(0, equals));
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

void take_off_wrappers(Launch& launch, Doings& doings) {
  for (unsigned round = 0; round < 16 && !launch.words.empty(); ++round) {
    const auto text = launch.words.front().text().value_or("");
    const auto name = base_name(text);
    if (is_assignment(text) && round > 0) {  // behind a wrapper
      add_variable(launch, text, launch.line);
      drop(launch, 1);
    } else if (name == "srun") {
      read_step(launch, doings);
    } else if (name == "env") {
      drop(launch, 1);
      while (!launch.words.empty() && launch.words.front().known().starts_with('-'))
        drop(launch, launch.words.front().known() == "-u" ? 2 : 1);
      while (!launch.words.empty() && is_assignment(launch.words.front().known())) {
        add_value(launch, launch.words.front());
        drop(launch, 1);
      }
    } else if (name == "timeout") {
      drop(launch, 1);
      while (!launch.words.empty() && launch.words.front().known().starts_with('-')) {
        const auto option = launch.words.front().known();
        drop(launch, option == "-k" || option == "-s" ? 2 : 1);
      }
      drop(launch, 1);
    } else if (name == "nohup" || name == "exec" || name == "setsid" || name == "stdbuf" || name == "nice" ||
               name == "unbuffer" || name == "numactl") {
      drop(launch, 1);
      while (!launch.words.empty() && launch.words.front().known().starts_with('-'))
        drop(launch, launch.words.front().known() == "-n" ? 2 : 1);
    } else {
      break;
    }
  }
}

void find_started_program(Launch& launch) {
  constexpr std::array<std::string_view, 11> kStarters{"uv",          "poetry", "pixi",       "pdm",
                                                       "rye",         "conda",  "micromamba", "apptainer",
                                                       "singularity", "docker", "podman"};
  if (!is_one_of(launch.program, kStarters)) return;
  constexpr std::array<std::string_view, 9> kPrograms{
      "python", "python3", "torchrun", "accelerate", "deepspeed", "vllm", "ray", "uvicorn", "trl"};
  for (std::size_t i = 1; i < launch.words.size(); ++i) {
    const auto name = base_name(launch.words[i].known());
    if (!is_one_of(name, kPrograms)) continue;
    if (i >= 2 && base_name(launch.words[i - 1].known()) == "pip") return;
    launch.prefix.assign(launch.words.begin(), launch.words.begin() + static_cast<std::ptrdiff_t>(i));
    drop(launch, i);
    launch.program = name;
    return;
  }
}

}  // namespace nlaunch::emit
