#include "supervise/error_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "unit/supervise/folder.h"

namespace nlaunch::supervise {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr Duration kWritten = 1'700'000'000'250ms;

Masker masker() {
  Masker out;
  out.add("hunter2");
  return out;
}

std::optional<RecordedError> parsed(std::string_view text, Duration written = kWritten) {
  return parse_error(text, written, masker());
}

TEST(ErrorFile, HasTheExceptionThatRecordWrites) {
  const auto error = parsed(
      R"({"message": {"message": "RuntimeError: CUDA error: out of memory\nset CUDA_LAUNCH_BLOCKING", )"
      R"("extraInfo": {"py_callstack": "Traceback (most recent call last):\n  File \"t.py\", line 1, in f\n)"
      R"(RuntimeError: CUDA error: out of memory\n", "timestamp": "1700000000"}}})");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->type, "RuntimeError");
  EXPECT_EQ(error->message, "CUDA error: out of memory\nset CUDA_LAUNCH_BLOCKING");
  EXPECT_EQ(
      error->traceback,
      "Traceback (most recent call last):\n  File \"t.py\", line 1, in f\nRuntimeError: CUDA error: out of "
      "memory\n");
  EXPECT_EQ(error->at, kWritten) << "more exact than the timestamp";
  EXPECT_EQ(error->within, 0ms);
}

TEST(ErrorFile, CanHaveAMessageThatIsOnlyText) {
  const auto error =
      parsed(R"({"message": "Signal 9 (SIGKILL) received by PID 7", "timestamp": 1699999990})");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->type, "");
  EXPECT_EQ(error->message, "Signal 9 (SIGKILL) received by PID 7");
  EXPECT_EQ(error->traceback, "Signal 9 (SIGKILL) received by PID 7\n");
  EXPECT_EQ(error->at, 1'699'999'990'000ms) << "torchrun has copied the record of a worker";
  EXPECT_EQ(error->within, 1s);
}

TEST(ErrorFile, TellsWhenAsWellAsItCan) {
  const auto at = [](std::string_view timestamp, Duration written) {
    return parsed(fmt::format(R"({{"message": {{"message": "E: x", "extraInfo": {{"timestamp": {}}}}}}})",
                              timestamp),
                  written)
        .value()
        .at;
  };
  EXPECT_EQ(at(R"("1700000000")", 1'699'999'999'995ms), 1'699'999'999'995ms)
      << "the clock of a file has ticks";
  EXPECT_EQ(at(R"("1700000000")", 1'700'000'001'900ms), 1'700'000'001'900ms);
  EXPECT_EQ(at(R"("1700000000")", 1'700'000'002'000ms), 1'700'000'000'000ms);
  EXPECT_EQ(at(R"("1700000000")", 1'699'999'900'000ms), 1'700'000'000'000ms);
  for (const auto* odd : {"null", R"("")", R"("soon")", "-1", "0", "1e300", R"("99999999999999999")", "{}",
                          "18446744073709551615"})
    EXPECT_EQ(at(odd, kWritten), kWritten) << odd;
}

TEST(ErrorFile, SecretsInItAreMasked) {
  const auto error =
      parsed(R"({"message": {"message": "ValueError: no user hunter2", )"
             R"("extraInfo": {"py_callstack": "  login('\u0068unter2')\nValueError: no user hunter2"}}})");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "no user ***");
  EXPECT_EQ(error->traceback, "  login('***')\nValueError: no user ***\n");
}

TEST(ErrorFile, ALongMessageIsCutBetweenCharacters) {
  const auto error = parsed(R"({"message": "E: )" + std::string(1999, 'x') + R"(äöü"})");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, std::string(1999, 'x'));
  EXPECT_EQ(error->traceback.size(), 3 + 1999 + 6 + 1U);
}

TEST(ErrorFile, WhatIsNoRecordIsNone) {
  for (const auto* text :
       {"", "{", "7", "[]", "{}", R"({"message": 7})", R"({"message": ""})", R"({"message": []})",
        R"({"message": {}})", R"({"message": {"message": ["x"]}})", R"({"message": {"message": "x")"})
    EXPECT_FALSE(parsed(text)) << text;
  const auto odd = parsed(R"({"message": {"message": "E", "extraInfo": [1]}})");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->message, "E");
}

TEST(ErrorFile, IsARegularFileOfOneMebibyteAtMost) {
  const Folder made;
  const auto folder = made.path();
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return folder / name;
  };
  const std::string record = R"({"message": "ValueError: x"})";
  const auto good = write("good.json", record);
  const auto error = read_error(good, masker());
  ASSERT_TRUE(error);
  EXPECT_EQ(error->type, "ValueError");
  const auto age = std::chrono::system_clock::now().time_since_epoch() - error->at;
  EXPECT_LT(age, 60s);
  EXPECT_GT(age, -1s);
  fs::create_symlink(good, folder / "link.json");
  ASSERT_EQ(::mkfifo((folder / "fifo.json").c_str(), 0600), 0);
  fs::create_directories(folder / "folder.json");
  for (const auto* name : {"none.json", "link.json", "fifo.json", "folder.json"})
    EXPECT_FALSE(read_error(folder / name, masker())) << name;
  EXPECT_FALSE(read_error(write("large.json", record + std::string(1U << 20U, ' ')), masker()));
  EXPECT_FALSE(read_error(write("empty.json", ""), masker()));
}

}  // namespace
}  // namespace nlaunch::supervise
