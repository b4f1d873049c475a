#include "shell/words.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "shell/trace.h"

namespace nlaunch::shell {
namespace {

TEST(BehindRunners, IsTheProgramThatTheyStart) {
  const auto behind = [](const std::string& line) {
    const auto words = words_of(line);
    const auto at = behind_runners(words);
    return at < words.size() ? words[at] : "";
  };
  EXPECT_EQ(behind("uv run --no-sync torchrun a.py"), "torchrun");
  EXPECT_EQ(behind("uv run --extra vllm --with trl python a.py"), "python");
  EXPECT_EQ(behind("/opt/bin/uv run -- a.py"), "a.py");
  EXPECT_EQ(behind("conda run -n grpo --no-capture-output poetry run a"), "a");
  EXPECT_EQ(behind("python run a.py"), "python");
  EXPECT_EQ(behind("uv pip install a"), "uv");
  EXPECT_EQ(behind("uv run"), "");
}

TEST(ShellCalls, AreGivenAScriptATextOrCommands) {
  const auto script = [](const Words& argv) { return script_of_shell(argv).value_or("-"); };
  EXPECT_EQ(script({"bash", "-x", "job.sh", "-s"}), "job.sh");
  EXPECT_EQ(script({"bash", "-euo", "pipefail", "job.sh"}), "job.sh");
  EXPECT_EQ(script({"bash", "--", "job.sh"}), "job.sh");
  for (const Words& argv :
       {Words{"bash", "-c", "a", "b"}, Words{"bash", "-lc", "a"}, Words{"bash", "-s", "a"}, Words{"bash"}})
    EXPECT_EQ(script(argv), "-") << text::join(argv, " ");
  for (const Words& argv : {Words{"bash"}, Words{"sh", "-s"}, Words{"bash", "-s", "a"},
                            Words{"bash", "-s", "--", "-c"}, Words{"bash", "-eu"}})
    EXPECT_TRUE(reads_commands(argv)) << text::join(argv, " ");
  for (const Words& argv : {Words{"bash", "run.sh", "-s", "3"}, Words{"bash", "-c", "a"}, Words{"python"}})
    EXPECT_FALSE(reads_commands(argv)) << text::join(argv, " ");
}

TEST(Tail, FollowsAFile) {
  for (const Words& argv : {Words{"tail", "-f", "a"}, Words{"tail", "-fn0", "a"}, Words{"tail", "-100f", "a"},
                            Words{"tail", "--follow=name", "a"}})
    EXPECT_TRUE(follows_file(argv) && waits_forever(argv)) << text::join(argv, " ");
  for (const Words& argv : {Words{"tail", "-n", "5", "a"}, Words{"tail", "a-f"}, Words{"cat", "-f"}})
    EXPECT_FALSE(follows_file(argv) || waits_forever(argv)) << text::join(argv, " ");
  EXPECT_FALSE(waits_forever({"tail", "--pid=7", "-f", "a"}));
  EXPECT_TRUE(waits_forever({"sleep", "infinity"}));
}

}  // namespace
}  // namespace nlaunch::shell
