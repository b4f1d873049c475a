#include "emit/slurm_script.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "emit/slurm_template.h"

namespace nlaunch::emit {
namespace {

plan::Plan a_plan() {
  plan::Plan plan;
  plan.name = "grpo";
  plan.experiment = "/home/me/grpo.yaml";
  plan.site = "big";
  plan.scheduler = "slurm";
  plan.node.count = 2;
  return plan;
}

SlurmJob a_job() {
  return {"/opt/bin/nlaunch", "/runs/grpo/plans/1.json", "/runs/grpo/slurm-%j.log", {"--runs-dir", "/runs"}};
}

Template a_template(std::string text) {
  return read_slurm_template(std::make_shared<const SourceFile>(SourceFile{"t", std::move(text)})).value();
}

std::string script(const plan::Plan& plan, const SlurmJob& job = a_job()) {
  const auto made = slurm_script(plan, job, a_template("#!/bin/bash\n{{DIRECTIVES}}\nexec {{COMMAND}}\n"));
  return made ? *made : render(made.error());
}

TEST(BorrowingScript, IsAJobOfOneNodeWhoseStepHasItsAgent) {
  const plan::SlurmComponent pool{{"rollout"}, 1, 0, {{"partition", "preempt", ""}, {"qos", "low", ""}}};
  const BorrowingJob job{"/opt/my bin/nlaunch", "/runs/grpo/1/plan.json", "/runs/grpo/1/attempt-0/step.json",
                         "/runs/grpo/1/attempt-0/borrowed-%j.log"};
  const auto from = a_template("#!/bin/bash\n# {{PLAN}}\n{{DIRECTIVES}}\nexec {{COMMAND}}\n");
  EXPECT_EQ(
      borrowing_script(a_plan(), pool, job, from).value(),
      "#!/bin/bash\n"
      "# /runs/grpo/1/plan.json\n"
      "#SBATCH --job-name=grpo-rollout\n"
      "#SBATCH --nodes=1\n"
      "#SBATCH --ntasks-per-node=1\n"
      "#SBATCH --output=/runs/grpo/1/attempt-0/borrowed-%j.log\n"
      "#SBATCH --open-mode=append\n"
      "#SBATCH --no-requeue\n"
      "#SBATCH --partition=preempt\n"
      "#SBATCH --qos=low\n"
      "exec '/opt/my bin/nlaunch' agent --step /runs/grpo/1/attempt-0/step.json --by-srun --node \"$1\"\n");
}

TEST(BorrowingScript, RefusesWhatSbatchCouldNotBeTold) {
  const plan::SlurmComponent pool{{"rollout"}, 1, 0, {{"comment", "two\nlines", "grpo.yaml:4:5"}}};
  const auto made = borrowing_script(a_plan(), pool, {"/n", "/p", "/s", "/o"},
                                     a_template("#!/bin/bash\n{{DIRECTIVES}}\nexec {{COMMAND}}\n"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().first_message(), "'--comment=two\nlines' cannot be used in an #SBATCH line");
}

/// The line of a directive, or all that is said where there is no script.
std::string directive(const plan::Directive& option) {
  auto plan = a_plan();
  plan.slurm.directives = {option};
  const auto text = script(plan);
  if (!text.starts_with("#!")) return text;
  const auto start =
      text.find("append\n#SBATCH --no-requeue\n") + std::string_view("append\n#SBATCH --no-requeue\n").size();
  return text.substr(start, text.find("\nexec ") - start);
}

TEST(SlurmScript, SaysWhatThePlanSays) {
  auto plan = a_plan();
  plan.slurm.directives = {{"partition", "workq", ""}, {"exclusive", "", ""}, {"time", "24:00:00", ""}};
  EXPECT_EQ(script(plan),
            "#!/bin/bash\n"
            "#SBATCH --job-name=grpo\n"
            "#SBATCH --nodes=2\n"
            "#SBATCH --ntasks-per-node=1\n"
            "#SBATCH --output=/runs/grpo/slurm-%j.log\n"
            "#SBATCH --open-mode=append\n"
            "#SBATCH --no-requeue\n"
            "#SBATCH --partition=workq\n"
            "#SBATCH --exclusive\n"
            "#SBATCH --time=24:00:00\n"
            "exec /opt/bin/nlaunch run --plan /runs/grpo/plans/1.json --runs-dir /runs\n");
}

TEST(SlurmScript, OfSeveralComponentsHasTheDirectivesOfEach) {
  auto plan = a_plan();
  plan.restart.on_failure = true;
  plan.walltime = Walltime{15, std::chrono::minutes(5), Walltime::Then::requeue};
  plan.slurm.components = {{{"train"}, 4, 1, {{"partition", "gpu", ""}, {"gpus-per-node", "4", ""}}},
                           {{"cpu", "env"}, 2, 0, {{"partition", "cpu", ""}, {"job-name", "mine", ""}}}};
  EXPECT_EQ(script(plan),
            "#!/bin/bash\n"
            "# pool train\n"
            "#SBATCH --job-name=grpo\n"
            "#SBATCH --nodes=5\n"
            "#SBATCH --ntasks-per-node=1\n"
            "#SBATCH --output=/runs/grpo/slurm-%j.log\n"
            "#SBATCH --open-mode=append\n"
            "#SBATCH --no-kill\n"
            "#SBATCH --requeue\n"
            "#SBATCH --signal=B:USR2@300\n"
            "#SBATCH --partition=gpu\n"
            "#SBATCH --gpus-per-node=4\n"
            "#SBATCH hetjob\n"
            "# pools cpu, env\n"
            "#SBATCH --nodes=2\n"
            "#SBATCH --ntasks-per-node=1\n"
            "#SBATCH --requeue\n"
            "#SBATCH --partition=cpu\n"
            "#SBATCH --job-name=mine\n"
            "exec /opt/bin/nlaunch run --plan /runs/grpo/plans/1.json --runs-dir /runs\n");
}

TEST(SlurmScript, ThePlansOwnNameAndLogWin) {
  auto plan = a_plan();
  plan.slurm.directives = {{"output", "/logs/%u/%x-%j.log", ""}, {"job-name", "mine", ""}};
  const auto text = script(plan);
  EXPECT_TRUE(text.contains("#SBATCH --output=/logs/%u/%x-%j.log\n#SBATCH --job-name=mine\n"));
  EXPECT_FALSE(text.contains("slurm-%j.log"));
  EXPECT_FALSE(text.contains("--job-name=grpo"));
}

TEST(SlurmScript, TheWalltimeRuleAsksForASignal) {
  auto plan = a_plan();
  const auto lines = [&](Walltime::Then then, Duration before) {
    plan.walltime = Walltime{15, before, then};
    const auto text = script(plan);
    const auto start = text.find("append\n") + 7;
    return text.starts_with("#!") ? text.substr(start, text.find("\nexec ") - start) : text;
  };
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  EXPECT_EQ(lines(Walltime::Then::stop, seconds(600)), "#SBATCH --no-requeue\n#SBATCH --signal=B:USR2@600");
  EXPECT_EQ(lines(Walltime::Then::chain, milliseconds(1)), "#SBATCH --no-requeue\n#SBATCH --signal=B:USR2@1");
  EXPECT_EQ(lines(Walltime::Then::requeue, milliseconds(90001)),
            "#SBATCH --requeue\n#SBATCH --signal=B:USR2@91");
  EXPECT_EQ(lines(Walltime::Then::stop, seconds(65535)),
            "#SBATCH --no-requeue\n#SBATCH --signal=B:USR2@65535");
  EXPECT_EQ(lines(Walltime::Then::stop, seconds(65536)),
            "error: `walltime: {before: 18h12m16s}` exceeds Slurm's limit of 18h12m15s [emit.slurm-value]\n");
}

TEST(SlurmScript, EveryDirectiveIsOneWordForSbatch) {
  EXPECT_EQ(directive({"constraint", "[rack1*2&rack2*4]", ""}), "#SBATCH --constraint=[rack1*2&rack2*4]");
  EXPECT_EQ(directive({"comment", "two words", ""}), "#SBATCH \"--comment=two words\"");
  EXPECT_EQ(directive({"comment", "a#b", ""}), "#SBATCH \"--comment=a#b\"");
  EXPECT_EQ(directive({"comment", R"(it's "a" \)", ""}), R"(#SBATCH "--comment=it's \"a\" \\")");
  EXPECT_EQ(directive({"comment", "x --wrap=rm $(id) `id`", ""}),
            "#SBATCH \"--comment=x --wrap=rm $(id) `id`\"");
  EXPECT_EQ(directive({"job-namé", "ü", ""}), "#SBATCH --job-namé=ü");
  EXPECT_EQ(directive({"x --wrap", "y", ""}), "#SBATCH \"--x --wrap=y\"");
}

TEST(SlurmScript, WhatSbatchCannotBeToldIsRefused) {
  constexpr std::string_view kHint =
      "hint: line breaks, other control characters and invalid UTF-8 are not allowed there\n";
  EXPECT_EQ(directive({"comment", "a\n#SBATCH --wrap=b", ""}),
            "error: '--comment=a\\n#SBATCH --wrap=b' cannot be used in an #SBATCH line [emit.slurm-value]\n" +
                std::string(kHint));
  EXPECT_EQ(directive({"comment", "a\xff", ""}),
            "error: '--comment=a\\xff' cannot be used in an #SBATCH line [emit.slurm-value]\n" +
                std::string(kHint));
  EXPECT_TRUE(directive({"x\nrm -rf /", "", ""}).contains("[emit.slurm-value]"));
  auto plan = a_plan();
  plan.name = "a\nb";
  EXPECT_EQ(script(plan), "error: '--job-name=a\\nb' cannot be used in an #SBATCH line [emit.slurm-value]\n" +
                              std::string(kHint));
  auto job = a_job();
  job.output = "/runs\\j/slurm-%j.log";
  EXPECT_EQ(script(a_plan(), job),
            "error: Slurm cannot write its log to '/runs\\j/slurm-%j.log' [emit.slurm-value]\n"
            "hint: Slurm treats a backslash in the path as an escape character: use another --runs-dir\n");
}

TEST(SlurmScript, NothingInAPathBecomesShell) {
  auto plan = a_plan();
  plan.name = "-n";
  plan.experiment = "/a\nrm -rf /\n#SBATCH --wrap=x/$(id)`id`/\xff.yaml";
  plan.site = "#SBATCH --nodes=7";
  auto job = a_job();
  job.nlaunch = "/it's \"$(id)\" `id`\n/nlaunch";
  job.arguments = {"-x", "", "a b", "$HOME", "~", "{a,b}", "*", "\\", "!", "#", "&&", "é", "\x01"};
  const auto made = slurm_script(
      plan, job,
      a_template("#!/bin/bash\n# {{NAME}} {{SITE}} {{EXPERIMENT}}\n{{DIRECTIVES}}\nexec {{COMMAND}}\n"));
  ASSERT_TRUE(made) << render(made.error());
  EXPECT_TRUE(made->starts_with(
      "#!/bin/bash\n"
      "# -n '#SBATCH --nodes=7' $'/a\\012rm -rf /\\012#SBATCH --wrap=x/$(id)`id`/\\377.yaml'\n"
      "#SBATCH --job-name=-n\n"))
      << *made;
  EXPECT_TRUE(made->ends_with(
      "\nexec $'/it\\'s \"$(id)\" `id`\\012/nlaunch' run --plan /runs/grpo/plans/1.json -x '' "
      "'a b' '$HOME' '~' '{a,b}' '*' '\\' '!' '#' '&&' 'é' $'\\001'\n"))
      << *made;
}

TEST(SlurmScript, PercentSignsOfAFolderAreNoPatterns) {
  EXPECT_EQ(slurm_path("/100%/%j"), "/100%%/%%j");
}

}  // namespace
}  // namespace nlaunch::emit
