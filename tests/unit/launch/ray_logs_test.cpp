#include "launch/run_dir/ray_logs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

class RayLogs : public ::testing::Test {
 protected:
  RayLogs() {
    std::string pattern = "/tmp/nlaunch-ray-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~RayLogs() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((scratch() / name).parent_path());
    std::ofstream(scratch() / name) << text;
  }
  [[nodiscard]] std::string kept(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(target() / name).rdbuf();
    return text.str();
  }
  [[nodiscard]] fs::path scratch() const { return folder_ / "scratch"; }
  [[nodiscard]] fs::path target() const { return folder_ / "attempt-0" / "ray" / "n1"; }

 private:
  fs::path folder_;
};

TEST_F(RayLogs, AreKeptWithoutSecretsAndWithoutTheRestOfTheFolder) {
  write("session_2026/logs/raylet.out", "raylet ended\n");
  write("session_2026/logs/events/event_GCS.log", "token hf_0123456789\n");
  write("session_2026/sockets/plasma", "no log");
  write("other/logs/x.log", "of somebody else");
  write("session_2026/logs/worker.err", std::string(1U << 20U, 'a') + "the end\n");
  fs::create_directory_symlink("session_2026", scratch() / "session_latest");
  Masker masker;
  masker.add("hf_0123456789");
  keep_ray_logs(scratch(), target(), masker);
  EXPECT_EQ(kept("session_2026/raylet.out"), "raylet ended\n");
  EXPECT_EQ(kept("session_2026/events/event_GCS.log"), "token " + masker.mask("hf_0123456789") + "\n");
  EXPECT_TRUE(kept("session_2026/worker.err").ends_with("the end\n"));
  EXPECT_EQ(kept("session_2026/worker.err").size(), 1U << 20U);
  EXPECT_FALSE(fs::exists(target() / "session_latest"));
  EXPECT_FALSE(fs::exists(target() / "other"));
  EXPECT_FALSE(fs::exists(target() / "session_2026" / "plasma"));
}

TEST_F(RayLogs, WithoutASessionNothingIsMade) {
  write("vllm/socket", "x");
  keep_ray_logs(scratch(), target(), {});
  EXPECT_FALSE(fs::exists(target()));
}

}  // namespace
}  // namespace nlaunch::launch
