#include "launch/job/slurm_job.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace nlaunch::launch {
namespace {

TEST(SubmittedId, IsThatOfTheJobWhateverElseIsPrinted) {
  const struct {
    const char* said;
    const char* id;
  } cases[] = {
      {"Submitted batch job 4711\n", "4711"},
      {"Submitted batch job 4711 on cluster gpu2\n", "4711"},
      {"Charging project 99\nSubmitted batch job 4711\nYour balance: 120 hours\n", "4711"},
      {"sbatch: Submitted batch job 4711\n", "4711"},
      {"4711\n", "4711"},
      {"4711;gpu2\n", "4711"},
      {"Charging project 99\n4711;gpu2\n", "4711"},
      {"your job is number 4711\n", "4711"},
      {"Submitted batch job\n", ""},
      {"", ""},
  };
  for (const auto& one : cases) EXPECT_EQ(submitted_id(one.said), one.id) << one.said;
}

TEST(SubmitJob, ARefusalOfSeveralLinesIsOneLine) {
  auto pattern = (std::filesystem::temp_directory_path() / "nlaunch-submit-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  const auto sbatch = (folder / "sbatch").string();
  std::ofstream(sbatch) << "#!/bin/sh\n"
                           "echo 'sbatch: error: Unable to contact slurm controller' >&2\n"
                           "echo 'sbatch: error: Batch job submission failed' >&2\nexit 1\n";
  std::filesystem::permissions(sbatch, std::filesystem::perms::owner_all);
  const auto id = submit_job({}, sbatch, folder / "job.sbatch", {"PATH=/usr/bin:/bin"});
  std::filesystem::remove_all(folder);
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().first_message(),
            sbatch +
                " exited with code 1: sbatch: error: Unable to contact slurm controller / sbatch: error: "
                "Batch job submission failed");
}

TEST(SubmitJob, ARefusedAccountSaysWhatToWrite) {
  auto pattern = (std::filesystem::temp_directory_path() / "nlaunch-submit-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  const auto sbatch = (folder / "sbatch").string();
  std::ofstream(sbatch) << "#!/bin/sh\necho 'sbatch: error: Batch job submission failed: Invalid account or "
                           "account/partition combination specified' >&2\nexit 1\n";
  std::filesystem::permissions(sbatch, std::filesystem::perms::owner_all);
  plan::Plan plan;
  plan.slurm.directives = {{"partition", "workq", "site.yaml:9:5"}};
  const auto id = submit_job(plan, sbatch, "/runs/job.sbatch", {"PATH=/usr/bin:/bin"});
  std::filesystem::remove_all(folder);
  ASSERT_FALSE(id);
  EXPECT_EQ(
      render(id.error()),
      fmt::format("error: {} exited with code 1: sbatch: error: Batch job submission failed: Invalid account "
                  "or account/partition combination specified [launch.submit]\n"
                  "note: --partition=workq is from site.yaml:9:5\n"
                  "hint: write `slurm: {{account: PROJECT}}` in the experiment, or --set "
                  "slurm.account=PROJECT; `sacctmgr show associations user=$USER "
                  "format=account%30,partition` lists yours; the script: /runs/job.sbatch\n",
                  sbatch));
}

TEST(ParseJobState, ReadsAJobThatWaits) {
  const auto job = parse_job_state(
      " JobId=5 JobName=q UserId=root(0) JobState=PENDING Reason=Resources Dependency=(null) "
      "StartTime=2026-11-21T12:00:00 EndTime=Unknown NodeList=(null) StdErr=/a/x.log StdIn=/dev/null "
      "StdOut=/a b/x.log "
      "Power= \n");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->state + " " + job->reason + " " + job->start + " [" + job->nodes + "] " + job->log,
            "PENDING Resources 2026-11-21T12:00:00 [] /a b/x.log");
  EXPECT_TRUE(job->pending());
  EXPECT_FALSE(job->over());
}

TEST(ParseJobState, TellsWhatIsOver) {
  for (const auto* state :
       {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"}) {
    EXPECT_TRUE(parse_job_state(std::string(" JobState=") + state + " Reason=None")->over()) << state;
  }
  for (const auto* state : {"RUNNING", "COMPLETING", "PENDING", "CONFIGURING", "REQUEUED", "SUSPENDED"}) {
    EXPECT_FALSE(parse_job_state(std::string(" JobState=") + state + " Reason=None")->over()) << state;
  }
  EXPECT_FALSE(parse_job_state("slurm_load_jobs error: Invalid job id specified"));
}

TEST(ParseKillWait, ReadsWhatScontrolShows) {
  using namespace std::chrono_literals;
  EXPECT_EQ(parse_kill_wait("KeepAliveTime           = SYSTEM_DEFAULT\n"
                            "KillOnBadExit           = 0\n"
                            "KillWait                = 45 sec\n"
                            "LaunchParameters        = (null)\n"),
            45s);
  EXPECT_EQ(parse_kill_wait("slurm_load_ctl_conf error: Unable to contact slurm controller\n"), std::nullopt);
  EXPECT_EQ(parse_kill_wait("KillWait                = (null)\n"), std::nullopt);
}

TEST(ParseComponent, FindsTheOneThatHasTheNode) {
  constexpr const char* kJob =
      "JobId=7 HetJobId=7 HetJobOffset=0 JobState=RUNNING ReqNodeList=(null) ExcNodeList=c1 NodeList=n[1-3] "
      "BatchHost=n1\n"
      "JobId=8 HetJobId=7 HetJobOffset=1 JobState=RUNNING ReqNodeList=(null) ExcNodeList=(null) NodeList=c1 "
      "BatchHost=c1\n";
  EXPECT_EQ(parse_component(kJob, "n2"), 0U);
  EXPECT_EQ(parse_component(kJob, "c1"), 1U);
  EXPECT_FALSE(parse_component(kJob, "n4"));
  EXPECT_FALSE(parse_component("JobId=7 JobState=RUNNING NodeList=n[1-3] BatchHost=n1\n", "n1"));
}

}  // namespace
}  // namespace nlaunch::launch
