#include "evidence/read.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "sys/files.h"

namespace nlaunch::evidence {
namespace {

namespace fs = std::filesystem;

/// A folder of evidence of one host with one process, removed at the end.
class ReadEvidence : public testing::Test {
 protected:
  ReadEvidence() {
    write("collected.json", R"({"host": "node1"})");
    write("learner.0/processes.json",
          R"({"name": "learner.0", "host": "node1", "rank": 0, "pid": 7, "processes":
        [{"pid": 7, "rank": 0, "program": true, "state": "S"}]})");
  }
  ~ReadEvidence() override { fs::remove_all(folder_); }

  void write(const fs::path& name, const std::string& content) {
    const auto path = folder_ / "node1" / name;
    fs::create_directories(path.parent_path());
    ASSERT_TRUE(sys::write_file_atomically(path, content));
  }

  fs::path folder_ = fs::temp_directory_path() / fmt::format("nlaunch-evidence-{}", ::getpid());
};

TEST_F(ReadEvidence, HasTheConnectionsOfAProcess) {
  write("learner.0/sockets.json",
        R"([{"pid": 7, "state": "ESTABLISHED", "local": "10.0.0.1:5", "peer": "10.0.0.2:6"},
            {"pid": 7, "state": "LISTEN", "local": "10.0.0.1:8", "peer": "0.0.0.0:0"}])");
  const auto evidence = read_evidence(folder_);
  ASSERT_TRUE(evidence);
  ASSERT_EQ(evidence->members.size(), 1U);
  ASSERT_EQ(evidence->members[0].connections.size(), 1U);
  EXPECT_EQ(evidence->members[0].connections[0].peer, "10.0.0.2:6");
}

// A helper of a shell is not the process; where nothing else is there, its end is all that is known.
TEST_F(ReadEvidence, TakesNoHelperThatHasEndedForTheProcess) {
  const auto state = [this](const std::string& processes) {
    write("learner.0/processes.json",
          R"({"name": "learner.0", "rank": 0, "pid": 7, "processes": [)" + processes + "]}");
    const auto evidence = read_evidence(folder_);
    return evidence && evidence->members.size() == 1 ? evidence->members[0].state : '?';
  };
  const std::string shell = R"({"pid": 7, "program": false, "state": "S"})";
  const std::string ended = R"(, {"pid": 8, "program": true, "state": "Z"})";
  const std::string program = R"(, {"pid": 9, "program": true, "state": "R"})";
  EXPECT_EQ(state(shell + ended + program), 'R');
  EXPECT_EQ(state(shell + ended), 'Z');
  EXPECT_EQ(state(shell), 'S');
}

// A collector that does not answer in time leaves no file, or half of one.
TEST_F(ReadEvidence, DoesWithoutSockets) {
  for (const auto* content : {"", "[{\"pid\": 7, ", "{}"}) {
    if (*content != '\0') write("learner.0/sockets.json", content);
    const auto evidence = read_evidence(folder_);
    ASSERT_TRUE(evidence) << evidence.error().first_message();
    ASSERT_EQ(evidence->members.size(), 1U) << content;
    EXPECT_EQ(evidence->members[0].process, "learner.0");
    EXPECT_TRUE(evidence->members[0].connections.empty());
  }
}

// What it said last has its verdict look for the rank that comes after it.
TEST_F(ReadEvidence, TakesNoRankForOneThatIsNone) {
  for (const auto* rank : {"-1", "2147483647", "99999999999999"}) {
    write("learner.0/processes.json",
          fmt::format(R"({{"name": "learner.0", "host": "node1", "rank": {0}, "pid": 7, "processes":
              [{{"pid": 7, "rank": {0}, "program": true, "state": "X"}}]}})",
                      rank));
    write("learner.0/log.txt", "op.preamble.length <= op.nbytes\n");
    const auto evidence = read_evidence(folder_);
    ASSERT_TRUE(evidence);
    ASSERT_EQ(evidence->members.size(), 1U);
    EXPECT_FALSE(evidence->members[0].rank) << rank;
    EXPECT_TRUE(judge(*evidence).culprits.empty());
  }
}

TEST_F(ReadEvidence, HasTheProcessesOfAServerWithTheirStacks) {
  write("learner.0/processes.json", R"({"name": "engine.0", "pid": 7, "processes": [
      {"pid": 7, "program": true, "state": "S"},
      {"pid": 8, "parent": 7, "program": true, "state": "S", "title": "VLLM::Worker"}]})");
  write("learner.0/python-stacks.txt",
        "Process 8: VLLM::Worker\nPython v3.11.2\n\nThread 8 (idle): \"MainThread\"\n    receive "
        "(worker.py:7)\n");
  write("learner.0/server.json", R"({"health": {"status": 503}})");
  const auto evidence = read_evidence(folder_);
  ASSERT_TRUE(evidence);
  const auto& member = evidence->members.at(0);
  ASSERT_EQ(member.parts.size(), 1U);
  EXPECT_EQ(situation_of(member.parts[0]).place, "receive (worker.py:7)");
  ASSERT_TRUE(member.server);
  EXPECT_EQ(member.server->health, "answers 503 on its health path");
}

TEST_F(ReadEvidence, SeesThatAllStepsAreDone) {
  const auto last_step = [this](const std::string& log) {
    write("learner.0/log.txt", log);
    return read_evidence(folder_)->members.at(0).last_step;
  };
  const std::string near = " 99%|#########9| 999/1000 [03:18<00:00,  5.93it/s]";
  const std::string done = "\r100%|##########| 1000/1000 [03:18<00:00,  5.19it/s]";
  EXPECT_EQ(last_step(near), "");
  EXPECT_EQ(last_step(near + done + "\nWriting model shards: 100%|#| 1/1 [00:00<00:00]\n"), "1000/1000");
  EXPECT_EQ(last_step(near + "\r100%|##########| 10/10 [00:01<00:00]\n"), "") << "of an evaluation";
  EXPECT_EQ(last_step("Loading weights: 100%|##########| 51/51 [00:01<00:00]\n"), "");
  EXPECT_EQ(last_step(done + "\n  1%|          | 10/1000 [00:01<03:00]" + done), "") << "of an epoch";
}

TEST_F(ReadEvidence, SaysWhereThereIsNone) {
  EXPECT_EQ(read_evidence(folder_ / "other").error().first_message(),
            fmt::format("there is no evidence in {}/other", folder_.string()));
}

}  // namespace
}  // namespace nlaunch::evidence
