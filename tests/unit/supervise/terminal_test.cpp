#include "supervise/terminal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

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
    {
      Terminal terminal(pipe->write.get(), 256U << 10U);
      for (std::size_t i = 0; i < kLines; ++i) terminal.write(line(static_cast<int>(i), size), 1);
      terminal.finish(50ms);
      skipped = terminal.skipped().lines;
      terminal.write(line(0, size), 1);  // too late
      EXPECT_EQ(terminal.skipped().lines, skipped + 1);
    }
    pipe->write.reset();
    const auto shown = shown_of(read_all(pipe->read.get()), size);
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

}  // namespace
}  // namespace nlaunch::supervise
