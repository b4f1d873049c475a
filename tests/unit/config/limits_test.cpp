// Inputs that would take a naive reader's time or memory, each read by a child of its own with a limit on
// both.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>

#include "unit/config/support.h"

namespace nlaunch::config {
namespace {

using Limits = Folder;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // a sanitizer reserves terabytes of addresses
#else
constexpr bool kSanitized = false;
#endif
constexpr rlim_t kMemory = 1U << 29U;
constexpr unsigned kSeconds = 30;

std::string repeat(std::string_view text, std::size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += text;
  return out;
}

/// What a child with little memory and little time says about the file; how the child ended, when it did
/// badly.
std::string said_within_limits(const std::string& path) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit memory{kMemory, kMemory};
    if (!kSanitized) ::setrlimit(RLIMIT_AS, &memory);
    ::alarm(kSeconds);
    const auto result = load_experiment(path, {}, {});
    const auto text = result ? "no error\n" : render(result.error());
    const auto head = text.substr(0, text.find('\n'));
    ::_exit(::write(ends[1], head.data(), head.size()) == static_cast<ssize_t>(head.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text(4096, '\0');
  const auto got = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) return "the child ended with status " + std::to_string(status);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

TEST_F(Limits, RefusesAHugeFileUnread) {
  const auto path = write("big.yaml", "version: 1\n");
  std::filesystem::resize_file(path, 100'000'000);
  EXPECT_EQ(said_within_limits(path),
            path + ": error: the file has 100000000 bytes; at most 1048576 are allowed [file.size]");
}

TEST_F(Limits, DoesNotWaitForAFifo) {
  const auto path = folder() + "/fifo.yaml";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(said_within_limits(path), "error: '" + path + "' is a FIFO, not a file [file.kind]");
}

TEST_F(Limits, RefusesWhatIsNoFile) {
  EXPECT_EQ(said_within_limits(folder()), "error: '" + folder() + "' is a directory, not a file [file.kind]");
  EXPECT_EQ(said_within_limits("/dev/zero"), "error: '/dev/zero' is a device, not a file [file.kind]");
  EXPECT_EQ(said_within_limits("/nowhere/a.yaml"),
            "error: cannot open '/nowhere/a.yaml': No such file or directory [file.open]");
}

TEST_F(Limits, StopsAnAliasBomb) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    bomb += fmt::format("a{0}: &a{0} [{1}]\n", i, repeat(fmt::format("*a{}, ", i - 1), 60));
  }
  EXPECT_NE(said_within_limits(write("bomb.yaml", bomb)).find("more than 50000 values"), std::string::npos);
}

TEST_F(Limits, StopsDeepNesting) {
  for (const auto* text : {"[", "{", "{a: ", "- ", "? ", "x: [", "[a, "}) {
    const auto said = said_within_limits(write("deep.yaml", repeat(text, 1'000'000)));
    EXPECT_NE(said.find("nested more than 64 levels deep [config.too-deep]"), std::string::npos)
        << text << said;
  }
}

TEST_F(Limits, SurvivesAMegabyteOfAnything) {
  for (const auto* text : {"a: ", "'", "\"", "*a ", "&a ", "!a ", "|\n", "[]",     ": ", "%A\n", "---\n",
                           "#\n", " ", "\n", "a\n", "-\n", ",",   "é",   "a: b\n", "${", "\t"}) {
    const auto said = said_within_limits(write("much.yaml", repeat(text, 1'000'000)));
    EXPECT_NE(said.find(" error: "), std::string::npos) << text << said;
  }
}

TEST_F(Limits, KeepsTheFirstOfManyMistakes) {
  std::string many = "version: 1\nname: a\nroles: {";
  for (int i = 0; i < 250; ++i) many += fmt::format("r{}: {{kind: engine, spawned_by: x{}, gpu: 1}}, ", i, i);
  const auto result = load_experiment(write("many.yaml", many + "}\n"), {}, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().items().size(), 51U);
  EXPECT_EQ(result.error().items().back().message, "450 more errors are not shown");
}

TEST_F(Limits, BoundsRegularExpressions) {
  const auto pattern = repeat("(", 499) + repeat(")", 499);
  const auto path = write("regex.yaml", with_role("watch: {progress: '" + pattern + "'}\n"));
  EXPECT_EQ(said_within_limits(path), "no error");
}

}  // namespace
}  // namespace nlaunch::config
