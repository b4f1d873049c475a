#include "supervise/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::supervise {
namespace {

using namespace std::chrono_literals;

std::string line(int number, std::size_t size) {
  return fmt::format("{:06} │ {}\n", number, std::string(size, 'z'));
}

std::string read_all(int fd) {
  std::string all;
  std::vector<char> block(1U << 16U);
  for (;;) {
    const auto got = ::read(fd, block.data(), block.size());
    if (got <= 0) return all;
    all.append(block.data(), static_cast<std::size_t>(got));
  }
}

struct Shown {
  std::size_t whole = 0;
  std::vector<std::string> other;  ///< neither a line that was given nor a notice
};

Shown shown_of(const std::string& text, std::size_t size) {
  Shown shown;
  for (const auto& one : text::split(text, '\n')) {
    if (one.empty() || (one.starts_with("nlaunch: ") && one.ends_with("the log files have them"))) continue;
    if (one.size() + 1 == line(0, size).size() && one.ends_with(std::string(size, 'z'))) {
      ++shown.whole;
    } else {
      shown.other.push_back(one);
    }
  }
  return shown;
}

TEST(Terminal, WhatNobodyReadsIsCutBetweenLinesAndCounted) {
  for (const std::size_t size : {7U, 93U, 2000U}) {
    auto pipe = sys::make_pipe(0);
    ASSERT_TRUE(pipe);
    constexpr std::size_t kLines = 5000;
    std::size_t skipped = 0;
    std::size_t bytes = 0;
    {
      Terminal terminal(pipe->write.get(), 256U << 10U);
      for (std::size_t i = 0; i < kLines; ++i) terminal.write(line(static_cast<int>(i), size), 1);
      terminal.finish(50ms);
      skipped = terminal.skipped().lines;
      bytes = terminal.skipped().bytes;
      terminal.write(line(0, size), 1);  // too late
      EXPECT_EQ(terminal.skipped().lines, skipped + 1);
    }
    pipe->write.reset();
    const auto shown = shown_of(read_all(pipe->read.get()), size);
    EXPECT_EQ(bytes, skipped * line(0, size).size());
    EXPECT_GT(shown.whole, 0U);
    EXPECT_GT(skipped, 0U);
    EXPECT_EQ(shown.whole + skipped, kLines);
    EXPECT_EQ(shown.other, std::vector<std::string>{});
  }
}

TEST(Terminal, AReaderThatPausesGetsTheRest) {
  auto pipe = sys::make_pipe(0);
  ASSERT_TRUE(pipe);
  std::string text;
  std::thread reader([&] {
    std::this_thread::sleep_for(300ms);
    text = read_all(pipe->read.get());
  });
  std::size_t skipped = 0;
  {
    Terminal terminal(pipe->write.get());
    for (int i = 0; i < 5000; ++i) terminal.write(line(i, 93), 1);
    terminal.finish(30s);
    skipped = terminal.skipped().lines;
  }
  pipe->write.reset();
  reader.join();
  EXPECT_EQ(skipped, 0U);
  EXPECT_EQ(shown_of(text, 93).whole, 5000U);
}

TEST(Terminal, AllThatIsWrittenComesInOrder) {
  auto pipe = sys::make_pipe(0);
  ASSERT_TRUE(pipe);
  {
    Terminal terminal(pipe->write.get());
    EXPECT_TRUE(terminal.flush(5s)) << "nothing is queued";
    terminal.write("one\n", 1);
    terminal.write("", 0);
    EXPECT_TRUE(terminal.flush(5s));
    terminal.write("two\nthree\n", 2);
    terminal.write("four\n", 1);
    EXPECT_TRUE(terminal.flush(5s));
    EXPECT_EQ(terminal.skipped().lines, 0U);
    EXPECT_EQ(terminal.skipped().bytes, 0U);
    EXPECT_EQ(::fcntl(pipe->write.get(), F_GETFL) & O_NONBLOCK, 0) << "it is the caller's, too";
    terminal.write("last words\n", 1);
  }
  pipe->write.reset();
  EXPECT_EQ(read_all(pipe->read.get()), "one\ntwo\nthree\nfour\nlast words\n");
}

TEST(Terminal, AFooterStaysBelowWhatIsWritten) {
  auto pipe = sys::make_pipe(0);
  ASSERT_TRUE(pipe);
  {
    Terminal terminal(pipe->write.get());
    terminal.set_footer({"step 1", "reward 0"});
    EXPECT_TRUE(terminal.flush(5s));
    terminal.write("one\n", 1);
    EXPECT_TRUE(terminal.flush(5s));
    terminal.set_footer({"step 2"});
    EXPECT_TRUE(terminal.flush(5s));
    EXPECT_EQ(terminal.skipped().lines, 0U);
  }
  pipe->write.reset();
  EXPECT_EQ(read_all(pipe->read.get()),
            "step 1\nreward 0"
            "\r\x1b[1A\x1b[J"
            "one\nstep 1\nreward 0"
            "\r\x1b[1A\x1b[J"
            "step 2"
            "\r\x1b[J");
}

TEST(Terminal, AFooterIsForgottenOnceAnotherProgramHasTheScreen) {
  auto pipe = sys::make_pipe(0);
  ASSERT_TRUE(pipe);
  std::atomic<bool> ours = true;
  {
    Terminal terminal(pipe->write.get());
    terminal.draw_while([&] { return ours.load(); });
    const auto show = [&](const std::string& row) {
      terminal.set_footer({row, "reward 0"});
      EXPECT_TRUE(terminal.flush(5s));
    };
    const auto write = [&](const std::string& text) {
      terminal.write(text, 1);
      EXPECT_TRUE(terminal.flush(5s));
    };
    show("step 1");
    ours = false;
    write("one\n");
    show("step 2");
    write("two\n");
    ours = true;
    show("step 2");
    write("three\n");
    ours = false;
  }
  pipe->write.reset();
  EXPECT_EQ(read_all(pipe->read.get()),
            "step 1\nreward 0"
            "one\ntwo\n"
            "step 2\nreward 0"
            "\r\x1b[1A\x1b[J"
            "three\nstep 2\nreward 0");
}

TEST(Terminal, AFooterOnATerminalThatNobodyReadsHoldsUpNothing) {
  auto pipe = sys::make_pipe(0);
  ASSERT_TRUE(pipe);
  constexpr std::size_t kSize = 2000;
  std::size_t skipped = 0;
  {
    Terminal terminal(pipe->write.get());
    terminal.set_footer({"step 1", "reward 0"});
    for (int i = 0; i < 100; ++i) terminal.write(line(i, kSize), 1);
    terminal.finish(50ms);
    terminal.set_footer({"too late"});
    skipped = terminal.skipped().lines;
  }
  pipe->write.reset();
  const auto text = read_all(pipe->read.get());
  EXPECT_GT(skipped, 0U);
  EXPECT_FALSE(text.contains("too late"));
  EXPECT_LE(static_cast<std::size_t>(std::ranges::count(text, 'z')) / kSize + skipped, 100U);
}

TEST(Terminal, TwoStreamsThatAreOneFileKeepTheirOrder) {
  auto one = sys::make_pipe(0);
  auto other = sys::make_pipe(0);
  ASSERT_TRUE(one && other);
  {
    RunTerminal together(one->write.get(), one->write.get());
    EXPECT_TRUE(together.is_one());
    together.output().write("output\n", 1);
    together.messages().write("message\n", 1);
    together.output().write("output\n", 1);
    RunTerminal apart(one->write.get(), other->write.get());
    EXPECT_FALSE(apart.is_one());
    apart.messages().write("apart\n", 1);
  }
  one->write.reset();
  other->write.reset();
  EXPECT_EQ(read_all(one->read.get()), "output\nmessage\noutput\n");
  EXPECT_EQ(read_all(other->read.get()), "apart\n");
}

TEST(Terminal, AFileKeepsThePlaceWhereTheCallerIs) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const int fd = ::fileno(file);
  ASSERT_TRUE(sys::write_all(fd, "before\n"));
  {
    Terminal terminal(fd);
    terminal.write("one\n", 1);
    EXPECT_TRUE(terminal.flush(5s));
    ASSERT_TRUE(sys::write_all(fd, "between\n"));
    terminal.write("two\n", 1);
  }
  ASSERT_EQ(::lseek(fd, 0, SEEK_SET), 0);
  EXPECT_EQ(read_all(fd), "before\none\nbetween\ntwo\n");
  std::fclose(file);
}

TEST(Terminal, AFullDiskIsNoTerminalAnyMore) {
  const sys::UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  Terminal terminal(full.get());
  terminal.write("one\n", 1);
  EXPECT_TRUE(terminal.flush(5s)) << "there is nothing to be waited for";
  terminal.write("two\n", 1);
  EXPECT_EQ(terminal.skipped().lines, 1U);
  EXPECT_EQ(terminal.skipped().bytes, 4U);
}

TEST(Terminal, WithoutAReaderNothingIsWaitedFor) {
  auto pipe = sys::make_pipe(0);
  ASSERT_TRUE(pipe);
  Terminal terminal(pipe->write.get(), 100);
  pipe->read.reset();
  terminal.write("one\n", 1);
  EXPECT_TRUE(terminal.flush(5s));
  for (int i = 0; i < 50; ++i) terminal.write("two\nthree\n", 2);
  EXPECT_EQ(terminal.skipped().lines, 100U);
  EXPECT_EQ(terminal.skipped().bytes, 500U);
  EXPECT_TRUE(terminal.flush(5s));
}

/// Each write to it is a packet of its own.
std::vector<std::string> packets_of(std::string_view text) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  sys::UniqueFd ours(ends[0]);
  sys::UniqueFd theirs(ends[1]);
  {
    Terminal terminal(theirs.get());
    terminal.write(text, 1);
    EXPECT_TRUE(terminal.flush(5s));
  }
  theirs.reset();
  std::vector<std::string> packets;
  std::string packet(1U << 16U, ' ');
  for (;;) {
    const auto got = ::recv(ours.get(), packet.data(), packet.size(), 0);
    if (got <= 0) return packets;
    packets.push_back(packet.substr(0, static_cast<std::size_t>(got)));
  }
}

TEST(Terminal, WritesWholeLinesThatAPipeTakesAtOnce) {
  const auto of = [](std::size_t size) { return std::string(size - 1, 'x') + "\n"; };
  using Packets = std::vector<std::string>;
  EXPECT_EQ(packets_of(of(10)), (Packets{of(10)}));
  EXPECT_EQ(packets_of(of(4096)), (Packets{of(4096)}));
  EXPECT_EQ(packets_of(of(96) + of(4000) + of(20)), (Packets{of(96) + of(4000), of(20)}));
  EXPECT_EQ(packets_of(of(96) + of(4001) + of(20)), (Packets{of(96), of(4001) + of(20)}));
  EXPECT_EQ(packets_of(of(96) + of(4002)), (Packets{of(96), of(4002)}));
  EXPECT_EQ(packets_of(of(10000)), (Packets{std::string(4096, 'x'), std::string(4096, 'x'), of(1808)}));
}

/// A pipe for 4096 bytes, and a terminal that holds twice that.
class Slow : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = sys::make_pipe(4096);
    ASSERT_TRUE(made);
    if (::fcntl(made->write.get(), F_GETPIPE_SZ) != 4096) GTEST_SKIP() << "pages are larger here";
    pipe = std::move(*made);
    terminal = std::make_unique<Terminal>(pipe.write.get(), 8192);
    terminal->write(block, 1);
    ASSERT_TRUE(terminal->flush(5s));
  }
  /// Takes this many bytes from the pipe.
  std::string read(std::size_t size) {
    std::string text(size, ' ');
    for (std::size_t at = 0; at < size;) {
      const auto got = ::read(pipe.read.get(), text.data() + at, size - at);
      if (got <= 0) break;
      at += static_cast<std::size_t>(got);
    }
    return text;
  }

  sys::Pipe pipe;
  std::unique_ptr<Terminal> terminal;
  std::string block = std::string(4095, 'x') + "\n";
};

TEST_F(Slow, WhatDoesNotFitIsSkippedAndSaidAtItsPlace) {
  const std::string second = std::string(4095, 'y') + "\n";
  const std::string third = std::string(4095, 'z') + "\n";
  terminal->write(second, 1);
  terminal->write(third, 1);  // what is held now is full to the last byte
  terminal->write("123456789\n", 1);
  terminal->write("1234\n123\n", 2);
  EXPECT_EQ(terminal->skipped().lines, 3U);
  EXPECT_EQ(terminal->skipped().bytes, 19U);
  EXPECT_FALSE(terminal->flush(1ms)) << "nobody reads";
  const std::string notice =
      "nlaunch: 3 lines (19B) skipped: the terminal was too slow; the log files have them\n";
  const auto all = block + second + third + notice;
  EXPECT_EQ(read(all.size()), all);
  EXPECT_TRUE(terminal->flush(5s));
  terminal->write("next\n", 1);
  EXPECT_EQ(read(5), "next\n") << "the notice comes once";
  EXPECT_EQ(terminal->skipped().lines, 3U);
}

TEST_F(Slow, OneThatNeverFitsIsSaidBeforeTheNext) {
  EXPECT_EQ(read(block.size()), block);
  terminal->write(std::string(8192, 'x') + "\n", 1);
  terminal->write("next\n", 1);
  const std::string text = "nlaunch: 1 line (" + format_size(8193) +
                           ") skipped: the terminal was too slow; the log files have them\nnext\n";
  EXPECT_EQ(read(text.size()), text);
}

TEST_F(Slow, WhatIsGivenUpIsCountedWhateverItSays) {
  terminal->write("nlaunch: said by nlaunch\none\n", 2);
  terminal->finish(1ms);
  EXPECT_EQ(terminal->skipped().lines, 2U);
  EXPECT_EQ(terminal->skipped().bytes, 29U);
  EXPECT_EQ(read(block.size()), block);
  terminal->write("two\n", 1);
  EXPECT_EQ(terminal->skipped().lines, 3U) << "nothing is written any more";
  terminal.reset();
  pipe.write.reset();
  EXPECT_EQ(read(1), " ");
}

TEST_F(Slow, AReaderThatComesInTimeGetsAll) {
  std::thread reader([&] {
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(read(block.size() + 4), block + "one\n");
  });
  terminal->write("one\n", 1);
  terminal->finish(5s);
  EXPECT_EQ(terminal->skipped().lines, 0U);
  reader.join();
  terminal->write("two\n", 1);
  EXPECT_EQ(read(4), "two\n") << "it was not given up";
}

}  // namespace
}  // namespace nlaunch::supervise
