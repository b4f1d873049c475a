#include "evidence/collect.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "evidence/source.h"
#include "sys/files.h"

// All sources at once, with two of the test's own among them.
namespace nlaunch::evidence {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using nlohmann::json;

const Registered<Source> slow_source{{
    .order = 200,
    .name = "slow",
    .of = Source::Of::process,
    .bound = 60s,
    .lane = 7,
    .collect = [](const CollectContext& context) -> Found {
      // It is asked for by name alone, so that it does not hold up other tests.
      if (context.subject->name != "slow.0") return {};
      std::this_thread::sleep_until(context.deadline + 300ms);
      return {{"too-late.txt"}, {}};
    },
}};

const Registered<Source> broken_source{{
    .order = 210,
    .name = "broken",
    .of = Source::Of::process,
    .bound = 1s,
    .lane = 8,
    .collect = [](const CollectContext& context) -> Found {
      if (context.subject->name == "broken.0") throw std::runtime_error("it broke");
      const auto left = context.left();
      return {{fmt::format("left at most 1 s: {}", left > 500ms && left <= 1s)}, {}};
    },
}};

Subject subject(const char* name) {
  Subject subject;
  subject.name = name;
  return subject;
}

class Collect : public testing::Test {
 protected:
  Collect() {
    spec_.folder = folder_.string();
    spec_.host = "node1";
    spec_.deadline = 20s;
  }
  ~Collect() override { fs::remove_all(folder_); }

  json collected() {
    const auto result = collect(spec_);
    EXPECT_TRUE(result) << result.error().first_message();
    const auto written = sys::read_regular_file(folder_ / "node1/collected.json", 1U << 20U);
    EXPECT_TRUE(written);
    EXPECT_EQ(json::parse(written.value_or("null")), json(*result));
    return json(*result);
  }

  fs::path folder_ = fs::temp_directory_path() / fmt::format("nlaunch-collect-{}", ::getpid());
  Spec spec_;
};

TEST_F(Collect, SaysWhatItGotAndWhatIsMissing) {
  spec_.ending = "learner.0 exited with code 1";
  spec_.processes = {subject("learner.0"), subject("broken.0")};
  const auto result = collected();
  EXPECT_EQ(result["host"], "node1");
  EXPECT_EQ(result["folder"], (folder_ / "node1").string());
  EXPECT_EQ(result["ending"], spec_.ending);
  EXPECT_LT(result["seconds"].get<double>(), 20);
  EXPECT_FALSE(result["addresses"].empty());
  const auto& learner = result["processes"]["learner.0"];
  EXPECT_EQ(learner["got"], (json{"processes.json", "spot.txt", "left at most 1 s: true"}));
  EXPECT_EQ(learner["missing"], json::array());
  EXPECT_EQ(result["processes"]["broken.0"]["missing"],
            (json{{{"what", "broken"}, {"why", "it broke"}, {"install", ""}}}));
  EXPECT_TRUE(fs::exists(folder_ / "node1/learner.0/processes.json"));
}

TEST_F(Collect, DoesNotWaitForWhoDoesNotAnswerInTime) {
  spec_.processes = {subject("slow.0")};
  spec_.deadline = 300ms;
  const auto result = collected();
  EXPECT_GE(result["seconds"].get<double>(), 0.3);
  EXPECT_LT(result["seconds"].get<double>(), 0.55);
  EXPECT_FALSE(result.contains("ending"));
  EXPECT_EQ(result["processes"]["slow.0"]["missing"],
            (json{{{"what", "slow"}, {"why", "it did not answer in time"}, {"install", ""}}}));
  std::this_thread::sleep_for(400ms);  // its thread ends before what it refers to
}

// Their values come from the processes, and are masked in all that is written.
TEST_F(Collect, MasksTheSecretsOfItsProcesses) {
  const auto log = folder_ / "log";
  fs::create_directories(folder_);
  ASSERT_TRUE(sys::write_file_atomically(log, "the token is s3cr3t-value\n"));
  const auto pid = ::fork();
  if (pid == 0) {
    char secret[] = "OUR_TOKEN=s3cr3t-value";
    char* environment[] = {secret, nullptr};
    ::execle("/bin/sleep", "sleep", "100", nullptr, environment);
    ::_exit(127);
  }
  const auto environment = fmt::format("/proc/{}/environ", pid);
  for (int i = 0; i < 500; ++i, std::this_thread::sleep_for(10ms)) {
    std::ifstream file(environment);
    std::string entry;
    if (std::getline(file, entry, '\0') && entry.starts_with("OUR_TOKEN=")) break;
  }
  spec_.secrets = {"OUR_TOKEN"};
  spec_.processes = {subject("learner.0")};
  spec_.processes[0].pid = pid;
  spec_.processes[0].log = log.string();
  spec_.deadline = 5s;
  const auto result = collected();
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(sys::read_regular_file(folder_ / "node1/learner.0/log.txt", 4096).value_or(""),
            "the token is ***\n");
}

TEST_F(Collect, NeedsItsFolder) {
  fs::create_directories(folder_);
  ASSERT_TRUE(sys::write_file_atomically(folder_ / "node1", "a file"));
  EXPECT_FALSE(collect(spec_));
}

}  // namespace
}  // namespace nlaunch::evidence
