#include "sys/oom_kills.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace nlaunch::sys {
namespace {

class OomKills : public ::testing::Test {
 protected:
  OomKills() {
    std::string pattern = "/tmp/nlaunch-cgroup-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~OomKills() override { std::filesystem::remove_all(folder_); }

  void write(const std::filesystem::path& name, const std::string& text) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  [[nodiscard]] std::optional<std::uint64_t> count(const std::string& membership) const {
    return oom_kills(folder_ / membership, folder_);
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(OomKills, OfBothVersionsOfCgroups) {
  write("v2", "0::/system.slice/slurmstepd.scope/job_7/step_0\n");
  write("system.slice/slurmstepd.scope/job_7/step_0/memory.events",
        "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\n");
  EXPECT_EQ(count("v2"), 2);
  write("v1", "5:devices:/\n4:memory:/slurm/uid_1000/job_7\n0::/\n");
  write("memory/slurm/uid_1000/job_7/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  EXPECT_EQ(count("v1"), 5);
}

TEST_F(OomKills, AreUnknownWhereNothingCountsThem) {
  EXPECT_EQ(count("cgroup"), std::nullopt);
  write("cgroup", "0::/\nno line of a cgroup\n");
  EXPECT_EQ(count("cgroup"), std::nullopt);
}

}  // namespace
}  // namespace nlaunch::sys
