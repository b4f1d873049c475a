#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/words.h"

/// Scripts that submit jobs: what sbatch gets, and what becomes of a submission that fails.
namespace nlaunch::lint {
namespace {

using shell::program_name;

void check_submission_unchecked(const LintInput& input, Report& report) {
  if (!input.script || !input.script->failed_submission) return;
  const auto& one = *input.script->failed_submission;
  if (one.next == 0) return;
  report.warning(
      one.span,
      {fmt::format(
           "if this sbatch fails, the script submits the job of line {} all the same{}", one.next,
           one.dependency.empty() ? ", without the dependency" : ", with " + text::printable(one.dependency)),
       one.dependency.empty() ? "it starts without waiting for anything, on results that are not there"
                              : "sbatch refuses it, and the script goes on",
       "id=$(sbatch --parsable …) || exit 1", ""});
}

const Registered<Rule> submission_unchecked_rule{{
    .order = 498,
    .name = "submission-unchecked",
    .title = "a job that does not wait for the one that could not be submitted",
    .explain =
        "bash ran the script again, and the first sbatch failed: another job, whose --dependency has its "
        "id, was submitted.",
    .source = "sbatch(1), --parsable, --dependency",
    .check = check_submission_unchecked,
}};

/// `--dependency=afterok:ID` of a job that Slurm keeps when it can never start.
void check_stays_pending(const LintInput& input, Report& report) {
  if (!input.script || !input.batch.empty()) return;
  for (const auto& program : input.script->programs) {
    const auto& words = program.words;
    if (program_name(words[0]) != "sbatch" || program.span.file != input.script->file) continue;
    const bool depends =
        std::ranges::any_of(words, [](const auto& word) { return word.contains("afterok:"); });
    const bool ends = std::ranges::any_of(
        words, [](const auto& word) { return word.starts_with("--kill-on-invalid-dep"); });
    if (!depends || ends) continue;
    return report.note(program.span,
                       {"if the job that this one waits for fails, this one stays pending forever",
                        "its reason is then DependencyNeverSatisfied, until somebody cancels it, unless "
                        "slurm.conf has kill_invalid_depend",
                        "sbatch --kill-on-invalid-dep=yes, or afterany and a test of what it needs", ""});
  }
}

const Registered<Rule> stays_pending_rule{{
    .order = 499,
    .name = "stays-pending",
    .title = "a job that can never start, and stays in the queue",
    .explain = "afterok is satisfied only if the other job exits with 0.",
    .source = "sbatch(1), --dependency, --kill-on-invalid-dep; slurm.conf(5), DependencyParameters",
    .check = check_stays_pending,
}};

void check_submission_unseen(const LintInput& input, Report& report) {
  if (!input.script || !input.script->failed_submission || !input.batch.empty()) return;
  const auto& one = *input.script->failed_submission;
  if (one.next != 0 || one.exit_code != 0) return;
  report.note(one.span, {"if this sbatch fails, the script still exits with 0",
                         "whatever starts the script takes the failure for a success, and a job is missing",
                         "sbatch … || exit 1", ""});
}

const Registered<Rule> submission_unseen_rule{{
    .order = 505,
    .name = "submission-unseen",
    .title = "a job that could not be submitted, and a script that exits with 0",
    .explain = "bash ran the script again, and the first sbatch failed.",
    .source = "bash(1), EXIT STATUS",
    .check = check_submission_unseen,
}};

/// The index of the script among the words of an sbatch; its size if there is none.
std::size_t script_of(const shell::Words& words) {
  std::vector<StepOption> options;
  const auto rest = shell::Words(words.begin() + 1, words.end());
  return read_options(rest, {}, options, nullptr) + 1;
}

void check_what_sbatch_gets(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const shell::Options kPrograms{"python",    "python3", "torchrun", "accelerate",
                                        "deepspeed", "mpirun",  "vllm",     "uv"};
  for (const auto& program : input.script->programs) {
    const auto& words = program.words;
    if (program_name(words[0]) != "sbatch" || program.span.file != input.script->file) continue;
    const auto at = script_of(words);
    if (at >= words.size()) continue;
    const auto name = program_name(words[at]);
    if (words[at] == name && kPrograms.contains(name))
      return report.error(program.span,
                          {fmt::format("sbatch takes {} for the batch script", text::printable(name)),
                           "sbatch copies its first argument and rejects what does not begin with #!",
                           fmt::format("srun {} …, or sbatch --wrap '{} …'", name, name), ""});
    const auto late = std::find_if(
        words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end(), [](const std::string& word) {
          static const shell::Options kOnlySbatch{"--wait", "--parsable", "--dependency", "--test-only"};
          return kOnlySbatch.contains(word.substr(0, word.find('=')));
        });
    if (late == words.end()) continue;
    return report.warning(
        program.span,
        {fmt::format("{} is an argument of the script here: it is behind its name", text::printable(*late)),
         "sbatch reads its options only in front of the script",
         fmt::format("sbatch {} {}", text::printable(*late), text::printable(words[at])), ""});
  }
}

const Registered<Rule> what_sbatch_gets_rule{{
    .order = 506,
    .name = "sbatch-arguments",
    .title = "an option behind the script, or no script",
    .explain = "sbatch [OPTIONS] SCRIPT [ARGUMENTS]: what comes behind the script's name is its own.",
    .source = "sbatch(1), SYNOPSIS",
    .check = check_what_sbatch_gets,
}};

}  // namespace
}  // namespace nlaunch::lint
