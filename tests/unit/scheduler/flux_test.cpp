#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scheduler/scheduler.h"

namespace nlaunch::scheduler {
namespace {

namespace fs = std::filesystem;

/// A folder whose program `flux` is a stand-in: it says the same whatever it is asked.
class Flux : public testing::Test {
 protected:
  Flux() {
    std::string pattern = fs::temp_directory_path() / "nlaunch-flux.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Flux() override { fs::remove_all(folder_); }

  std::vector<std::string> saying(const std::string& script) {
    const auto file = folder_ / "flux";
    std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(file, fs::perms::owner_all);
    return {"PATH=" + folder_.string() + ":/usr/bin:/bin", "FLUX_ENCLOSING_ID=f7", "FLUX_URI=local:///x"};
  }

  fs::path folder_;
  const Scheduler& flux_ = *find("flux");
};

TEST_F(Flux, StatesAreThoseOfFluxJobs) {
  using Phase = JobState::Phase;
  const std::pair<const char*, Phase> all[] = {
      {"DEPEND", Phase::pending}, {"PRIORITY", Phase::pending}, {"SCHED", Phase::pending},
      {"RUN", Phase::running},    {"CLEANUP", Phase::running},  {"COMPLETED", Phase::over},
      {"FAILED", Phase::over},    {"CANCELED", Phase::over},    {"TIMEOUT", Phase::over}};
  for (const auto& [word, phase] : all) {
    const auto environment = saying(std::string("printf '") + word + "\\tn[1-2]\\twhy not\\n'");
    const auto state = flux_.state("f1", environment);
    ASSERT_TRUE(state && *state) << word;
    EXPECT_EQ((*state)->phase, phase) << word;
    EXPECT_EQ((*state)->state, word);
    EXPECT_EQ((*state)->nodes, "n[1-2]");
    EXPECT_EQ((*state)->reason, "why not");
  }
}

TEST_F(Flux, AJobThatIsNotKnownIsNone) {
  const auto gone = flux_.state("f1", saying("echo 'flux-jobs: ERROR: JobID f1 unknown' >&2; exit 1"));
  ASSERT_TRUE(gone);
  EXPECT_FALSE(*gone);
  const auto failed = flux_.state("f1", saying("echo 'flux-jobs: ERROR: no broker' >&2; exit 1"));
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.error().first_message().ends_with("flux-jobs: ERROR: no broker"));
}

TEST_F(Flux, AnInstanceIsKnownByItsHosts) {
  auto environment = saying("[ \"$*\" = 'getattr hostlist' ] && echo 'n[1-3,7]'");
  const auto job = flux_.detect(environment);
  ASSERT_TRUE(job && *job);
  EXPECT_EQ((*job)->nodes(), 4U);
  EXPECT_EQ((*job)->runs_dir({}), "");
  EXPECT_EQ((*job)->chaining({}, "", {}, {}), nullptr);
  plan::Plan plan;
  plan.node.count = 5;
  EXPECT_EQ((*job)->misfit(plan), "job f7 has 4 nodes, but the plan uses 5");
  environment.emplace_back("FLUX_JOB_ID=f9");  // a task of a job
  EXPECT_EQ(flux_.detect(environment).value(), nullptr);
  const auto wrong = flux_.detect(saying("echo 'n['"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().first_message(), "the hostlist of job f7 is 'n[', which is not a list of nodes");
}

TEST_F(Flux, AScriptHasNoValueThatFluxWouldTakeForAnother) {
  plan::Plan plan;
  plan.name = "grpo";
  plan.scheduler = "flux";
  plan.flux.submit = {"flux"};
  const auto refused = [&](const std::string& runs) {
    const auto script = flux_.render(plan, {(folder_ / runs).string(), "nlaunch", {}, ""}, {});
    EXPECT_FALSE(fs::exists(folder_ / runs));
    return script ? "" : script.error().items().front().hint;
  };
  EXPECT_EQ(refused("it's"),
            "quotes, backslashes, line breaks and other control characters are not allowed there");
  EXPECT_EQ(refused("{{id}}"), "double braces have a special meaning there: use another --runs-dir");
}

}  // namespace
}  // namespace nlaunch::scheduler
