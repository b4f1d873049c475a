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

// A client may be connected to any process of a server, as vLLM has with --api-server-count. A worker is
// connected to its peers.
TEST_F(ReadEvidence, HasTheConnectionsToThePortOfAServer) {
  write("learner.0/sockets.json",
        R"([{"pid": 7, "state": "ESTABLISHED", "local": "10.0.0.1:5", "peer": "10.0.0.2:6"},
            {"pid": 8, "state": "ESTABLISHED", "local": "10.0.0.1:8000", "peer": "10.0.0.3:9"}])");
  write("engine.0/sockets.json",
        R"([{"pid": 7, "state": "ESTABLISHED", "local": "10.0.0.1:5", "peer": "10.0.0.2:6"},
            {"pid": 8, "state": "ESTABLISHED", "local": "10.0.0.1:8000", "peer": "10.0.0.3:9"},
            {"pid": 9, "state": "ESTABLISHED", "local": "10.0.0.1:4000", "peer": "10.0.0.3:10"},
            {"pid": 9, "state": "ESTABLISHED", "local": "10.0.0.1:18000", "peer": "10.0.0.3:11"}])");
  write("engine.0/processes.json",
        R"({"name": "engine.0", "pid": 7, "processes": [{"pid": 7, "program": true, "state": "S"}]})");
  const auto peers = [&](const char* url) {
    write("engine.0/server.json", fmt::format(R"({{"url": "{}"}})", url));
    std::vector<std::vector<std::string>> found;
    const auto evidence = read_evidence(folder_);
    for (const auto& member : evidence.value().members) {
      found.emplace_back();
      for (const auto& connection : member.connections) found.back().push_back(connection.peer);
    }
    return found;
  };
  using Peers = std::vector<std::vector<std::string>>;
  EXPECT_EQ(peers("http://10.0.0.1:8000/health"), (Peers{{"10.0.0.2:6", "10.0.0.3:9"}, {"10.0.0.2:6"}}));
  EXPECT_EQ(peers("http://10.0.0.1:8000"), (Peers{{"10.0.0.2:6", "10.0.0.3:9"}, {"10.0.0.2:6"}}));
  for (const auto* url : {"http://10.0.0.1/health", "http://", "x", ""})
    EXPECT_EQ(peers(url), (Peers{{"10.0.0.2:6"}, {"10.0.0.2:6"}})) << url;
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

// A job may have several ranks in one process of the plan (torchrun), with helpers that inherit their RANK.
TEST_F(ReadEvidence, HasAMemberForEachRankOfAProcess) {
  write("learner.0/processes.json",
        R"({"name": "learner.0", "host": "node1", "pid": 7, "ended": "exited with code 1",
      "ended_at": 2.5, "killed_parts": ["loader (pid 6) was killed"], "gpus": ["00000000:1B:00.0"], "processes": [
      {"pid": 7, "program": false, "state": "S", "title": "torchrun"},
      {"pid": 8, "parent": 7, "rank": 4, "program": true, "state": "S", "title": "train.py", "main_cpu": 0.5, "cuda": true,
       "threads": [{"wait_channel": "futex_do_wait"}, {"wait_channel": "ep_poll"}]},
      {"pid": 9, "parent": 7, "rank": 5, "program": true, "state": "D", "title": "train.py"},
      {"pid": 10, "parent": 8, "rank": 4, "program": true, "state": "S", "title": "loader"}]})");
  write("learner.0/log.txt", std::string(5000, 'x') + "the end\n");
  const auto evidence = read_evidence(folder_);
  ASSERT_TRUE(evidence);
  ASSERT_EQ(evidence->members.size(), 2U);
  const auto& first = evidence->members[0];
  EXPECT_EQ(first.str(), "learner.0 (rank 4) on node1");
  EXPECT_EQ(first.role, "learner");
  EXPECT_EQ(first.pid, 8);
  EXPECT_EQ(first.pids, std::vector<pid_t>{8});
  EXPECT_EQ(first.title, "train.py");
  EXPECT_EQ(first.state, 'S');
  EXPECT_EQ(first.cpu, 0.5);
  EXPECT_TRUE(first.cuda);
  EXPECT_EQ(first.wait_channel, "futex_do_wait");
  EXPECT_EQ(first.ended, "exited with code 1");
  EXPECT_EQ(first.ended_at, 2.5);
  EXPECT_EQ(first.killed_parts, std::vector<std::string>{"loader (pid 6) was killed"});
  EXPECT_EQ(first.gpus, std::vector<std::string>{"00000000:1B:00.0"});
  EXPECT_EQ(first.last_words.size(), 4096U);
  EXPECT_TRUE(first.last_words.ends_with("xthe end\n"));
  ASSERT_EQ(first.parts.size(), 1U);
  EXPECT_EQ(first.parts[0].str(), "loader (pid 10)");
  const auto& second = evidence->members[1];
  EXPECT_EQ(second.rank, 5);
  EXPECT_EQ(second.pid, 9);
  EXPECT_EQ(second.state, 'D');
  EXPECT_FALSE(second.cuda);
  EXPECT_TRUE(second.parts.empty());
}

TEST_F(ReadEvidence, OfOneProgramHasTheWholeTree) {
  write("learner.0/processes.json", R"({"name": "learner.0", "pid": 7, "processes": [
      {"pid": 7, "program": true, "state": "S"}, {"pid": 8, "parent": 7, "program": false, "state": "S"},
      {"pid": 9, "parent": 8, "program": true, "state": "Z", "title": "gone"},
      {"pid": 10, "parent": 8, "program": true, "state": "X", "title": "gone"},
      {"pid": 11, "parent": 8, "program": true, "name": "helper", "state": "T"},
      {"pid": 12, "parent": 99, "program": true, "state": "S", "title": "of another"}]})");
  const auto evidence = read_evidence(folder_);
  ASSERT_TRUE(evidence);
  const auto& member = evidence->members.at(0);
  EXPECT_EQ(member.pids, (std::vector<pid_t>{7, 8, 9, 10, 11, 12}));
  ASSERT_EQ(member.parts.size(), 1U) << "no shells, nothing that is gone, nothing of others";
  EXPECT_EQ(member.parts[0].str(), "helper (pid 11)");
  EXPECT_EQ(member.parts[0].state, 'T');
}

TEST_F(ReadEvidence, HasOneThatHasEndedWithoutAnyProcess) {
  write("learner.0/processes.json",
        R"({"name": "learner.0", "host": "node1", "rank": 2, "pid": 0, "ended": "was killed",
      "processes": []})");
  const auto evidence = read_evidence(folder_);
  ASSERT_TRUE(evidence);
  ASSERT_EQ(evidence->members.size(), 1U);
  EXPECT_EQ(evidence->members[0].rank, 2);
  EXPECT_EQ(evidence->members[0].state, 'X');
  EXPECT_EQ(evidence->members[0].ended, "was killed");
}

TEST_F(ReadEvidence, HasItsNativeStack) {
  write("learner.0/native-stacks.txt",
        "Process 7: train.py\nPID 7 - process\nTID 7:\n#0  0x1 poll - /lib/libc.so.6\n");
  const auto evidence = read_evidence(folder_);
  ASSERT_TRUE(evidence);
  EXPECT_FALSE(evidence->members.at(0).native.empty());
}

TEST_F(ReadEvidence, HasRecordingsByRole) {
  write("learner.0/flight-recorder.3", R"({"version": "2.4", "entries": [], "pg_config": {}})");
  write("learner.0/flight-recorder.4", "neither pickle nor JSON");
  const auto evidence = read_evidence(folder_);
  ASSERT_TRUE(evidence);
  ASSERT_EQ(evidence->recordings.size(), 1U);
  ASSERT_EQ(evidence->recordings.at("learner").size(), 1U);
  EXPECT_EQ(evidence->recordings.at("learner")[0].rank, 3);
  ASSERT_EQ(evidence->missing.size(), 1U);
  EXPECT_TRUE(evidence->missing[0].starts_with("flight recorder of rank 4: ")) << evidence->missing[0];
}

TEST_F(ReadEvidence, SaysWhatOfRasItCannotRead) {
  write("learner.0/ras.json", "{");
  const auto evidence = read_evidence(folder_);
  ASSERT_TRUE(evidence);
  EXPECT_TRUE(evidence->ras.empty());
  ASSERT_EQ(evidence->missing.size(), 1U);
  EXPECT_TRUE(evidence->missing[0].starts_with("NCCL RAS of learner.0: ")) << evidence->missing[0];
}

// What is not installed is missing for every process.
TEST_F(ReadEvidence, SaysOnceWhatIsMissing) {
  write("collected.json",
        R"({"host": "node1", "ending": "learner.0 failed", "addresses": ["127.0.0.1", "10.0.0.7"],
      "missing": [{"what": "kernel log", "why": "/dev/kmsg: Permission denied", "install": ""}],
      "processes": {"learner.0": {"missing": [{"what": "Python stacks", "why": "no py-spy", "install": "pip install py-spy"}]},
                    "learner.1": {"missing": [{"what": "Python stacks", "why": "no py-spy", "install": "pip install py-spy"}]}}})");
  write("gpu-use.jsonl", R"({"gpus":[{"bus_id":"a","busy":100}]})");
  const auto evidence = read_evidence(folder_);
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->missing,
            (std::vector<std::string>{"kernel log on node1: /dev/kmsg: Permission denied",
                                      "Python stacks on node1: no py-spy (pip install py-spy)"}));
  EXPECT_EQ(evidence->ending, "learner.0 failed");
  EXPECT_EQ(evidence->hosts, (std::map<std::string, std::string>{{"10.0.0.7", "node1"}}));
  EXPECT_EQ(evidence->gpu_use.at("node1").size(), 1U);
}

// A name of a rank's is not to be read from a file that is a link or a folder of somebody else's.
TEST_F(ReadEvidence, FollowsNoLinks) {
  fs::create_directories(folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "node1/learner.0", folder_ / "node1/learner.1");
  fs::create_symlink("/etc/hostname", folder_ / "node1/learner.0/log.txt");
  const auto evidence = read_evidence(folder_);
  ASSERT_TRUE(evidence);
  ASSERT_EQ(evidence->members.size(), 1U);
  EXPECT_EQ(evidence->members[0].last_words, "");
}

TEST_F(ReadEvidence, OfAnotherTypeIsAnError) {
  write("learner.0/processes.json", R"({"name": "learner.0", "pid": "seven", "processes": []})");
  EXPECT_TRUE(read_evidence(folder_).error().first_message().starts_with(
      fmt::format("cannot read the evidence in {}: ", folder_.string())));
}

TEST_F(ReadEvidence, ItsVerdictIsWritten) {
  write("learner.0/processes.json",
        R"({"name": "learner.0", "host": "node1", "rank": 0, "pid": 7, "processes": [
      {"pid": 7, "rank": 0, "program": true, "state": "T", "title": "train.py"}]})");
  write("learner.1/processes.json",
        R"({"name": "learner.1", "host": "node1", "rank": 1, "pid": 8, "processes": [
      {"pid": 8, "rank": 1, "program": true, "state": "S"}]})");
  write("learner.1/native-stacks.txt",
        "Process 8: train.py\nPID 8 - process\nTID 8:\n#0  0x1 recv - /venv/libnccl.so.2\n");
  const auto judged = judge_folder(folder_);
  ASSERT_TRUE(judged);
  EXPECT_TRUE(judged->verdict.sure);
  const auto written =
      nlohmann::json::parse(sys::read_regular_file(folder_ / "verdict.json", 1U << 20U).value_or(""));
  EXPECT_EQ(written["sure"], true);
  EXPECT_EQ(written["sentence"], judged->verdict.sentence);
  EXPECT_EQ(written["culprits"], (nlohmann::json{{{"process", "learner.0"},
                                                  {"rank", 0},
                                                  {"host", "node1"},
                                                  {"pid", 7},
                                                  {"program", "train.py"},
                                                  {"doing", "stopped"},
                                                  {"why", "is stopped (state T): train.py (pid 7)"}}}));
  ASSERT_EQ(written["sources"].size(), judged->verdict.analyses.size());
  EXPECT_EQ(written["sources"][0]["source"], "processes");
  EXPECT_EQ(written["sources"][0]["accused"], nlohmann::json{"learner.0"});
}

TEST_F(ReadEvidence, SaysWhereThereIsNone) {
  EXPECT_EQ(read_evidence(folder_ / "other").error().first_message(),
            fmt::format("no evidence in {}/other", folder_.string()));
}

}  // namespace
}  // namespace nlaunch::evidence
