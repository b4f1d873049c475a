#include "plan/slurm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "plan/described_json.h"

namespace nlaunch::plan {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Directives as a file of these lines would have them, "NAME: VALUE" each.
std::vector<std::pair<config::Text, config::Text>> read(const std::string& file, const Pairs& pairs) {
  std::string text;
  for (const auto& [name, value] : pairs) text += name + ": " + value + "\n";
  const auto source = std::make_shared<const SourceFile>(SourceFile{file, text});
  std::vector<std::pair<config::Text, config::Text>> out;
  std::uint32_t line = 0;
  for (const auto& [name, value] : pairs) {
    const auto width = static_cast<std::uint32_t>(name.size());
    const auto length = static_cast<std::uint32_t>(text::characters(value).size());
    ++line;
    out.push_back({{name, {source, line, 1, width}}, {value, {source, line, width + 3, length}}});
  }
  return out;
}

struct Made {
  Slurm slurm;
  std::string said;
};

Made make(const Pairs& site, const Pairs& experiment) {
  config::Site of_site;
  of_site.directives = read("site.yaml", site);
  config::Experiment of_experiment;
  of_experiment.slurm = read("run.yaml", experiment);
  Diagnostics diagnostics;
  auto slurm = make_slurm(
      of_experiment, of_site, [](const config::Text& text) { return text.value; }, diagnostics);
  return {std::move(slurm), render(diagnostics)};
}

/// "name=value@origin" a directive.
std::string words(const Slurm& slurm) {
  std::string out;
  for (const auto& option : slurm.directives) {
    out += (out.empty() ? "" : " ") + option.name + "=" + option.value + "@" + option.origin;
  }
  return out;
}

TEST(Slurm, ATimeInAnotherFormIsRefusedWithTheRightOne) {
  EXPECT_EQ(make({}, {{"time", "24h"}}).said,
            "run.yaml:1:7: error: '24h' is not a time limit of Slurm [plan.slurm-value]\n"
            "   1 | time: 24h\n"
            "     |       ^^^\n"
            "hint: write \"24:00:00\"\n");
  EXPECT_EQ(make({}, {{"time-min", "soon"}}).said,
            "run.yaml:1:11: error: 'soon' is not a time limit of Slurm [plan.slurm-value]\n"
            "   1 | time-min: soon\n"
            "     |           ^^^^\n"
            "hint: write HOURS:MINUTES:SECONDS in quotes, for example \"24:00:00\", or DAYS-HOURS\n");
}

TEST(Slurm, TheExperimentWinsOverTheSite) {
  const auto made = make({{"partition", "workq"}, {"time", "24:00:00"}, {"exclusive", "true"}},
                         {{"time", "01:00:00"}, {"exclusive", "false"}, {"qos", "low"}});
  EXPECT_EQ(words(made.slurm),
            "partition=workq@site.yaml:1:12 time=01:00:00@run.yaml:1:7 qos=low@run.yaml:3:6");
  EXPECT_EQ(made.said, "");
  EXPECT_EQ(words(make({{"exclusive", "true"}}, {}).slurm), "exclusive=@site.yaml:1:12");
}

TEST(Slurm, WhatNlaunchSetsItselfCannotBeGiven) {
  EXPECT_EQ(make({{"nodes", "4"}}, {{"export", "ALL"}, {"signal", "TERM"}}).said,
            "site.yaml:1:1: error: 'nodes' is set by nlaunch and cannot be set here [plan.slurm-owned]\n"
            "   1 | nodes: 4\n"
            "     | ^^^^^\n"
            "hint: use `nodes:` in the experiment, or --nodes\n"
            "\n"
            "run.yaml:1:1: error: 'export' is set by nlaunch and cannot be set here [plan.slurm-owned]\n"
            "   1 | export: ALL\n"
            "     | ^^^^^^\n"
            "hint: the plan sets the environment of each process: use `env:`\n"
            "\n"
            "run.yaml:2:1: error: 'signal' is set by nlaunch and cannot be set here [plan.slurm-owned]\n"
            "   2 | signal: TERM\n"
            "     | ^^^^^^\n"
            "hint: `walltime: {signal: ..., before: ...}`\n"
            "\n"
            "3 errors\n");
}

TEST(Slurm, ANameIsALongOptionWithoutItsDashes) {
  EXPECT_EQ(make({}, {{"--time", "1"}}).said,
            "run.yaml:1:1: error: '--time' is not an option of sbatch [plan.slurm-option]\n"
            "   1 | --time: 1\n"
            "     | ^^^^^^\n"
            "hint: write the long name without dashes: partition, gpus-per-node, time\n");
  for (const auto* name : {"", "t=1 --wrap", "Time", "-t", "a\nb", "é"}) {
    EXPECT_TRUE(make({}, {{name, "1"}}).said.contains("[plan.slurm-option]")) << name;
  }
}

TEST(Slurm, AnyValueThatSbatchCanBeToldWillDo) {
  const auto made = make({}, {{"comment", R"(it's "two" words # and \ one)"}, {"mail-user", "müller@x.y"}});
  EXPECT_EQ(made.said, "");
  EXPECT_EQ(made.slurm.directives[0].value, R"(it's "two" words # and \ one)");
}

TEST(Slurm, AValueThatCannotStandInADirectiveIsRefused) {
  EXPECT_EQ(make({}, {{"comment", "a\tb"}}).said,
            "run.yaml:1:10: error: 'a\\tb' is not allowed in an #SBATCH line [plan.slurm-value]\n"
            "   1 | comment: a\tb\n"
            "     |          ^^^\n"
            "hint: remove line breaks, other control characters and invalid UTF-8\n");
  for (const auto* value : {"a\n#SBATCH --wrap=b", "a\r", "\x1b[31m", "\xff"}) {
    EXPECT_TRUE(make({}, {{"comment", value}}).said.contains("[plan.slurm-value]")) << value;
  }
}

TEST(Slurm, ADirectiveWithoutAValueWouldTakeTheNextOne) {
  EXPECT_EQ(make({}, {{"comment", ""}}).said,
            "run.yaml:1:10: error: a directive needs a value [plan.slurm-value]\n"
            "   1 | comment: \n"
            "     |          ^\n"
            "hint: `true` makes a flag; leave out the key to omit the line\n");
}

TEST(Slurm, WhatNeedsAValueIsNoFlag) {
  EXPECT_EQ(
      make({{"hold", "true"}}, {{"partition", "true"}}).said,
      "run.yaml:1:12: error: 'partition' needs a value; `true` would make it a flag [plan.slurm-value]\n"
      "   1 | partition: true\n"
      "     |            ^^^^\n"
      "hint: write `partition: VALUE`; `partition: false` removes it\n");
  EXPECT_EQ(
      words(make({{"partition", "workq"}}, {{"partition", "false"}, {"a-flag-of-tomorrow", "true"}}).slurm),
      "a-flag-of-tomorrow=@run.yaml:2:21");
}

TEST(Slurm, VariablesOfTheShellAreNoValues) {
  EXPECT_EQ(
      make({{"output", "$HOME/%j.log"}}, {}).said,
      "site.yaml:1:9: error: '$HOME/%j.log' would not be expanded: no shell reads #SBATCH lines "
      "[plan.slurm-value]\n"
      "   1 | output: $HOME/%j.log\n"
      "     |         ^^^^^^^^^^^^\n"
      "hint: ${env.NAME} is a variable of nlaunch's environment; Slurm expands %j, %u and %x in paths\n");
  EXPECT_TRUE(make({}, {{"comment", "`date`"}}).said.contains("[plan.slurm-value]"));
}

TEST(Slurm, JsonReadsBackTheSame) {
  auto slurm = make({{"partition", "workq"}, {"exclusive", "true"}}, {}).slurm;
  slurm.template_file = "/sites/job.sbatch";
  slurm.srun = {"--network=x"};
  slurm.bad_nodes = "/bad";
  slurm.spares = 2;
  EXPECT_EQ(to_value(value_from<Slurm>(to_value(slurm))), to_value(slurm));
  EXPECT_EQ(
      to_value(slurm).dump(),
      R"({"directives":[{"name":"partition","value":"workq","origin":"site.yaml:1:12"},)"
      R"({"name":"exclusive","value":"","origin":"site.yaml:2:12"}],"submit":["sbatch"],)"
      R"("srun":["--network=x"],"template":"/sites/job.sbatch","spares":2,"bad_nodes":"/bad","bad_nodes_ttl_ms":604800000})");
}

TEST(Slurm, ANameHasLettersDigitsAndDashes) {
  for (const auto* name : {"a", "z", "a0", "z9", "new-option", "a-"})
    EXPECT_EQ(make({}, {{name, "1"}}).said, "") << name;
  for (const auto* name : {"0a", "-", "A", "{", "a{", "a`", "a:", "a/", "a=b", "a b", "aB"})
    EXPECT_TRUE(make({}, {{name, "1"}}).said.contains("[plan.slurm-option]")) << name;
}

TEST(Slurm, ALaterOptionTakesThePlaceOfItsNamesakeAlone) {
  EXPECT_EQ(words(make({{"time", "1"}, {"qos", "low"}, {"time", "2"}}, {{"qos", "high"}}).slurm),
            "time=2@site.yaml:3:7 qos=high@run.yaml:1:6");
  EXPECT_EQ(words(make({{"time", "1"}, {"qos", "low"}}, {{"partition", "false"}}).slurm),
            "time=1@site.yaml:1:7 qos=low@site.yaml:2:6");
  // What is refused leaves the earlier one there.
  EXPECT_EQ(words(make({{"time", "1"}}, {{"time", "$T"}}).slurm), "time=1@site.yaml:1:7");
}

TEST(Slurm, KnowsWhichOptionsNeedAValue) {
  for (const auto* option : {"account", "time", "wckey", "gres"})
    EXPECT_TRUE(sbatch_needs_value(option)) << option;
  for (const auto* option : {"exclusive", "hold", "contiguous", "verbose", "tomorrow", "", "tim"})
    EXPECT_FALSE(sbatch_needs_value(option)) << option;
  const auto all = sbatch_options();
  for (const auto* option : {"account", "wckey", "contiguous", "verbose"})
    EXPECT_EQ(std::ranges::count(all, option), 1) << option;
  EXPECT_EQ(std::ranges::count(all, std::string()), 0);
  EXPECT_EQ(words(make({{"hold", "true"}, {"time", "false"}}, {}).slurm), "hold=@site.yaml:1:7");
}

TEST(Slurm, WhatIsNotSaidHasADefault) {
  config::Site site;
  const config::Experiment experiment;
  const auto resolve = [](const config::Text& text) { return "resolved " + text.value; };
  Diagnostics diagnostics;
  const auto plain = make_slurm(experiment, site, resolve, diagnostics);
  EXPECT_EQ(plain.submit, std::vector<std::string>{"sbatch"});
  EXPECT_EQ(plain.bad_nodes_ttl, std::chrono::days(7));
  EXPECT_TRUE(plain.srun.empty());
  site.submit = {{"a", {}}, {"b", {}}};
  site.srun = {{"--mpi=none", {}}};
  site.bad_nodes_ttl = std::chrono::hours(1);
  const auto given = make_slurm(experiment, site, resolve, diagnostics);
  EXPECT_EQ(given.submit, (std::vector<std::string>{"resolved a", "resolved b"}));
  EXPECT_EQ(given.srun, std::vector<std::string>{"resolved --mpi=none"});
  EXPECT_EQ(given.bad_nodes_ttl, std::chrono::hours(1));
  EXPECT_TRUE(diagnostics.empty());
}

}  // namespace
}  // namespace nlaunch::plan
