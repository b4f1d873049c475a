#include "launch/slurm_job.h"

#include <gtest/gtest.h>

namespace nlaunch::launch {
namespace {

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

}  // namespace
}  // namespace nlaunch::launch
