#include "supervise/events.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <regex>
#include <sstream>
#include <thread>

#include "unit/supervise/folder.h"

namespace nlaunch::supervise {
namespace {

using namespace std::chrono_literals;

class Events : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return (folder / "events.jsonl").string(); }

  Folder made;
  std::filesystem::path folder = made.path();
};

TEST_F(Events, AreReadBackInOrder) {
  EventLog log(folder / "events.jsonl", nullptr);
  log.write("process-started", {{"process", "learner.0"}, {"pid", 17}});
  log.write("process-ended", {{"how", "invalid \xff byte"}});
  const auto events = read_events(folder / "events.jsonl");
  ASSERT_TRUE(events.has_value());
  ASSERT_EQ(events->size(), 2U);
  EXPECT_EQ((*events)[0]["event"], "process-started");
  EXPECT_EQ((*events)[0]["pid"], 17);
  EXPECT_LE((*events)[0]["mono_ms"], (*events)[1]["mono_ms"]);
  EXPECT_EQ((*events)[0]["time"].get<std::string>().size(), std::string("2026-01-31T12:00:00.123Z").size());
}

TEST_F(Events, ALastLineThatIsNotWholeIsLeftOut) {
  std::ofstream(folder / "events.jsonl") << R"({"event":"a"})"
                                         << "\n"
                                         << R"({"event":)";
  EXPECT_EQ(read_events(folder / "events.jsonl")->size(), 1U);
}

TEST_F(Events, AFileThatCannotBeWrittenIsSaidOnce) {
  std::vector<std::string> said;
  EventLog log(folder / "no" / "events.jsonl",
               [&](const std::string& sentence) { said.push_back(sentence); });
  log.write("a");
  log.write("b");
  EXPECT_EQ(said, std::vector<std::string>{"cannot write '" + (folder / "no" / "events.jsonl").string() +
                                           "': No such file or directory; the run continues"});
}

/// The milliseconds since 1970 of "2026-01-31T12:00:00.123Z".
std::int64_t milliseconds_of(const std::string& time) {
  std::tm parts{};
  std::istringstream(time) >> std::get_time(&parts, "%Y-%m-%dT%H:%M:%S");
  return std::int64_t{::timegm(&parts)} * 1000 + std::stoi(time.substr(20, 3));
}

TEST(UtcNow, IsThisMillisecond) {
  using namespace std::chrono;
  const auto now = [] { return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count(); };
  for (int i = 0; i < 20; ++i) {
    const auto before = now();
    const auto text = utc_now();
    const auto after = now();
    ASSERT_TRUE(std::regex_match(text, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"))) << text;
    EXPECT_GE(milliseconds_of(text), before) << text;
    EXPECT_LE(milliseconds_of(text), after) << text;
    std::this_thread::sleep_for(1ms);
  }
}

TEST(UtcStamp, IsTheTimeWithoutWhatAFileNameShouldNotHave) {
  EXPECT_TRUE(std::regex_match(utc_stamp(), std::regex(R"(\d{8}T\d{6}Z)"))) << utc_stamp();
}

TEST_F(Events, WhatIsWrittenHasItsTimesItsNameAndThenTheFields) {
  EventLog log(path(), nullptr);
  const auto before = std::chrono::steady_clock::now().time_since_epoch();
  log.write("process-ended", {{"process", "learner.0"}, {"how", "exited with code 3"}});
  const auto events = read_events(path());
  ASSERT_TRUE(events && events->size() == 1);
  std::vector<std::string> keys;
  for (const auto& [key, value] : events->front().items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"mono_ms", "time", "event", "process", "how"}));
  const auto mono = events->front()["mono_ms"].get<std::int64_t>();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(before).count();
  EXPECT_GE(mono, ms);
  EXPECT_LE(mono, ms + 60000);
}

TEST_F(Events, AreKeptByNobodyWithoutAFile) {
  EventLog log;
  log.write("a");
  log.check();
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(Events, ARemovedFileIsSaid) {
  std::vector<std::string> said;
  EventLog log(path(), [&](const std::string& sentence) { said.push_back(sentence); });
  log.check();
  EXPECT_EQ(said, std::vector<std::string>{});
  std::filesystem::remove(path());
  log.check();
  log.check();
  EXPECT_EQ(said, std::vector<std::string>{"cannot write '" + path() +
                                           "': the file was removed; the run continues"});
}

TEST_F(Events, AMemberOfAnotherTypeIsDamage) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"event": 1})", "'event' must be a string, found: number"},
      {R"({"event": "a", "waited": null})", "'waited' must be a string, found: null"},
      {R"({"event": "a", "pid": "7"})", "'pid' must be a whole number, found: string"},
      {R"({"event": "a", "mono_ms": 1.5})", "'mono_ms' must be a whole number, found: number"},
      {R"({"event": "a", "supervisor": []})", "'supervisor' must be a whole number, found: array"},
  };
  for (const auto& [line, what] : kCases) {
    std::ofstream(path()) << R"({"event": "before", "other": [1], "pid": 7})"
                          << "\n\n"
                          << line << "\n";
    const auto events = read_events(path());
    ASSERT_FALSE(events) << line;
    EXPECT_EQ(events.error().first_message(), path() + ":3: " + what);
    EXPECT_EQ(events.error().items().front().id, "run.damaged");
  }
}

TEST_F(Events, WhatIsNoObjectIsLeftOutAndTextsAreHarmless) {
  std::ofstream(path()) << R"([1])"
                        << "\n7\n\nno JSON\n"
                        << R"({"event": "a", "name": "two\nlines", "other": "two\nlines"})"
                        << "\n"
                        << R"({"no": "event"})"
                        << "\n";
  const auto events = read_events(path());
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 2U);
  EXPECT_EQ((*events)[0]["name"], "two\\nlines");
  EXPECT_EQ((*events)[0]["other"], "two\nlines");
  EXPECT_EQ((*events)[1]["no"], "event");
}

TEST_F(Events, OfANewerFormatAreNotRead) {
  std::ofstream(path()) << R"({"event": "run", "format": "nlaunch events", "version": 2})"
                        << "\n";
  const auto events = read_events(path());
  ASSERT_FALSE(events);
  EXPECT_EQ(events.error().items().front().id, "format.newer");
  EXPECT_TRUE(events.error().first_message().contains(path())) << events.error().first_message();
}

TEST_F(Events, ALinkOrNoFileIsNotRead) {
  EXPECT_FALSE(read_events(path()));
  EventLog(folder / "other.jsonl", nullptr).write("a");
  EXPECT_TRUE(read_events(folder / "other.jsonl"));
  std::filesystem::create_symlink(folder / "other.jsonl", path());
  EXPECT_FALSE(read_events(path()));
}

}  // namespace
}  // namespace nlaunch::supervise
