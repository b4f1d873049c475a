#include <nlohmann/json.hpp>

#include "probe/rank/rehearsal.h"

#include <gtest/gtest.h>

namespace nlaunch::probe {
namespace {

using namespace std::chrono_literals;

/// Done after so many looks.
struct Fake : Rehearsal {
  int looks = 0;
  std::string error{};
  std::uint64_t damaged = 0;

  Result<void> prepare() override { return {}; }
  Result<void> launch(const std::vector<DrillLaunch>& /*launches*/) override { return {}; }
  Result<bool> finished() override {
    if (!error.empty()) return failure("probe.nccl", "{}", error);
    return looks-- <= 0;
  }
  Result<std::uint64_t> wrong() override { return damaged; }
};

TEST(Rehearsal, SaysWhatItSaw) {
  Fake well;
  well.looks = 2;
  well.damaged = 3;
  const auto seen = play(well, {{}, {}}, 10s);
  EXPECT_EQ(seen["ended"], "completed");
  EXPECT_EQ(seen["launched"], 2);
  EXPECT_EQ(seen["wrong"], 3);
}

TEST(Rehearsal, DoesNotWaitForEver) {
  Fake stuck;
  stuck.looks = 1'000'000;
  const auto seen = play(stuck, {{}}, 20ms);
  EXPECT_EQ(seen["ended"], "waiting");
  EXPECT_GE(seen["seconds"].get<double>(), 0.02);
  EXPECT_EQ(seen["wrong"], 0);
}

TEST(Rehearsal, TellsTheLibrarysWords) {
  Fake broken;
  broken.error = "collective: remote process exited";
  const auto seen = play(broken, {{}}, 1s);
  EXPECT_EQ(seen["ended"], "failed");
  EXPECT_EQ(seen["text"], "collective: remote process exited");
}

}  // namespace
}  // namespace nlaunch::probe
