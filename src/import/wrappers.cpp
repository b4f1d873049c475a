#include "import/wrappers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "lint/script_steps.h"

namespace nlaunch::import {
namespace {

std::string long_name(std::string_view option) {
  constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"-N", "nodes"}, {"-n", "ntasks"},       {"-c", "cpus-per-task"}, {"-w", "nodelist"}, {"-x", "exclude"},
      {"-G", "gpus"},  {"-m", "distribution"}, {"-D", "chdir"},         {"-r", "relative"}};
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

/// An option of pyxis, or of what CSCS has in its place. nlaunch's step has one image for all roles. `open`:
/// only a shell knows the value.
void contain_step(const std::string& name, const std::string& value, bool open, std::uint32_t line,
                  Doings& doings) {
  const auto option = fmt::format("--{}", name);
  const auto text = value.empty() ? option : fmt::format("{}={}", option, value);
  const auto same = std::ranges::find_if(doings.srun, [&](const ImportedEntry& one) {
    return one.value == option || one.value.starts_with(option + "=");
  });
  if (!open && same == doings.srun.end()) {
    const auto said = said_of_step(name);
    if (!said.empty()) doings.remarks.push_back({Destination::scheduler, {line, said}});
    doings.srun.push_back({"", text, line, ""});
  } else if (open || same->value != text) {
    doings.remarks.push_back(
        {Destination::scheduler,
         {line,
          fmt::format("srun {}: {}; `wrapper:` gives a role a container of its own", option,
                      open ? "its value is made when the script runs" : "nlaunch's step has one for all")}});
  }
}

/// An option of srun that nlaunch knows how to do without, or that only says what Slurm should print.
bool is_nlaunchs(std::string_view name) {
  constexpr std::array<std::string_view, 42> kOptions{"nodes",
                                                      "ntasks",
                                                      "ntasks-per-node",
                                                      "nodelist",
                                                      "exclude",
                                                      "gpus",
                                                      "gres",
                                                      "gpus-per-node",
                                                      "gpus-per-task",
                                                      "export",
                                                      "network",
                                                      "job-name",
                                                      "account",
                                                      "partition",
                                                      "reservation",
                                                      "qos",
                                                      "constraint",
                                                      "time",
                                                      "label",
                                                      "unbuffered",
                                                      "no-kill",
                                                      "wait",
                                                      "output",
                                                      "error",
                                                      "input",
                                                      "open-mode",
                                                      "exclusive",
                                                      "overlap",
                                                      "exact",
                                                      "immediate",
                                                      "verbose",
                                                      "quiet",
                                                      "pty",
                                                      "jobid",
                                                      "mem",
                                                      "mem-per-cpu",
                                                      "overcommit",
                                                      "comment",
                                                      "oversubscribe",
                                                      "mem-per-gpu",
                                                      "kill-on-bad-exit",
                                                      "cpu-freq"};
  return name.size() == 1 || is_one_of(name, kOptions) || is_of_image(name);
}

void read_step(Launch& launch, Doings& doings) {
  launch.step = true;
  drop(launch, 1);
  while (!launch.words.empty() && launch.words.front().known().starts_with('-')) {
    auto option = launch.words.front().known();
    auto value = std::string();
    const auto equals = option.find('=');
    const bool two = lint::srun_takes_value(option);
    bool open = !launch.words.front().text();
    drop(launch, 1);
    if (two && !launch.words.empty()) {
      value = launch.words.front().known();
      open = open || !launch.words.front().text();
      drop(launch, 1);
    } else if (equals != std::string::npos) {
      value = option.substr(equals + 1);
      option.resize(equals);
    } else if (option.size() > 2 && option[1] != '-' && lint::srun_takes_value(option.substr(0, 2))) {
      value = option.substr(2);  // -N1
      option.resize(2);
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
    } else if (is_of_image(name)) {
      contain_step(name, value, open, launch.line, doings);
    }
  }
}

constexpr std::array<std::string_view, 4> kOfMpi{"mpirun", "mpiexec", "mpiexec.hydra", "orterun"};

/// mpirun starts as many as srun would; its variables are its own.
void read_mpirun(Launch& launch) {
  constexpr std::array<std::string_view, 20> kWithValue{
      "-np",       "-n",         "--np",         "--n",      "-host",     "--host",       "-H",
      "-hostfile", "--hostfile", "-machinefile", "--map-by", "--bind-to", "--rank-by",    "-ppn",
      "-f",        "--npernode", "-npernode",    "-N",       "-hosts",    "--machinefile"};
  launch.step = true;
  const auto tool = launch.words.front().known();
  std::string options;
  drop(launch, 1);
  while (!launch.words.empty() && launch.words.front().known().starts_with('-')) {
    const auto option = launch.words.front().known();
    const bool variable = option == "-x" || option == "-genv";
    const bool mca = option == "-mca" || option == "--mca" || option == "-genv";
    const std::size_t count = mca ? 3 : variable || is_one_of(option, kWithValue) ? 2 : 1;
    const auto value = count > 1 && launch.words.size() > 1 ? launch.words[1].known() : std::string();
    if (option == "-np" || option == "-n" || option == "--np" || option == "--n") {
      launch.options.emplace_back("ntasks", value);
    } else if (option == "-x" && is_assignment(value)) {
      add_variable(launch, value, launch.line);
    } else if (option != "-x") {
      for (std::size_t i = 0; i < count && i < launch.words.size(); ++i)
        options += fmt::format(" {}", launch.words[i].known());
    }
    drop(launch, count);
  }
  launch.remarks.push_back(
      {launch.line,
       fmt::format("{}'s work is nlaunch's{}{}: a process has RANK, LOCAL_RANK and WORLD_SIZE, and "
                   "none of MPI's variables",
                   base_name(tool), options.empty() ? "" : ", which does without", options)});
}

/// How many words numactl or nice and their options are.
std::size_t words_of_option_taker(const std::vector<Value>& words) {
  constexpr std::array<std::string_view, 15> kWithValue{"-n",
                                                        "-N",
                                                        "-m",
                                                        "-C",
                                                        "-i",
                                                        "-p",
                                                        "-w",
                                                        "--adjustment",
                                                        "--membind",
                                                        "--cpunodebind",
                                                        "--physcpubind",
                                                        "--interleave",
                                                        "--preferred",
                                                        "--touch",
                                                        "--weighted-interleave"};
  std::size_t count = 1;
  while (count < words.size() && words[count].known().starts_with('-'))
    count += is_one_of(words[count].known(), kWithValue) ? 2 : 1;
  return std::min(count, words.size());
}

constexpr std::array<std::string_view, 9> kProgramsInContainers{
    "python", "python3", "torchrun", "accelerate", "deepspeed", "vllm", "ray", "uvicorn", "trl"};

/// An image by its name; others are told by what stands behind them.
bool is_image(const std::string& text) {
  constexpr std::array<std::string_view, 4> kSources{"docker://", "oras://", "library://", "shub://"};
  return text.ends_with(".sif") || text.ends_with(".simg") ||
         std::ranges::any_of(kSources, [&](auto source) { return text.starts_with(source); });
}

/// The first word of what is started behind `TOOL VERB OPTION... IMAGE`; as many as there are words where
/// that cannot be told.
std::size_t program_in_container(const std::vector<Value>& words) {
  constexpr std::array<std::string_view, 4> kShells{"bash", "sh", "/bin/bash", "/bin/sh"};
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto text = words[i].known();
    if (is_image(words[i - 1].known())) return text.starts_with('-') ? words.size() : i;
    if (is_one_of(base_name(text), kProgramsInContainers) || is_one_of(text, kShells)) return i;
  }
  return words.size();
}

/// For apptainer: the image of `docker run OPTION... IMAGE`, which ends the words.
std::string docker_image(const std::vector<Value>& words) {
  constexpr std::string_view kSource = "docker://";
  const auto image = words.back().text().value_or("");
  const bool known = words.size() > 2 && words[1].known() == "run" && !image.empty() && image[0] != '-';
  return fmt::format("{}{}", image.starts_with(kSource) ? "" : kSource, known ? image : "IMAGE");
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

bool is_of_image(std::string_view option) {
  return option.starts_with("container-") || option.starts_with("no-container-") || option == "uenv" ||
         option == "view" || option == "environment";
}

std::string said_of_step(std::string_view option) {
  if (option == "container-image")
    return "the container of nlaunch's step, and so of all roles: docs/containers.md, pyxis";
  if (option == "uenv" || option == "environment")
    return fmt::format("--{} of nlaunch's step, and so of all roles", option);
  return {};
}

void remark_step_options(const Launch& launch, Doings& doings) {
  std::string options;
  for (const auto& [name, value] : launch.options) {
    if (!is_nlaunchs(name)) options += fmt::format(" --{}{}{}", name, value.empty() ? "" : "=", value);
  }
  if (options.empty()) return;
  doings.remarks.push_back({Destination::scheduler,
                            {launch.line, fmt::format("srun{}: nlaunch's step, which starts an agent on each "
                                                      "node, has this only if it is given here, by `srun:`",
                                                      options)}});
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
    } else if (is_one_of(name, kOfMpi)) {
      read_mpirun(launch);
    } else if (name == "env") {
      drop(launch, 1);
      while (!launch.words.empty() && launch.words.front().known().starts_with('-')) {
        const auto option = launch.words.front().known();
        const auto* next = option == "-u" && launch.words.size() > 1 ? &launch.words[1] : nullptr;
        launch.remarks.push_back({launch.line, fmt::format("env {}{}{} is left out", option, next ? " " : "",
                                                           next ? next->known() : "")});
        drop(launch, next ? 2 : 1);
      }
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
      if (!launch.words.empty())
        launch.remarks.push_back(
            {launch.line, fmt::format("timeout {} is left out: `time` under slurm ends the job, and `watch` "
                                      "what hangs (docs/watch.md)",
                                      launch.words.front().known())});
      drop(launch, 1);
    } else if (name == "numactl" || name == "nice") {
      const auto count = words_of_option_taker(launch.words);
      launch.prefix.insert(launch.prefix.end(), launch.words.begin(),
                           launch.words.begin() + static_cast<std::ptrdiff_t>(count));
      drop(launch, count);
    } else if (name == "nohup" || name == "exec" || name == "setsid" || name == "stdbuf" ||
               name == "unbuffer") {
      drop(launch, 1);
      while (!launch.words.empty() && launch.words.front().known().starts_with('-')) drop(launch, 1);
    } else {
      break;
    }
  }
}

bool take_off_container(Launch& launch, Doings& doings) {
  constexpr std::array<std::string_view, 3> kTools{"apptainer", "singularity", "enroot"};
  constexpr std::array<std::string_view, 4> kDaemons{"docker", "podman", "podman-hpc", "nerdctl"};
  const bool daemon = is_one_of(launch.program, kDaemons);
  if (!daemon && !is_one_of(launch.program, kTools)) return false;
  const auto program = program_in_container(launch.words);
  if (program == launch.words.size()) return false;
  const std::vector<Value> tool(launch.words.begin(),
                                launch.words.begin() + static_cast<std::ptrdiff_t>(program));
  launch.in_image = true;
  const auto before = std::exchange(launch.prefix, {});  // numactl apptainer exec ...
  if (daemon) {
    doings.remarks.push_back(
        {Destination::roles,
         {launch.line,
          fmt::format("the container of `{} {}` is left out, since its processes would be those of "
                      "a daemon: wrapper: [apptainer, exec, --nv, {}]",
                      launch.program, tool[1].known(), docker_image(tool))}});
  } else {
    launch.container = before;
    launch.container.insert(launch.container.end(), tool.begin(), tool.end());
    for (auto& word : launch.container) word.word = nullptr;  // its script may be gone before it is used
  }
  drop(launch, program);
  return true;
}

void find_started_program(Launch& launch) {
  constexpr std::array<std::string_view, 7> kStarters{"uv",  "poetry", "pixi",      "pdm",
                                                      "rye", "conda",  "micromamba"};
  constexpr std::array<std::string_view, 9> kWithValue{"--with",     "--python",    "-p",
                                                       "--extra",    "--group",     "--package",
                                                       "--env-file", "--directory", "--project"};
  if (!is_one_of(launch.program, kStarters)) return;
  const auto& words = launch.words;
  std::size_t run = 1;
  while (run < words.size() && words[run].known().starts_with('-'))
    run += is_one_of(words[run].known(), kWithValue) ? 2 : 1;
  if (run + 1 >= words.size() || words[run].known() != "run") return;
  auto found = words.size();
  for (auto i = run + 1; i < words.size() && found == words.size(); ++i) {
    if (is_one_of(base_name(words[i].known()), kProgramsInContainers)) found = i;
  }
  if (found == words.size()) {  // a program of another name: the first word that is no option
    found = run + 1;
    while (found < words.size() && words[found].known().starts_with('-'))
      found += is_one_of(words[found].known(), kWithValue) ? 2 : 1;
  }
  if (found >= words.size()) return;
  launch.program = base_name(words[found].known());
  launch.prefix.insert(launch.prefix.end(), words.begin(),
                       words.begin() + static_cast<std::ptrdiff_t>(found));
  drop(launch, found);
}

}  // namespace nlaunch::import
