#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "preflight/gather.h"
#include "unit/preflight/host_fixture.h"

namespace nlaunch::preflight {
namespace {

/// A machine whose folders have said this.
struct Folders : Machine {
  Folders() : Machine(1, 0) {}
  [[nodiscard]] NodeObservations said(const std::vector<std::pair<Folder, nlohmann::json>>& all) const {
    auto observations = of_node();
    for (const auto& [folder, answer] : all) {
      observations.folders.push_back(folder);
      observations.answers["folder/" + folder.path] = {answer, ""};
    }
    return observations;
  }
};

nlohmann::json room(std::uint64_t free, double seconds = 0.001) {
  return {{"free", free}, {"seconds", seconds}};
}

TEST(CheckSpace, WarnsAndFails) {
  EXPECT_EQ(
      lines(run_check("space",
                      Folders().said({{{"run directory", "/a"}, room(std::uint64_t{5} << 30U)},
                                      {{"scratch", "/b"}, room(std::uint64_t{500} << 20U)},
                                      {{"scratch", "/c"}, room(1024)},
                                      {{"scratch", "/d"}, {{"error", "No such file or directory"}}}}))),
      (Lines{
          "pass | run directory /a | 5.0 GiB free |  |  | ",
          "warn | scratch /b | 500.0 MiB free | 1 GiB free | free some space, or choose another directory | "
          "user",
          "fail | scratch /c | 1 kiB free | 1 GiB free | free some space, or choose another directory | user",
          "fail | scratch /d | No such file or directory | a writable directory | choose another one, or "
          "request access | user"}));
}

TEST(CheckSpace, SaysHowLongAWriteTookThatIsSlow) {
  EXPECT_EQ(lines(run_check(
                "space", Folders().said({{{"run directory", "/a"}, room(std::uint64_t{5} << 30U, 3.21)}}))),
            (Lines{"warn | run directory /a | writing a file of 4 KiB took 3.2 s | less than 1 s | its file "
                   "system is overloaded or faulty: choose another one, or report it | user"}));
}

TEST(CheckSpace, AFolderThatDoesNotAnswerBlamesNobody) {
  const Folders machine;
  auto observations = machine.of_node();
  observations.folders = {{"run directory", "/gone"}};
  observations.answers["folder/" + std::string("/gone")] = {
      nullptr, "nlaunch-probe folder did not answer within 10 s"};
  EXPECT_EQ(lines(run_check("space", observations)),
            (Lines{"unknown | run directory /gone | nlaunch-probe folder did "
                   "not answer within 10 s: its file system may "
                   "hang |  |  | "}));
}

TEST(CheckSpace, AWorkdirMayBeReadOnly) {
  const nlohmann::json denied{
      {"free", 1024}, {"read_only", true}, {"error", "cannot be written to: Permission denied"}};
  EXPECT_EQ(
      lines(run_check("space", Folders().said({{{"learner's workdir", "/code", Folder::Use::look}, denied},
                                               {{"scratch", "/s"}, denied}}))),
      (Lines{"pass | learner's workdir /code | cannot be written to: Permission denied |  |  | ",
             "fail | scratch /s | cannot be written to: Permission denied | a writable directory | choose "
             "another one, or request access | user"}));
  EXPECT_EQ(lines(run_check("space", Folders().said({{{"learner's workdir", "/gone", Folder::Use::look},
                                                      {{"error", "No such file or directory"}}}}))),
            (Lines{"fail | learner's workdir /gone | No such file or directory | an existing directory | "
                   "choose another one, or request access | user"}));
}

TEST(CheckSpace, SharedMemoryThatIsClosedStopsRanksAlone) {
  const Folders machine;
  auto observations = machine.of_node();
  observations.folders = {{"shared memory", "/dev/shm", Folder::Use::write}};
  observations.machine.shm_free = std::uint64_t{1} << 30U;
  observations.answers["folder/" + std::string("/dev/shm")] = {
      {{"free", 1024}, {"error", "cannot be written to: Permission denied"}}, ""};
  const std::string said =
      "shared memory /dev/shm | cannot be written to: Permission denied | a writable directory | "
      "NCCL and PyTorch's data loaders put buffers there: request access to it | user";
  EXPECT_EQ(lines(run_check("space", observations)), (Lines{"fail | " + said}));
  observations.ranks.clear();
  EXPECT_EQ(lines(run_check("space", observations)), (Lines{"warn | " + said}));
}

TEST(FoldersOf, HasEachOnce) {
  Machine machine(1, 1);
  machine.plan.experiment = "grpo.yaml";
  machine.plan.sources = {"grpo.yaml"};
  machine.node.scratch = "/tmp/scratch";
  machine.node.processes[1].workdir = "/tmp/scratch";
  std::vector<std::string> seen;
  for (const auto& folder : folders_of(machine.of_node(), "/runs/a"))
    seen.push_back(folder.what + " " + folder.path);
  machine.plan.sources.clear();
  EXPECT_EQ(folders_of(machine.of_node(), "/runs/a").size(), 3)
      << "a machine that is checked for itself has no workdir";
  EXPECT_EQ(seen, (Lines{"run directory /runs/a", "scratch /tmp/scratch", "shared memory /dev/shm",
                         "learner's workdir /"}));
}

TEST(CheckSpace, TheLimitsAreAGibibyteAndAHundredMebibytes) {
  const auto status = [](std::uint64_t free, double seconds = 0) {
    return worst(run_check("space", Folders().said({{{"scratch", "/a"}, room(free, seconds)}})));
  };
  EXPECT_EQ(status(1U << 30U), Status::pass);
  EXPECT_EQ(status((1U << 30U) - 1), Status::warn);
  EXPECT_EQ(status(100U << 20U), Status::warn);
  EXPECT_EQ(status((100U << 20U) - 1), Status::fail);
  EXPECT_EQ(status(1U << 30U, 1), Status::pass);
  EXPECT_EQ(status(1U << 30U, 1.1), Status::warn);
}

TEST(CheckSpace, AWorkdirNeedsNoRoom) {
  EXPECT_EQ(lines(run_check("space",
                            Folders().said({{{"learner's workdir", "/a", Folder::Use::look}, room(1024)}}))),
            Lines{"pass | learner's workdir /a | 1 kiB free |  |  | "});
}

TEST(CheckSpace, WhyNothingIsKnownIsTold) {
  const Folders machine;
  auto observations = machine.of_node();
  observations.folders = {{"run directory", "/a", Folder::Use::fill}, {"scratch", "/b", Folder::Use::fill}};
  observations.answers["folder/" + std::string("/a")] = {nullptr, "cannot start it"};
  EXPECT_EQ(lines(run_check("space", observations)),
            Lines{"unknown | run directory /a | cannot start it |  |  | "});
}

TEST(CheckSpace, OfSharedMemoryItIsToldOnceWhatIsWrong) {
  const Folders machine;
  auto observations = machine.of_node();
  observations.folders = {{"shared memory", "/dev/shm", Folder::Use::write}};
  const std::string name = "folder//dev/shm";
  observations.answers[name] = {room(1024), ""};
  EXPECT_EQ(lines(run_check("space", observations)), Lines{}) << "its room stands among the limits";
  observations.answers[name] = {room(1024, 5), ""};
  EXPECT_EQ(run_check("space", observations).at(0).status, Status::warn);
  observations.answers[name] = {{{"error", "No such file or directory"}}, ""};
  EXPECT_EQ(run_check("space", observations).at(0).status, Status::fail);
  observations.machine.shm_free.reset();
  EXPECT_EQ(lines(run_check("space", observations)), Lines{}) << "that there is none stands among the limits";
}

}  // namespace
}  // namespace nlaunch::preflight
