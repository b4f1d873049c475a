#include <fmt/format.h>
#include <re2/re2.h>

#include <string>
#include <string_view>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/allocation.h"
#include "shell/words.h"

/// Containers of docker and podman: their daemon starts them, not the job.
namespace nlaunch::lint {
namespace {

/// `docker run`, also behind sudo or srun.
bool runs_container(const ScriptCommand& command) {
  const auto& words = command.words;
  const auto at = shell::program_name(words[0]) == "sudo" ? 1U : 0U;
  return words.size() > at + 1 && shell::program_name(words[at]) == "docker" && words[at + 1] == "run";
}

void check_container_left(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty()) return;
  static const RE2 kEnds(R"re(\btrap\s[^\n]*(?:docker|clean|stop|finish|on_exit|teardown))re");
  if (RE2::PartialMatch(without_comments(SourceLines(input.script->file)), kEnds)) return;
  for (const auto& command : input.script->commands) {
    if (!runs_container(command) || command.span.file != input.script->file) continue;
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
  for (const auto& command : input.script->commands) {
    const auto name = runs_container(command)
                          ? shell::option(command.words, command.words.size(), "", "--name")
                          : std::nullopt;
    const bool differs = name && name->find(std::string(shell::Allocation{}.job_id)) != std::string::npos;
    // Outside of a job, a script may be meant to run once at a time.
    const bool is_left = !removes && !shell::has(command.words, "--rm");
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

}  // namespace
}  // namespace nlaunch::lint
