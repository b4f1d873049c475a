#include "supervise/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "unit/run_until.h"
#include "unit/supervise/folder.h"

namespace nlaunch::supervise {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

class OutputTest : public ::testing::Test {
 protected:
  OutputTest() { masker.add("hunter2"); }

  Output::Options options() {
    Output::Options options{.folder = folder, .masker = masker, .trouble = {}};
    options.trouble = [this](const std::string& sentence) { said.push_back(sentence); };
    return options;
  }
  [[nodiscard]] std::string log(const std::string& name) const {
    std::ostringstream all;
    all << std::ifstream(folder / (name + ".log")).rdbuf();
    return all.str();
  }
  void expect_log(const std::string& name, const std::string& text) {
    run_until(loop, [&] { return log(name) == text; });
  }
  static void write(const sys::UniqueFd& pipe, std::string_view text) {
    ASSERT_TRUE(sys::write_all(pipe.get(), text));
  }
  /// A process that writes this and ends before the loop has its turn.
  static void pass(Output& output, std::size_t index, std::string_view text) {
    auto pipe = output.open(index);
    ASSERT_TRUE(pipe);
    write(*pipe, text);
    output.close(index);
  }

  Folder made;
  fs::path folder = made.path();
  Masker masker;
  sys::Loop loop;
  Lines said;
};

TEST_F(OutputTest, EachProcessHasALogWithItsBytes) {
  Output output(loop, options(), {"learner.0", "engine.0"});
  EXPECT_EQ(output.log_path(1), folder / "engine.0.log");
  auto learner = output.open(0);
  auto engine = output.open(1);
  ASSERT_TRUE(learner && engine);
  write(*learner, "\x1b[31mone\r\xff\nend");
  write(*engine, "served\n");
  expect_log("learner.0", "\x1b[31mone\r\xff\nend");
  expect_log("engine.0", "served\n");
  write(*learner, "ing\n");
  expect_log("learner.0", "\x1b[31mone\r\xff\nending\n");
  EXPECT_EQ(output.last_lines(0, 9), (Lines{"\\xff", "ending"}));
  EXPECT_EQ(output.last_lines(1, 9), Lines{"served"});
  EXPECT_EQ(output.lost_bytes(), 0U);
  output.check();
  EXPECT_EQ(said, Lines{});
}

TEST_F(OutputTest, AFullBlockIsNotTheEnd) {
  Output output(loop, options(), {"a.0"});
  auto pipe = output.open(0);
  ASSERT_TRUE(pipe);
  // A block of 128 KiB, and what stands behind it.
  const std::string block(128U << 10U, 'x');
  write(*pipe, block);
  expect_log("a.0", block);
  write(*pipe, "y");
  expect_log("a.0", block + "y");
}

TEST_F(OutputTest, AtTheEndOfTheStreamAllIsShown) {
  auto shown = sys::make_pipe();
  ASSERT_TRUE(shown);
  Terminal terminal(shown->write.get());
  auto with_terminal = options();
  with_terminal.terminal = &terminal;
  std::vector<std::pair<std::size_t, std::string>> tapped;
  with_terminal.tap = [&](std::size_t index, std::string_view bytes) { tapped.emplace_back(index, bytes); };
  Output output(loop, std::move(with_terminal), {"learner.0", "a.0"});
  {
    auto pipe = output.open(1);
    ASSERT_TRUE(pipe);
    write(*pipe, "one hunter2\nhun");
    expect_log("a.0", "one ***\n");
  }
  expect_log("a.0", "one ***\nhun");
  EXPECT_EQ(output.last_lines(1, 9), (Lines{"one ***", "hun"}));
  EXPECT_EQ(tapped, (std::vector<std::pair<std::size_t, std::string>>{{1, "one ***\n"}}));
  ASSERT_TRUE(terminal.flush(5s));
  std::string text(200, ' ');
  text.resize(static_cast<std::size_t>(::read(shown->read.get(), text.data(), text.size())));
  EXPECT_EQ(text, "a.0       │ one ***\na.0       │ hun\n");
}

TEST_F(OutputTest, NamesAreAsWideAndColouredAsIsAskedFor) {
  const auto shown_with = [&](Color color, std::size_t width) {
    auto shown = sys::make_pipe();
    Terminal terminal(shown->write.get());
    auto with_terminal = options();
    with_terminal.terminal = &terminal;
    with_terminal.color = color;
    with_terminal.name_width = width;
    Output output(loop, std::move(with_terminal), {"a.0", "bb.0"});
    pass(output, 1, "text\n");
    EXPECT_TRUE(terminal.flush(5s));
    std::string text(200, ' ');
    text.resize(static_cast<std::size_t>(::read(shown->read.get(), text.data(), text.size())));
    return text;
  };
  EXPECT_EQ(shown_with(Color::never, 0), "bb.0 │ text\n");
  EXPECT_EQ(shown_with(Color::never, 6), "bb.0   │ text\n");
  EXPECT_EQ(shown_with(Color::never, 1), "bb.0 │ text\n");
  EXPECT_EQ(shown_with(Color::always, 0), "\x1b[33mbb.0 │\x1b[0m text\n");
}

TEST_F(OutputTest, LinesOnTheTerminalAreCounted) {
  // Nobody reads, and there is room for none: what is skipped was given.
  auto shown = sys::make_pipe();
  ASSERT_TRUE(shown);
  Terminal terminal(shown->write.get(), 1);
  auto with_terminal = options();
  with_terminal.terminal = &terminal;
  Output output(loop, std::move(with_terminal), {"a.0"});
  pass(output, 0, "one\ntwo\nthree");
  EXPECT_EQ(terminal.skipped().lines, 3U);
}

TEST_F(OutputTest, WhoeverHoldsThePipeItIsReadAndClosed) {
  Output output(loop, options(), {"a.0"});
  for (const std::string text : {"x", "last words\n", ""}) {
    fs::resize_file(folder / "a.0.log", 0);
    auto pipe = output.open(0);
    ASSERT_TRUE(pipe);
    write(*pipe, text);
    output.close(0);
    EXPECT_EQ(log("a.0"), text);
    pollfd writer{pipe->get(), POLLOUT, 0};
    EXPECT_EQ(::poll(&writer, 1, 0), 1);
    EXPECT_NE(writer.revents & POLLERR, 0) << "nobody reads any more";
    output.close(0);
  }
}

TEST_F(OutputTest, ARestartedProcessGoesOnInTheSameLog) {
  Output output(loop, options(), {"a.0"});
  auto before = output.open(0);
  ASSERT_TRUE(before);
  write(*before, "before\n");
  auto after = output.open(0);
  ASSERT_TRUE(after);
  write(*after, "after\n");
  expect_log("a.0", "before\nafter\n");
}

TEST_F(OutputTest, TheLastLinesAreThoseOfTheLastEightKibibytesAtLeast) {
  Output output(loop, options(), {"a.0"});
  Lines all;
  for (int block = 0; block < 60; ++block) {
    std::string text;
    for (int i = 0; i < 8; ++i) {
      all.push_back(fmt::format("{:0127}", 8 * block + i));
      text += all.back() + "\n";
    }
    pass(output, 0, text);
    const auto last = output.last_lines(0, 1000);
    EXPECT_GE(last.size(), std::min<std::size_t>(all.size(), 64)) << "block " << block;
    EXPECT_LE(last.size(), 128U) << "twice what is kept";
    EXPECT_EQ(last, Lines(all.end() - static_cast<std::ptrdiff_t>(last.size()), all.end()));
  }
  EXPECT_EQ(output.last_lines(0, 3), Lines(all.end() - 3, all.end()));
  EXPECT_EQ(output.last_lines(0, 0), Lines{});
}

TEST_F(OutputTest, OfALargeBlockTheEndIsKept) {
  Output output(loop, options(), {"a.0"});
  pass(output, 0, "before\n");
  std::string text;
  for (int i = 0; i < 1000; ++i) text += fmt::format("{:015}\n", i);
  pass(output, 0, text);
  const auto last = output.last_lines(0, 10000);
  ASSERT_EQ(last.size(), 512U);
  EXPECT_EQ(last.front(), "000000000000488");
  EXPECT_EQ(last.back(), "000000000000999");
  pass(output, 0, "after\n");
  EXPECT_EQ(output.last_lines(0, 2), (Lines{"000000000000999", "after"}));
}

TEST_F(OutputTest, FilesThatCannotBeWrittenAreSaidOnceAndCountedTogether) {
  auto elsewhere = options();
  elsewhere.folder = folder / "no";
  Output output(loop, std::move(elsewhere), {"a.0", "b.0"});
  EXPECT_EQ(said, Lines{"cannot write '" + (folder / "no" / "a.0.log").string() +
                        "': No such file or directory; the run continues"});
  pass(output, 0, "12345");
  pass(output, 1, "678");
  EXPECT_EQ(output.lost_bytes(), 8U);
  EXPECT_EQ(output.last_lines(1, 1), Lines{"678"});
  auto silent = options();
  silent.folder = folder / "no";
  silent.trouble = nullptr;
  Output(loop, std::move(silent), {"a.0"}).check();
  EXPECT_EQ(said.size(), 1U);
}

TEST_F(OutputTest, ARemovedLogIsNoticed) {
  Output output(loop, options(), {"a.0", "b.0"});
  fs::remove(folder / "b.0.log");
  output.check();
  EXPECT_EQ(said, Lines{"cannot write '" + (folder / "b.0.log").string() +
                        "': the file was removed; the run continues"});
}

TEST_F(OutputTest, LinesAreWatchedUntilTheOneThatWasWaitedFor) {
  Output output(loop, options(), {"a.0", "b.0"});
  Lines seen;
  const auto until_ready = [&](std::string_view line) {
    seen.emplace_back(line);
    return line == "ready";
  };
  output.watch_lines(0, until_ready);
  pass(output, 0, "one\nhunter2 tw");
  pass(output, 1, "not watched\n");
  EXPECT_EQ(seen, Lines{"one"});
  pass(output, 0, "o\nready\nready\n");
  EXPECT_EQ(seen, (Lines{"one", "*** two", "ready"}));
  pass(output, 0, "ready\nhalf");
  EXPECT_EQ(seen.size(), 3U);
  output.watch_lines(0, until_ready);
  pass(output, 0, "of a new one\n");
  EXPECT_EQ(seen.back(), "of a new one");
}

TEST_F(OutputTest, WhoWatchesMayHaveItselfTakenAway) {
  Output output(loop, options(), {"a.0"});
  int called = 0;
  output.watch_lines(0, [&](std::string_view) {
    output.watch_lines(0, nullptr);
    return ++called > 0;
  });
  pass(output, 0, "one\ntwo\n");
  EXPECT_EQ(called, 1);
}

TEST_F(OutputTest, PipesAreSmallerWhereThereAreMany) {
  const auto probe = sys::make_pipe(256 << 10);
  ASSERT_TRUE(probe);
  if (::fcntl(probe->write.get(), F_GETPIPE_SZ) != 256 << 10) GTEST_SKIP() << "the user's pipes are used up";
  const auto capacity_of = [&](std::size_t processes) {
    Lines names;
    for (std::size_t i = 0; i < processes; ++i) names.push_back(fmt::format("a.{}", i));
    Output output(loop, options(), names);
    const auto pipe = output.open(0);
    return pipe ? ::fcntl(pipe->get(), F_GETPIPE_SZ) : 0;
  };
  EXPECT_EQ(capacity_of(1), 256 << 10);
  EXPECT_EQ(capacity_of(64), 256 << 10);
  EXPECT_EQ(capacity_of(65), 64 << 10);
}

}  // namespace
}  // namespace nlaunch::supervise
