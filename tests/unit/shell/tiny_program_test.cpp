#include "shell/tiny_program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "sys/command.h"
#include "sys/files.h"

namespace nlaunch::shell {
namespace {

class TinyProgram : public testing::Test {
 protected:
  ~TinyProgram() override { std::filesystem::remove(path_); }
  /// What it prints, and then "exited with code N".
  std::string run(std::string_view text, int code) {
    EXPECT_TRUE(sys::write_file_atomically(path_, tiny_program(text, code), 0755));
    sys::SpawnRequest request;
    request.argv = {path_.string()};
    const auto done = sys::run_command(std::move(request), std::chrono::seconds(10));
    return done ? done->out + done->status.str() : done.error().first_message();
  }
  std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("tiny-program-{}", ::getpid());
};

TEST_F(TinyProgram, PrintsItsTextAndExitsWithItsCode) {
  if (kOwnMachine == EM_NONE) GTEST_SKIP() << "only for x86-64 and AArch64";
  EXPECT_EQ(run("", 0), "exited with code 0");
  EXPECT_EQ(run("", 1), "exited with code 1");
  EXPECT_EQ(run("200", 127), "200exited with code 127");
  EXPECT_EQ(run("it's $HOME \\n %s\n", 255), "it's $HOME \\n %s\nexited with code 255");
  const std::string long_text(70'000, 'x');
  EXPECT_EQ(run(long_text, 2), long_text + "exited with code 2");
}

TEST(TinyProgramFor, TheMachinesOfClusters) {
  const auto code_of = [](Elf64_Half machine) {
    std::string hex;
    constexpr std::size_t kHeaders = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
    for (const char byte : tiny_program("ok", 3, machine).substr(kHeaders))
      hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return hex;
  };
  EXPECT_EQ(code_of(EM_X86_64),
            "b801000000bf01000000488d3513000000ba020000000f05b83c000000bf030000000f056f6b");
  EXPECT_EQ(code_of(EM_AARCH64),
            "200080d201010010420080d20200a0f2080880d2010000d4600080d2a80b80d2010000d46f6b");
  EXPECT_EQ(tiny_program("ok", 3, EM_RISCV), "");
}

}  // namespace
}  // namespace nlaunch::shell
