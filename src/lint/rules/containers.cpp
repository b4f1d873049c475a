#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "lint/shell_options.h"
#include "shell/allocation.h"
#include "shell/launchers.h"
#include "shell/words.h"

/// Containers of docker: its daemon starts them, not the job.
namespace nlaunch::lint {
namespace {

/// The words of `docker run …`, also behind sudo or srun; empty for another command.
shell::Words docker_run_in(const ScriptCommand& command) {
  const auto first = shell::program_name(command.words[0]);
  const bool by_other = first == "sudo" || first == "srun";
  for (std::size_t i = 0; i + 1 < command.words.size(); ++i) {
    if (shell::program_name(command.words[i]) == "docker" && command.words[i + 1] == "run")
      return shell::rest(command.words, i);
    if (!by_other) break;
  }
  return {};
}

/// Its own options, up to the image.
shell::Words options_of(const shell::Words& docker) {
  if (docker.empty()) return {};
  const auto started = shell::started_by(docker, {});
  const auto behind = started ? started->argv.size() + 1 : 1;
  return {docker.begin(), docker.end() - static_cast<std::ptrdiff_t>(std::min(behind, docker.size()))};
}

void check_container_left(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty() || has_exit_trap(*input.script)) return;
  for (const auto& command : input.script->commands) {
    const auto options = options_of(docker_run_in(command));
    const bool works = std::ranges::any_of(options, [](const std::string& word) {
      return word.starts_with("--gpus") || word.starts_with("--runtime") || word.starts_with("--device") ||
             word == "-d" || word == "--detach";
    });
    if (!works || command.span.file != input.script->file) continue;
    return report.note(
        command.span,
        {"the end of the job may leave this container running",
         "dockerd starts it, outside of the job: what Slurm kills is docker's client, and the container goes "
         "on "
         "and holds the GPUs that the next job gets",
         "docker run --name job-$SLURM_JOB_ID …, and trap 'docker rm -f job-$SLURM_JOB_ID' EXIT", ""});
  }
}

const Registered<Rule> container_left_rule{{
    .order = 482,
    .name = "container-left",
    .title = "a container that outlives its job",
    .explain =
        "docker run asks a daemon to start the container. Slurm does not know its processes: they are in no "
        "step, and no limit of the job applies to them. podman, apptainer and enroot start them themselves.",
    .source = "Docker documentation, dockerd; slurm.conf(5), ProctrackType",
    .check = check_container_left,
}};

void check_container_name(const LintInput& input, Report& report) {
  if (!input.script) return;
  const bool job = !input.batch.empty();
  const SourceLines lines(input.script->file);
  static const RE2 kRemoves(R"re(\b(?:docker|podman)\s+(?:rm|container\s+rm)\b|--replace\b)re");
  const bool removes = RE2::PartialMatch(without_comments(lines), kRemoves);
  const bool alone = has_option(input.batch, {"--exclusive"});
  static const RE2 kDiffers(
      R"re(--name[= ]["']?[^\s"']*(?:\$\(|`|\$\$|\$\{?(?:RANDOM|SLURM_|BASHPID|EPOCH)))re");
  for (const auto& command : input.script->commands) {
    const auto options = options_of(docker_run_in(command));
    const auto name = shell::option(options, options.size(), "", "--name");
    const bool differs = (name && name->find(std::string(shell::Allocation{}.job_id)) != std::string::npos) ||
                         RE2::PartialMatch(lines.command(command.span.line), kDiffers);
    // Outside of a job, a script may be meant to run once at a time.
    const bool is_left = !removes && !shell::has(options, "--rm");
    if (!name || differs || command.span.file != input.script->file || (removes && alone) ||
        (!job && !is_left))
      continue;
    return report.note(
        command.span,
        {fmt::format("the name of the container is the same in each {}: {}", job ? "job" : "run",
                     text::printable(*name)),
         removes
             ? "a second job on the node removes the container of the first"
             : "while one of that name is left, from another job or an earlier run, docker refuses to start",
         job ? fmt::format("--name {}-$SLURM_JOB_ID", text::printable(*name)) : "docker run --rm", ""});
  }
}

const Registered<Rule> container_name_rule{{
    .order = 483,
    .name = "container-name",
    .title = "a container whose name two jobs share",
    .explain = "A name belongs to one container of a machine, also after that has exited, unless it was "
               "started with --rm.",
    .source = "Docker documentation, docker run --name",
    .check = check_container_name,
}};

/// `docker run -v data/model:/model`: "data/model" is no path for docker, but the name of a volume.
void check_volume_path(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& command : input.script->commands) {
    const auto options = options_of(docker_run_in(command));
    for (std::size_t i = 0; i < options.size(); ++i) {
      const auto& word = options[i];
      const bool next = (word == "-v" || word == "--volume") && i + 1 < options.size();
      if (!next && !word.starts_with("--volume=")) continue;
      const auto value = next ? options[i + 1] : word.substr(word.find('=') + 1);
      const auto source = value.substr(0, value.find(':'));
      if (source.size() == value.size() || source.find('/') == std::string::npos || source[0] == '/' ||
          source[0] == '.' || source[0] == '~')
        continue;
      report.error(command.span,
                   {fmt::format("docker refuses the volume {}: it is no absolute path, and no name",
                                text::printable(source)),
                    "a source without a / at its beginning is the name of a volume, which has no /",
                    fmt::format("-v \"$PWD/{}:…\"", text::printable(source)), ""});
    }
  }
}

const Registered<Rule> volume_path_rule{{
    .order = 493,
    .name = "volume-path",
    .title = "a volume of docker with a relative path",
    .explain =
        "Docker takes a source that begins with / or . for a path of the machine, and any other for the "
        "name of a volume.",
    .source = "Docker documentation, docker run --volume",
    .check = check_volume_path,
}};

/// "vllm" of `--container-image=vllm#vllm-openai`: pyxis takes it for a registry.
std::string registry_of(std::string image) {
  if (const auto scheme = image.find("://"); scheme != std::string::npos) image = image.substr(scheme + 3);
  const auto mark = image.find('#');
  if (mark == std::string::npos || image.starts_with('/') || image.starts_with('.')) return {};
  auto registry = image.substr(0, mark);
  return registry.substr(registry.find('@') + 1);
}

void check_registry(const LintInput& input, Report& report) {
  const auto check = [&](const StepOption& option) {
    const auto registry = registry_of(value_of(option, "--container-image"));
    if (registry.empty() || registry == "localhost" || registry.find_first_of(".:$") != std::string::npos)
      return;
    report.error(option.span,
                 {fmt::format("pyxis takes {} for the host of a registry", text::printable(registry)),
                  "the image is not found. In REGISTRY#IMAGE, # stands behind a host",
                  fmt::format("{}/…, with a slash", text::printable(registry)), ""});
  };
  for (const auto& option : input.batch) check(option);
  for (const auto& step : input.steps) std::ranges::for_each(step.options, check);
}

const Registered<Rule> registry_rule{{
    .order = 553,
    .name = "registry",
    .title = "a # where a slash is meant in the name of an image",
    .explain = "enroot and pyxis take [USER@][REGISTRY#]IMAGE[:TAG].",
    .source = "enroot, doc/cmd/import.md",
    .check = check_registry,
}};

}  // namespace
}  // namespace nlaunch::lint
