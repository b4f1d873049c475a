#include "plan/scheduler_part.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace nlaunch::plan {
namespace {

TEST(SchedulerPart, EachIsReadBackAsItWasWritten) {
  Plan plan;
  plan.slurm.directives = {{"partition", "workq", "site.yaml:3:4"}};
  plan.slurm.spares = 2;
  plan.beaker.image = "docker://x";
  plan.flux.directives = {{"queue", "batch", "site.yaml:3:4"}, {"unbuffered", "", "site.yaml:4:4"}};
  plan.flux.submit = {"flux"};
  for (const auto* name : {"slurm", "beaker", "flux"}) {
    const auto* part = find_part(name);
    ASSERT_NE(part, nullptr) << name;
    Plan other;
    part->read(part->write(plan), other);
    EXPECT_EQ(part->write(other), part->write(plan)) << name;
    EXPECT_NE(part->write(Plan()), part->write(plan)) << name;
  }
}

TEST(SchedulerPart, ThisMachineHasNone) {
  EXPECT_EQ(find_part("local"), nullptr);
}

TEST(SchedulerPart, OptionsAreThoseOfTheProgramThatSubmits) {
  const auto knows = [](const char* name, const char* option) {
    const auto all = find_part(name)->options();
    return std::ranges::find(all, option) != all.end();
  };
  EXPECT_TRUE(knows("slurm", "partition"));
  EXPECT_FALSE(knows("slurm", "bank"));
  EXPECT_TRUE(knows("flux", "bank"));
  EXPECT_FALSE(knows("flux", "partition"));
  EXPECT_EQ(find_part("beaker")->options, nullptr);
}

}  // namespace
}  // namespace nlaunch::plan
