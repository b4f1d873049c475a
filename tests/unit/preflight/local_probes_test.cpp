#include "preflight/ask/local_probes.h"

#include <gtest/gtest.h>

#include <csignal>
#include <set>

#include "unit/preflight/fixture.h"
#include "unit/preflight/script.h"

namespace nlaunch::preflight {
namespace {

/// The probes of two ranks, the fourth and the fifth of all, in whose place a script runs.
class ScriptedProbes : public testing::Test {
 protected:
  ScriptedProbes() { std::signal(SIGPIPE, SIG_IGN); }  // as in nlaunch: a probe may have ended

  /// What is told, "RANK: LINE" and "RANK ended: HOW". `on_line` hears of each line.
  Lines run(const std::string& probe, std::vector<std::size_t> wanted = {4, 5},
            const std::function<void(LocalProbes&, std::size_t)>& on_line = nullptr) {
    const auto ranks = make_ranks(machine.plan, machine.node);
    LocalProbes probes(loop, {machine.node, ranks, 4, folder.path(), probe, std::move(wanted)});
    std::set<std::size_t> gone;
    std::map<std::size_t, Lines> told;
    probes.start([&](const ProbeNews& news) {
      if (const auto* said = std::get_if<probe_news::Said>(&news.what)) {
        told[news.rank].push_back(fmt::format("{}: {}", news.rank, said->line));
        if (on_line) on_line(probes, news.rank);
      } else if (const auto* ended = std::get_if<probe_news::Ended>(&news.what)) {
        told[news.rank].push_back(fmt::format("{} ended: {}", news.rank, ended->how));
        gone.insert(news.rank);
      }
      if (gone.size() == expected) loop.stop();
    });
    if (gone.size() < expected) loop.run();
    Lines all;
    for (const auto& [rank, lines] : told) all.insert(all.end(), lines.begin(), lines.end());
    return all;
  }

  sys::Loop loop;
  Machine machine{2, 0};
  ScriptFolder folder;
  std::size_t expected = 2;
};

TEST_F(ScriptedProbes, AreStartedEachForItsRank) {
  const auto probe = folder.probe("echo \"$*\"; echo $LOCAL_RANK");
  const auto spec = folder.path() + "/spec.json";
  EXPECT_EQ(run(probe),
            (Lines{"4: rank --spec " + spec + " --index 4", "4: 0", "4 ended: exited with code 0",
                   "5: rank --spec " + spec + " --index 5", "5: 1", "5 ended: exited with code 0"}));
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/probe.4.err"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/probe.5.err"));
}

TEST_F(ScriptedProbes, AreThoseAloneThatAreWantedAndThere) {
  expected = 1;
  EXPECT_EQ(run(folder.probe("echo here"), {5, 6, 100}), (Lines{"5: here", "5 ended: exited with code 0"}));
}

TEST_F(ScriptedProbes, HearWhatTheyAreTold) {
  const auto probe = folder.probe("echo ready; read -r line; echo \"heard $line\"");
  EXPECT_EQ(
      run(probe, {4, 5},
          [](LocalProbes& probes, std::size_t rank) { probes.say(rank, "go " + std::to_string(rank)); }),
      (Lines{"4: ready", "4: heard go 4", "4 ended: exited with code 0", "5: ready", "5: heard go 5",
             "5 ended: exited with code 0"}));
}

TEST_F(ScriptedProbes, EndWithTheirLastWords) {
  expected = 1;
  EXPECT_EQ(run(folder.probe("echo first >&2; echo 'no luck' >&2; echo >&2; exit 3"), {4}),
            Lines{"4 ended: exited with code 3; last output: no luck"});
  EXPECT_EQ(run(folder.probe("echo alone >&2; kill -TERM $$"), {4}),
            Lines{"4 ended: was terminated by SIGTERM; last output: alone"});
}

TEST_F(ScriptedProbes, SayWholeLinesAlone) {
  expected = 1;
  EXPECT_EQ(run(folder.probe("printf 'one\\n\\nthree\\nunfinished'"), {4}),
            (Lines{"4: one", "4: ", "4: three", "4 ended: exited with code 0"}));
}

TEST_F(ScriptedProbes, AreKilledWithWhatTheyHaveStarted) {
  expected = 1;
  // The second program holds the output open, which ends with it.
  EXPECT_EQ(run(folder.probe("sleep 100 & echo started; wait"), {4},
                [](LocalProbes& probes, std::size_t) { probes.kill(); }),
            (Lines{"4: started", "4 ended: was killed by SIGKILL"}));
}

TEST_F(ScriptedProbes, ThatCannotBeStartedAreTold) {
  EXPECT_EQ(run("/nowhere/probe"), (Lines{"4 ended: could not be started: '/nowhere/probe' does not exist",
                                          "5 ended: could not be started: '/nowhere/probe' does not exist"}));
}

TEST_F(ScriptedProbes, StandInTheWorkdirOfTheirProcess) {
  machine.node.processes[0].workdir = "/usr";
  machine.node.processes[1].workdir = folder.path() + "/gone";
  const auto told = run(folder.probe("pwd -P"));
  EXPECT_EQ(told[0], "4: /usr");
  EXPECT_EQ(told[2], "5: " + std::filesystem::canonical(folder.path()).string());
}

}  // namespace
}  // namespace nlaunch::preflight
