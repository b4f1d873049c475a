#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

#include "launch/bind/gpu_lock.h"
#include "launch/bind/ports.h"
#include "launch/bind/secrets.h"
#include "launch/machine.h"
#include "launch/run_dir/run_folder.h"
#include "sys/files.h"
#include "sys/tcp_port.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "nlaunch-node-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

Machine two_gpus() {
  return {"host",
          "x86_64",
          "580",
          "",
          {{"0", "00000000:3B:00.0", "GPU-aaaa", "H200"}, {"1", "00000000:5E:00.0", "GPU-bbbb", "H200"}},
          ""};
}

TEST(VisibleGpus, AreAllInPciOrderWhereNothingIsSaid) {
  const auto gpus = visible_gpus(two_gpus(), nullptr);
  ASSERT_TRUE(gpus);
  ASSERT_EQ(gpus->size(), 2U);
  EXPECT_EQ(gpus->at(1).visible, "1");
  EXPECT_EQ(gpus->at(1).bus_id, "00000000:5E:00.0");
}

TEST(VisibleGpus, AreShownByNumberHoweverTheyWereGiven) {
  const std::string given = "GPU-bb, 0,MIG-7";
  const auto gpus = visible_gpus(two_gpus(), &given);
  ASSERT_TRUE(gpus);
  ASSERT_EQ(gpus->size(), 3U);
  EXPECT_EQ(gpus->at(0).visible, "1");
  EXPECT_EQ(gpus->at(1).visible, "0");
  EXPECT_EQ(gpus->at(2).visible, "MIG-7");
}

TEST(VisibleGpus, AnEntryThatIsNoGpuIsAnError) {
  const std::string given = "0,7";
  const auto gpus = visible_gpus(two_gpus(), &given);
  ASSERT_FALSE(gpus);
  EXPECT_EQ(gpus.error().first_message(),
            "CUDA_VISIBLE_DEVICES=0,7 is set, but '7' is not a GPU of this machine, which has 2 GPUs");
  const std::string none = "-1";
  EXPECT_TRUE(visible_gpus(two_gpus(), &none)->empty());
}

TEST_F(Folder, APortThatSomebodyListensOnIsPassedOver) {
  const sys::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  socklen_t size = sizeof(address);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  const auto taken = ntohs(address.sin_port);
  EXPECT_EQ(sys::try_to_listen(taken), std::errc::address_in_use);
  Ports ports(folder_);
  EXPECT_NE(ports.take(taken), taken);
}

TEST_F(Folder, TwoRunsNeverTakeOnePort) {
  Ports first(folder_);
  const auto one = first.take(29000);
  ASSERT_TRUE(one);
  EXPECT_NE(first.take(*one), one);
  {
    Ports second(folder_);
    EXPECT_NE(second.take(*one), one);
  }
  first = Ports(folder_);  // gives all back
  EXPECT_EQ(Ports(folder_).take(*one), one);
}

TEST_F(Folder, APortIsHeldUntilItIsLetGo) {
  Ports ports(folder_);
  const auto one = ports.take(29000);
  ASSERT_TRUE(one);
  EXPECT_EQ(sys::try_to_listen(*one), std::errc::address_in_use);
  ports.release();
  EXPECT_FALSE(sys::try_to_listen(*one));
  EXPECT_NE(ports.take(*one), one) << "it is the run's";
}

TEST_F(Folder, PortsThatTheKernelGivesAwayAreNotTaken) {
  const auto range_of = [](std::uint16_t first, std::uint16_t last) {
    const auto range = range_beside({{first, last}, {}});
    return std::pair(range.first, range.last);
  };
  using Range = std::pair<std::uint16_t, std::uint16_t>;
  EXPECT_EQ(range_of(32768, 60999), Range(20000, 31999));
  EXPECT_EQ(range_of(1024, 19999), Range(20000, 31999));
  EXPECT_EQ(range_of(9000, 65000), Range(2000, 8999));
  EXPECT_EQ(range_of(31999, 60999), Range(2000, 31998));
  EXPECT_EQ(range_of(2999, 40000), Range(40001, 65535));
  EXPECT_EQ(range_of(1024, 65535), Range(20000, 31999)) << "there is no room";
  Ports ports(folder_, {{9000, 65000}, {{4000, 4002}, {2005, 2005}}});
  const auto moved = ports.take(29000);
  ASSERT_TRUE(moved);
  EXPECT_TRUE(*moved >= 2000 && *moved <= 8999) << *moved;
  EXPECT_GE(ports.take(4000).value_or(0), 2000);
  const auto reserved = ports.take(2005);
  EXPECT_NE(reserved, 2005);
  EXPECT_TRUE(Ports(folder_, {{1024, 65535}, {}}).take(29000)) << "any is better than none";
}

TEST_F(Folder, PortsAreKeptInAFolderThatIsTheUsersOwn) {
  const auto own = folder_ / "ports-of-me";
  EXPECT_TRUE(Ports(own).take(29000));
  EXPECT_EQ(fs::status(own).permissions(), fs::perms{0700});
  EXPECT_EQ(fs::status(own / "ports").permissions(), fs::perms{0600});
  EXPECT_TRUE(port_folder().ends_with(std::to_string(::geteuid()))) << port_folder();
}

TEST_F(Folder, PortsAreFoundWhereSomebodyElseHasTakenTheFolder) {
  const auto expect_unused = [this](const fs::path& taken) {
    Ports ports(taken);
    EXPECT_TRUE(ports.take(29000));
    EXPECT_FALSE(fs::exists(folder_ / "theirs" / "ports")) << taken;
  };
  fs::create_directory(folder_ / "theirs");
  fs::create_directory_symlink(folder_ / "theirs", folder_ / "linked");
  expect_unused(folder_ / "linked");
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  expect_unused(folder_ / "fifo");
  // A link in one's own folder, from the time when the name was another's.
  std::ofstream(folder_ / "precious") << "dear";
  fs::create_directory(folder_ / "own");
  fs::create_symlink(folder_ / "precious", folder_ / "own" / "ports");
  Ports linked(folder_ / "own");
  EXPECT_TRUE(linked.take(29000));
  if (::geteuid() != 0) GTEST_SKIP() << "to make a folder of another user takes root";
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::chown((folder_ / "theirs").c_str(), kNobody, kNobody), 0);
  expect_unused(folder_ / "theirs");
}

TEST_F(Folder, GpusOfAnotherRunAreRefusedWithWhoseTheyAre) {
  plan::Plan plan;
  plan.roles.resize(1);
  plan.processes.push_back({0, 0, -1, 0, 0, 1, 0, {0, 1}, {}});
  plan::BoundNode node;
  node.gpus = {{"0", "3B", "GPU-a"}, {"1", "5E", "GPU-b"}};
  node.processes.emplace_back().name = "learner.0";
  auto held = GpuLocks::take(plan, node, "/runs/first", folder_);
  ASSERT_TRUE(held) << render(held.error());
  const auto second = GpuLocks::take(plan, node, "/runs/second", folder_);
  ASSERT_FALSE(second);
  ASSERT_EQ(second.error().items().size(), 2U);
  EXPECT_TRUE(second.error().items()[1].message.starts_with("GPU 1 is held by /runs/first of user "))
      << second.error().items()[1].message;
  held = GpuLocks();
  EXPECT_TRUE(GpuLocks::take(plan, node, "/runs/third", folder_));
}

/// The failure to open a lock that lies in a folder of somebody else's; empty: it was opened.
std::string refusal(const fs::path& folder, const std::string& name) {
  const auto opened = open_lock_file(folder, name);
  return opened ? "" : opened.error().first_message();
}

TEST_F(Folder, ALockThatSomebodyElseHasPutThereIsNotWrittenTo) {
  const auto precious = folder_ / "precious";
  const auto locks = folder_ / "locks";
  std::ofstream(precious) << "dear";
  EXPECT_EQ(refusal(locks, "GPU-new.lock"), "");
  EXPECT_EQ(fs::status(locks / "GPU-new.lock").permissions(), fs::perms{0666});
  fs::create_symlink(precious, locks / "GPU-a.lock");
  fs::create_hard_link(precious, locks / "GPU-b.lock");
  ASSERT_EQ(::mkfifo((locks / "GPU-c.lock").c_str(), 0444), 0);
  fs::create_symlink("/nowhere/at/all", locks / "GPU-d.lock");
  fs::create_directory_symlink(locks, folder_ / "linked");
  const auto cannot = "cannot open the lock " + locks.string();
  EXPECT_EQ(refusal(locks, "GPU-a.lock"), cannot + "/GPU-a.lock: it is a link");
  EXPECT_EQ(refusal(locks, "GPU-b.lock"),
            cannot + "/GPU-b.lock: it is a hard link to a file that may belong to another user");
  EXPECT_EQ(refusal(locks, "GPU-c.lock"), cannot + "/GPU-c.lock: it is not a regular file");
  EXPECT_EQ(refusal(locks, "GPU-d.lock"), cannot + "/GPU-d.lock: it is a link");
  EXPECT_NE(refusal(folder_ / "linked", "GPU-new.lock"), "");
  plan::Plan plan;
  plan.roles.resize(1);
  plan.processes.push_back({0, 0, -1, 0, 0, 1, 0, {0}, {}});
  plan::BoundNode node;
  node.processes.emplace_back().name = "learner.0";
  for (const auto* gpu : {"GPU-a", "GPU-b", "GPU-c", "GPU-d"}) {
    node.gpus = {{"0", "3B", gpu}};
    EXPECT_FALSE(GpuLocks::take(plan, node, "/runs/first", locks)) << gpu;
  }
  EXPECT_EQ(sys::read_regular_file(precious, 100).value(), "dear");
  EXPECT_FALSE(fs::exists("/nowhere"));
}

TEST_F(Folder, SecretsComeFromWhereTheyAreDeclared) {
  std::ofstream(folder_ / "token") << "from-file\n";
  std::ofstream(folder_ / ".netrc")
      << "machine other login x password no\nmachine api.wandb.ai\n login user\n password from-netrc\n";
  using Source = plan::Secret::Source;
  const std::vector<plan::Secret> secrets{{"A", Source::env, "TOKEN", "e.yaml:1:1"},
                                          {"B", Source::file, "~/token", "e.yaml:2:1"},
                                          {"C", Source::netrc, "api.wandb.ai", "e.yaml:3:1"}};
  const auto values = read_secrets(secrets, {{"HOME", folder_.string()}, {"TOKEN", "from-env"}});
  ASSERT_TRUE(values) << render(values.error());
  EXPECT_EQ(*values,
            (std::map<std::string, std::string>{{"A", "from-env"}, {"B", "from-file"}, {"C", "from-netrc"}}));
  const auto missing = read_secrets(secrets, {{"HOME", "/nowhere"}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(render(missing.error()),
            "error: secret A (e.yaml:1:1): the variable TOKEN is not set in the environment of nlaunch "
            "[launch.secret]\n"
            "hint: export TOKEN=... before you call nlaunch, or read it from a file: secrets: {A: {file: "
            "PATH}}\n\n"
            "error: secret B (e.yaml:2:1): cannot open '/nowhere/token': No such file or directory "
            "[launch.secret]\n"
            "hint: write it there, or take it from a variable: secrets: {B: env}\n\n"
            "error: secret C (e.yaml:3:1): cannot open '/nowhere/.netrc': No such file or directory "
            "[launch.secret]\n"
            "hint: write it there, or take it from a variable: secrets: {C: env}\n"
            "\n3 errors\n");
}

bool none_alive(const fs::path&) {
  return false;
}

TEST_F(Folder, ARunIsFoundByPathIdOrName) {
  auto run = make_run_folder(folder_, "grpo");
  ASSERT_TRUE(run) << render(run.error());
  ASSERT_TRUE(make_attempt_folder(*run, 0));
  std::ofstream(run->folder / "plan.json") << "{}";
  EXPECT_EQ(fs::status(run->folder).permissions(), fs::perms::owner_all);
  EXPECT_EQ(find_run(folder_, run->folder.string(), none_alive), run->folder);
  EXPECT_EQ(find_run(folder_, run->id, none_alive), run->folder);
  EXPECT_EQ(find_run(folder_, "grpo", none_alive), run->folder);
  std::ofstream(run->folder / "events.jsonl") << "{\"event\":\"run\",\"job\":\"4711\"}\n";
  EXPECT_EQ(find_run(folder_, "4711", none_alive), run->folder);
  std::ofstream(run->folder / "job.json") << R"({"jobs":["99","100"]})";
  EXPECT_EQ(find_run(folder_, "100", none_alive), run->folder);
  EXPECT_FALSE(find_run(folder_, "10", none_alive));
  const auto unknown = find_run(folder_, "sft", none_alive);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(render(unknown.error()),
            "error: no run 'sft' in '" + folder_.string() +
                "': it is not a path, id, job or name of a run there (names: grpo) [launch.run]\n"
                "hint: give the run's path, or the directory that contains it with --runs-dir\n");
  const auto nowhere = find_run(folder_ / "not-there", "sft", none_alive);
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().first_message(),
            "no run 'sft': the directory '" + (folder_ / "not-there").string() + "' does not exist");
}

TEST_F(Folder, TwoRunsOfOneIdHaveFoldersOfTheirOwn) {
  const auto first = make_run_folder(folder_, "grpo", "20260131-120000-7").value();
  const auto second = make_run_folder(folder_, "grpo", "20260131-120000-7").value();
  const auto third = make_run_folder(folder_, "grpo", "20260131-120000-7").value();
  EXPECT_EQ(first.id, "20260131-120000-7");
  EXPECT_EQ(second.id, "20260131-120000-7-2");
  EXPECT_EQ(third.folder, folder_ / "grpo" / "20260131-120000-7-3");
  for (const auto* run : {&first, &second, &third}) {
    EXPECT_EQ(fs::status(run->folder).permissions(), fs::perms::owner_all);
    std::ofstream(run->folder / "plan.json") << "{}";
  }
  EXPECT_EQ(runs_of(folder_ / "grpo"), (std::vector{third.folder, second.folder, first.folder}));
}

TEST_F(Folder, ANameIsTheLiveRunThenTheLatestThatWasStartedThenTheNewest) {
  const auto make = [&](const std::string& id) {
    const auto folder = folder_ / "grpo" / id;
    fs::create_directories(folder);
    std::ofstream(folder / "plan.json") << "{}";
    return folder;
  };
  const auto first = make("20260131-115959-10");
  const auto second = make("20260131-120000-999");
  const auto third = make("20260131-120000-1000");
  fs::create_directories(folder_ / "grpo" / "20260131-120001-1001");  // of a preflight: there is no plan
  EXPECT_EQ(find_run(folder_, "grpo", none_alive), third);
  ASSERT_TRUE(point_latest({second.filename(), second, {}}));
  EXPECT_EQ(find_run(folder_, "grpo", none_alive), second);
  EXPECT_EQ(find_run(folder_, "grpo", [&](const fs::path& run) { return run == first; }), first);
  EXPECT_EQ(runs_of(folder_ / "grpo"), (std::vector{third, second, first}));
  std::ofstream(third / "job.json") << R"({"jobs":["7"]})";  // submitted just now
  EXPECT_EQ(find_run(folder_, "grpo", [&](const fs::path& run) { return run == first; }), third);
  std::ofstream(third / "events.jsonl") << "{}\n";
  EXPECT_EQ(find_run(folder_, "grpo", none_alive), second);
}

}  // namespace
}  // namespace nlaunch::launch
