#include "import/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include "base/text.h"
#include "import/ray.h"

namespace nlaunch::import {
namespace {

constexpr std::array<std::string_view, 20> kPrograms{
    "python",       "python3",  "torchrun", "accelerate",       "deepspeed", "vllm",  "ray",
    "uvicorn",      "gunicorn", "trl",      "llamafactory-cli", "tune",      "swift", "sglang",
    "redis-server", "axolotl",  "nemo",     "fastapi",          "streamlit", "rl"};

bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](auto word) { return text.find(word) != std::string_view::npos; });
}

bool is_preparation(const Launch& launch) {
  const bool module = launch.words.size() > 2 && launch.words[1].known() == "-m";
  const auto name = module ? launch.words[2].known() : std::string();
  if (name == "pip" || name == "venv" || name == "ensurepip") return true;
  const auto second = launch.words.size() > 1 ? launch.words[1].known() : std::string();
  constexpr std::array<std::string_view, 15> kTools{
      "pip", "pip3", "apt-get",         "apt", "git",  "cp",    "mv",    "rsync",
      "tar", "hf",   "huggingface-cli", "ln",  "wget", "conda", "ulimit"};
  return is_one_of(launch.program, kTools) ||
         (launch.program == "uv" && (second == "pip" || second == "sync"));
}

bool is_launcher(const Launch& launch) {
  return launch.program == "torchrun" || launch.program == "accelerate" || launch.program == "deepspeed" ||
         launch.mentions("torch.distributed.run") || launch.mentions("torch.distributed.launch");
}

/// With hyphens alone.
std::string plain_option(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '_' ? '-' : c;
  return out;
}

}  // namespace

const Value* Launch::variable(std::string_view name) const {
  const auto found = std::ranges::find(variables, name, &Variable::name);
  return found == variables.end() ? nullptr : &found->value;
}

std::optional<std::string> Launch::option(std::string_view name) const {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto text = words[i].known();
    const auto equals = text.find('=');
    if (plain_option(text.substr(0, equals)) != plain_option(name)) continue;
    if (equals != std::string::npos) return text.substr(equals + 1);
    if (i + 1 < words.size()) return words[i + 1].known();
  }
  return std::nullopt;
}

bool Launch::mentions(std::string_view text) const {
  return std::ranges::any_of(words, [&](const auto& word) { return word.known().ends_with(text); });
}

bool is_program(const Launch& launch, const lint::Command& command) {
  const auto& name = launch.program;
  if (is_preparation(launch)) return false;
  if (!launch.prefix.empty()) return true;  // uv run NAME
  const bool python = name.starts_with("python3.");
  const bool script = launch.words.front().known().find('/') != std::string::npos &&
                      !launch.words.front().known().starts_with("/usr/bin");
  const bool shell_script =
      (name == "bash" || name == "sh") && launch.words.size() > 1 && command.heredocs.empty();
  return python || is_one_of(name, kPrograms) || script || shell_script || (launch.step && !name.empty()) ||
         name.ends_with(".py") || (launch.background && !name.empty());
}

bool names_program(const Launch& launch) {
  return std::any_of(std::next(launch.words.begin()), launch.words.end(), [](const auto& word) {
    const auto text = word.known();
    return text.ends_with(".py") || is_one_of(text.substr(text.rfind('/') + 1), kPrograms);
  });
}

bool is_inline_python(const Launch& launch) {
  if (!launch.program.starts_with("python")) return false;
  for (std::size_t i = 1; i < launch.words.size(); ++i) {
    const auto text = launch.words[i].known();
    if (text == "-c" || text == "-" || text == "-V" || text == "--version") return true;
    if (!text.starts_with('-')) return false;
  }
  return true;
}

std::uint32_t number_of(const std::optional<std::string>& text) {
  std::uint32_t value = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  constexpr std::uint32_t kMost = 1024;
  return std::min(value, kMost);
}

std::uint32_t devices(const Launch& launch) {
  const auto* value = launch.variable("CUDA_VISIBLE_DEVICES");
  const auto text = value == nullptr ? "" : value->text().value_or("");
  return text.empty() || text.find('$') != std::string::npos
             ? 0
             : static_cast<std::uint32_t>(text::split(text, ',').size());
}

Work work_of(const Launch& launch) {
  const auto second = launch.words.size() > 1 ? launch.words[1].known() : "";
  if (launch.program == "ray" && second == "start")
    return is_ray_head(launch) ? Work::ray_head : Work::ray_worker;
  const bool server = (launch.program == "vllm" && second == "serve") ||
                      (launch.program == "trl" && second == "vllm-serve") ||
                      launch.mentions("vllm.entrypoints.openai.api_server") ||
                      launch.mentions("sglang.launch_server");
  return server ? Work::engine : Work::helper;
}

int training_score(const Launch& launch) {
  int score = launch.background ? 0 : 1;
  if (is_launcher(launch)) score += 4;
  if (launch.variable("LD_PRELOAD") != nullptr) score += 4;
  for (const auto& word : launch.words) {
    if (contains_any(text::lower(word.known()), {"train", "grpo", "ppo", "sft", "dpo", "finetune"}))
      return score + 2;
  }
  return score;
}

std::string name_of_program(const Launch& launch) {
  auto name = launch.program;
  for (std::size_t i = 1; i < launch.words.size(); ++i) {
    const auto text = launch.words[i].known();
    const bool python =
        launch.program.starts_with("python") || launch.program == "bash" || launch.program == "sh";
    if (!python && launch.program != "uvicorn" && launch.program != "gunicorn" && launch.program != "fastapi")
      break;
    if (text.starts_with('-') || text == "run") continue;
    name = text.substr(0, text.find(':'));
    name = name.substr(name.rfind('/') + 1);
    if (name.ends_with(".py") || name.ends_with(".sh")) name.resize(name.size() - 3);
    if (!python) name = name.substr(0, name.find('.'));
    break;
  }
  std::string plain;
  for (const char c : text::lower(name)) plain += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
  constexpr std::size_t kLongest = 40;
  plain = plain.substr(0, kLongest);
  return plain.empty() || plain[0] < 'a' || plain[0] > 'z' ? fmt::format("service{}", plain) : plain;
}

std::uint32_t ranks_of_torchrun(std::vector<Value>& words, std::uint32_t free) {
  constexpr std::array<std::string_view, 4> kFlags{"--standalone", "--no-python", "--run-path", "--use-env"};
  std::size_t i = 1;
  if (!words.front().known().ends_with("torchrun")) i = 3;  // python -m torch.distributed.run
  std::uint32_t ranks = 0;
  std::vector<Value> command;
  const auto python = Value::just("python");
  bool plain = false;
  for (; i < words.size(); ++i) {
    auto option = words[i].known();
    if (!option.starts_with('-')) break;
    if (option == "-m" || option == "--module") break;
    std::ranges::replace(option, '_', '-');
    plain = plain || option == "--no-python";
    const auto equals = option.find('=');
    const auto name = option.substr(0, equals);
    auto value = equals == std::string::npos ? std::string() : option.substr(equals + 1);
    if (equals == std::string::npos && std::ranges::find(kFlags, option) == kFlags.end() &&
        i + 1 < words.size())
      value = words[++i].known();
    if (name == "--nproc-per-node") ranks = number_of(value);
  }
  if (!plain) command.push_back(python);
  for (; i < words.size(); ++i) command.push_back(words[i]);
  words = std::move(command);
  if (words.empty()) words.push_back(python);
  return std::max(1U, ranks > 0 ? ranks : free);
}

bool choose_port(std::vector<Value>& words) {
  constexpr std::string_view kOption = "--port=";
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool two = words[i - 1].known() == "--port";
    if (!two && !words[i].known().starts_with(kOption)) continue;
    const auto text = words[i].text();
    if (text && !text->ends_with(":-}") && *text != kOption) return false;
    words[i] = Value::just(fmt::format("{}{}", two ? "" : kOption, kChosenPort));
    return true;
  }
  return false;
}

std::string library_name(const std::string& path) {
  auto name = text::lower(path.substr(path.rfind('/') + 1));
  name = name.substr(0, name.find(".so"));
  if (name.starts_with("lib")) name.erase(0, 3);
  std::string plain;
  for (const char c : name) plain += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
  return plain.empty() || plain[0] < 'a' || plain[0] > 'z' ? fmt::format("lib{}", plain) : plain;
}

std::vector<std::string> library_paths(const std::string& text) {
  std::vector<std::string> paths;
  int level = 0;
  std::string path;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ':';
    level += c == '{' ? 1 : c == '}' ? -1 : 0;
    if ((c != ':' && c != ' ') || (level > 0 && i < text.size())) {  // not at the colons of references
      path += c;
    } else if (!path.empty()) {
      if (path.find('/') != std::string::npos) paths.push_back(path);
      path.clear();
    }
  }
  return paths;
}

}  // namespace nlaunch::import
