#include "supervise/run_attempt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include "unit/supervise/folder.h"

namespace nlaunch::supervise {
namespace {

namespace fs = std::filesystem;

TEST(AttemptFolder, HasTheNumber) {
  EXPECT_EQ(attempt_folder("/run", 0), "/run/attempt-0");
  EXPECT_EQ(attempt_folder("/run", 12), "/run/attempt-12");
}

TEST(RunAttempt, StartsTheProcessesAndSaysHowItWent) {
  const Folder made;
  const auto& folder = made.path();
  plan::Plan plan;
  plan.roles.emplace_back().name = "learner";
  plan.roles[0].ends_run = true;
  plan.roles[0].count = 1;
  plan.processes.emplace_back();
  plan.stages = {{0}};
  plan::BoundNode node;
  auto& process = node.processes.emplace_back();
  process.name = "learner.0";
  process.argv = {"/bin/sh", "-c", "echo loss nan; exit 3"};
  process.env = {{"PATH", "/usr/bin:/bin"}};
  process.workdir = folder.string();
  sys::become_subreaper();
  for (const bool quiet : {true, false}) {
    auto shown = sys::make_pipe();
    ASSERT_TRUE(shown);
    EventLog events;
    const GuardianLink guardian;
    std::optional<RunTerminal> terminal;
    if (!quiet) terminal.emplace(shown->write.get(), shown->write.get());
    const auto outcome = run_attempt(
        {plan, node, folder, 2, events, guardian, terminal ? &*terminal : nullptr, Color::never, {}, {}});
    terminal.reset();  // it opens the pipe again, which has no end before
    EXPECT_EQ(exit_code(outcome), 3);
    EXPECT_EQ(outcome.last_lines.back(), "loss nan");
    shown->write.reset();
    std::string text(1000, ' ');
    const auto got = ::read(shown->read.get(), text.data(), text.size());
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    EXPECT_EQ(text.contains("learner.0 │ loss nan\n"), !quiet) << text;
  }
  EXPECT_TRUE(fs::is_regular_file(folder / "attempt-2" / "logs" / "learner.0.log"));
}

}  // namespace
}  // namespace nlaunch::supervise
