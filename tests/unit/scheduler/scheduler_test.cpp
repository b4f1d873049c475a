#include "scheduler/scheduler.h"

#include <gtest/gtest.h>

namespace nlaunch::scheduler {
namespace {

// --- all that a scheduler of its own takes ---

const Registered<SchedulerTraits> toy_traits{
    {.name = "toy", .order = 50, .title = "Toy", .submit = "toyq", .allocate = "toyalloc"}};

class ToyJob : public CurrentJob {
 public:
  [[nodiscard]] std::uint32_t nodes() const override { return 3; }
  [[nodiscard]] std::string misfit(const plan::Plan& plan) const override {
    return plan.node.count > nodes() ? "too small" : "";
  }
  [[nodiscard]] std::unique_ptr<session::RunTarget> target(const plan::Plan& /*plan*/, bool /*share*/,
                                                           const session::Caller& /*caller*/) const override {
    return nullptr;
  }
};

class Toy : public Scheduler {
 public:
  [[nodiscard]] Result<std::unique_ptr<CurrentJob>> detect(
      const std::vector<std::string>& environment) const override {
    if (environment.empty()) return nullptr;
    return std::make_unique<ToyJob>();
  }
  [[nodiscard]] Result<Rendered> render(const plan::Plan& plan, const JobRequest& request,
                                        const std::vector<std::string>& /*environment*/) const override {
    return Rendered{"run " + plan.name + "\n", {"toyq", request.output}, {}};
  }
  [[nodiscard]] int submit(const plan::Plan& /*plan*/, const SubmitOptions& /*options*/,
                           const session::Caller& /*caller*/) const override {
    return 0;
  }
  [[nodiscard]] Result<std::optional<JobState>> state(
      const std::string& /*job*/, const std::vector<std::string>& /*environment*/) const override {
    return std::nullopt;
  }
  [[nodiscard]] Result<void> cancel(const std::string& /*job*/, Cancel /*how*/,
                                    const std::vector<std::string>& /*environment*/) const override {
    return {};
  }
};

const Scheduler& the_toy() {
  static const Toy toy;
  return toy;
}
const Registered<SchedulerEntry> registered{{"toy", 0, the_toy}};

// --- and what is known of it then ---

plan::Plan a_plan(std::string scheduler) {
  plan::Plan plan;
  plan.name = "grpo";
  plan.site = "big";
  plan.scheduler = std::move(scheduler);
  return plan;
}

TEST(Scheduler, OneFileAddsOne) {
  const auto plan = a_plan("toy");
  const auto* toy = find(plan.scheduler);
  ASSERT_NE(toy, nullptr);
  const auto rendered = toy->render(plan, {"runs", "nlaunch", {}, "job"}, {});
  ASSERT_TRUE(rendered);
  EXPECT_EQ(rendered->text, "run grpo\n");
  EXPECT_EQ(rendered->submit, (std::vector<std::string>{"toyq", "job"}));
  EXPECT_EQ(describe(plan), "site 'big' is reached through Toy, and this is not an allocation");
}

TEST(Scheduler, ItsJobIsFoundWhereItIs) {
  EXPECT_EQ(current_allocation("toy", {}).value(), nullptr);
  const auto job = current_allocation("toy", {"TOY=1"});
  ASSERT_TRUE(job && *job);
  EXPECT_EQ((*job)->nodes(), 3U);
  EXPECT_FALSE((*job)->follows());
  EXPECT_EQ((*job)->no_comparison(), "");
}

TEST(Scheduler, ThoseThatComeWithNlaunch) {
  std::vector<std::string> names;
  for (const auto* traits : all_schedulers()) names.emplace_back(traits->name);
  EXPECT_EQ(names, (std::vector<std::string>{"slurm", "beaker", "flux", "toy", "local"}));
  for (const auto* traits : all_schedulers())
    EXPECT_EQ(find(traits->name) != nullptr, !traits->submit.empty()) << traits->name;
  EXPECT_EQ(find("pbs"), nullptr);
  EXPECT_THROW(static_cast<void>(traits_of("pbs")), std::out_of_range);
}

TEST(Scheduler, OutsideOfJobsThereIsNone) {
  for (const auto* name : {"slurm", "beaker", "flux", "local"}) {
    const auto job = current_job(name, {"HOME=/"});
    ASSERT_TRUE(job) << name;
    EXPECT_EQ(*job, nullptr) << name;
  }
}

TEST(Scheduler, AJobThatAllocatesNothingIsNotForCommands) {
  const std::vector<std::string> inside{"BEAKER_JOB_ID=x"};
  EXPECT_NE(current_job("beaker", inside).value(), nullptr);
  EXPECT_EQ(current_allocation("beaker", inside).value(), nullptr);
  EXPECT_EQ(describe(a_plan("beaker")),
            "site 'big' is reached through Beaker, and this is not one of its jobs");
}

TEST(Scheduler, SlurmsAllocationFitsOrSaysWhyNot) {
  const auto job = current_job("slurm", {"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n[1-2]"});
  ASSERT_TRUE(job && *job);
  auto plan = a_plan("slurm");
  EXPECT_EQ((*job)->misfit(plan), "");
  plan.node.count = 3;
  EXPECT_EQ((*job)->misfit(plan), "job 17 has 2 nodes, but the plan uses 3");
}

}  // namespace
}  // namespace nlaunch::scheduler
