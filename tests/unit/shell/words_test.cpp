#include "shell/words.h"

#include <gtest/gtest.h>

namespace nlaunch::shell {
namespace {

TEST(BehindRunners, IsTheProgramThatTheyStart) {
  const auto behind = [](const std::string& line) {
    Words words;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= line.size(); ++i) {
      if (i < line.size() && line[i] != ' ') continue;
      words.push_back(line.substr(begin, i - begin));
      begin = i + 1;
    }
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
