#include "supervise/events.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace nlaunch::supervise {
namespace {

class Events : public ::testing::Test {
 protected:
  Events() : folder(std::filesystem::temp_directory_path() / ("events." + std::to_string(::getpid()))) {
    std::filesystem::create_directory(folder);
  }
  ~Events() override { std::filesystem::remove_all(folder); }

  std::filesystem::path folder;
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
                                           "': No such file or directory; the run goes on"});
}

}  // namespace
}  // namespace nlaunch::supervise
