#include "shell/words.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace nlaunch::shell
