#include "evidence/readers/gpu_use.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace nlaunch::evidence {
namespace {

std::string sample(double busy, double power) {
  return fmt::format(
      R"({{"at":1,"gpus":[{{"bus_id":"00000000:1B:00.0","busy":{},"power":{},"power_limit":700}}]}})"
      "\n",
      busy, power);
}

GpuUse use_of(const std::string& lines) {
  return read_gpu_use(lines).at("00000000:1B:00.0");
}

TEST(GpuUse, IsSpinningWhereItIsBusyAndDrawsFarLessThanAtWork) {
  std::string lines;
  for (int i = 0; i < 10; ++i) lines += sample(90 + i, 500);
  EXPECT_FALSE(use_of(lines).spins());
  for (int i = 0; i < 3; ++i) lines += sample(100, 140);
  const auto use = use_of(lines);
  EXPECT_TRUE(use.spins());
  EXPECT_FALSE(use.idle());
  EXPECT_EQ(use.power_now, 140);
  EXPECT_EQ(use.working, 500);
}

TEST(GpuUse, OfAGpuThatHasNeverWorkedIsHeldAgainstItsLimit) {
  EXPECT_TRUE(use_of(sample(100, 140)).spins());
  EXPECT_FALSE(use_of(sample(100, 600)).spins());
  EXPECT_TRUE(use_of(sample(0, 70)).idle());
}

TEST(GpuUse, LeavesOutWhatIsNoSample) {
  EXPECT_TRUE(read_gpu_use("").empty());
  EXPECT_TRUE(
      read_gpu_use("{\"error\":\"no NVML\"}\nnot json\n[1]\n{\"gpus\":[{}]}\n{\"gpus\":3}\n").empty());
  EXPECT_TRUE(use_of(sample(100, 140) + R"({"at":2,"gpus":[{"bus_id":"0000)").spins());
  const auto poor = read_gpu_use(R"({"gpus":[{"bus_id":"a","busy":100}]})");
  EXPECT_FALSE(poor.at("a").spins());
}

}  // namespace
}  // namespace nlaunch::evidence
