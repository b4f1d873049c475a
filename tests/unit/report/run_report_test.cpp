#include "report/run_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/run_report_facts.h"
#include "supervise/events.h"

namespace nlaunch::report {
namespace {

using record::Cause;
using record::Json;
using Kind = record::Cause::Kind;

std::string time_of(int at) {
  return fmt::format("2026-01-31T12:{:02}:{:02}.000Z", at / 60, at % 60);
}

Json event(int at, const std::string& what, Json fields = Json::object()) {
  fields["time"] = time_of(at);
  fields["event"] = what;
  return fields;
}

Json learner(int at, const std::string& what, Json fields = Json::object()) {
  fields["process"] = "learner.0";
  return event(at, what, std::move(fields));
}

/// Two jobs of a chain. The run fails once in the second one. `gpus`: on one node.
record::RunFiles chain(const std::vector<int>& gpus) {
  record::RunFiles run;
  run.folder = "runs/grpo/20260131-120000-4711";
  run.job = {{"submitted", time_of(0)}};
  run.plan = {{"name", "grpo"},
              {"roles", {{{"name", "learner"}, {"kind", "learner"}}}},
              {"processes", {{{"role", "learner"}, {"node", 0}, {"gpus", gpus}}}},
              {"watch", {{"progress", "step (\\d+)"}}}};
  run.events = {event(10, "run", {{"job", "7"}}),
                event(10, "attempt", {{"number", 0}}),
                event(20, "attempt-started"),
                learner(30, "process-started"),
                event(160, "run-ending", {{"outcome", "walltime"}, {"what", "stopped"}}),
                learner(170, "process-ended", {{"how", "exited with code 0"}}),
                event(170, "attempt-ended"),
                event(170, "end", {{"outcome", "walltime"}}),
                event(170, "goes-on", {{"job", "8"}}),
                event(400, "run", {{"job", "8"}}),
                event(400, "attempt", {{"number", 1}}),
                event(410, "attempt-started"),
                learner(420, "process-started"),
                learner(525, "process-ended", {{"how", "exited with code 1"}}),
                event(525, "run-ending",
                      {{"outcome", "failed"}, {"what", "learner.0 exited with code 1 after 115.0s"}}),
                event(530, "attempt-ended"),
                event(540, "attempt", {{"number", 2}}),
                event(545, "attempt-started"),
                learner(560, "process-started"),
                event(700, "run-ending", {{"outcome", "finished"}, {"what", "finished after 155.0s"}}),
                learner(700, "process-ended", {{"how", "exited with code 0"}}),
                event(705, "attempt-ended"),
                event(706, "end", {{"outcome", "finished"}})};
  const auto attempt = [&](unsigned number, std::vector<std::pair<int, int>> steps) {
    record::Attempt out{.number = number, .folder = {}};
    for (const auto& [at, step] : steps)
      out.steps.push_back(event(at, "step", {{"step", step}, {"seconds", 50}}));
    run.attempts.push_back(std::move(out));
  };
  attempt(0, {{90, 1}, {140, 2}});
  attempt(1, {{480, 3}});
  attempt(2, {{620, 3}, {670, 4}});
  run.attempts[1].diagnosis["findings"].push_back({{"why", "out of memory"}});
  return run;
}

TEST(RunReportText, TimeIsShownByPhaseAndByCause) {
  const auto files = chain({0, 1, 2, 3});
  const auto report = report_of(files, "finished", 0, false, false);
  EXPECT_EQ(run_report_text(report, Paint(false, 100)), R"(grpo 20260131-120000-4711
finished after 11m46s: 4 steps, 50.00 s/step (p90 50.00)
ETTR: 32.6 %; 49.4 % without the queue
GPU hours: 0.518, of which 0.256 productive (49.4 %)
step time: median 50.0 s, p90 50.0 s, longest 50.0 s, 0 slow

where the time went  time     share   GPU hours
queue                4m00s    34.0 %  0.000
preflight            25.0 s   3.5 %   0.028
loading              35.0 s   5.0 %   0.039
first step           30.0 s   4.2 %   0.033
productive           3m50s    32.6 %  0.256
lost                 115.0 s  16.3 %  0.128
restart              10.0 s   1.4 %   0.011
shutdown             21.0 s   3.0 %   0.023

what cost time                           time    GPU hours  of this
restart 1: learner.0 exited with code 1  2m20s   0.156      lost 95.0 s, loading 15.0 s, restart
after 115.0s: out of memory                                 10.0 s, first step 10.0 s, shutdown 5.0
                                                            s, preflight 5.0 s
walltime of job 7                        4m50s   0.067      queue 3m50s, lost 20.0 s, shutdown 10.0
                                                            s, first step 10.0 s, loading 10.0 s,
                                                            preflight 10.0 s
first start                              40.0 s  0.033      first step 10.0 s, loading 10.0 s,
                                                            preflight 10.0 s, queue 10.0 s
end of the run                           6.0 s   0.007      shutdown 6.0 s

process    starts  end
learner.0  3       exited with code 0

run directory: runs/grpo/20260131-120000-4711
)");
}

TEST(RunReportText, CausesOfManyRunsAreAddedUpByKind) {
  const auto files = chain({0, 1, 2, 3});
  const auto one = report_of(files, "finished", 0, false, false);
  const auto text = runs_report_text({one, one}, Paint(false));
  EXPECT_EQ(text.substr(text.find("what cost time")),
            R"(what cost time  times  time    GPU hours  of all GPU hours
failure         2      4m40s   0.311      30.0 %
walltime        2      9m40s   0.133      12.9 %
first start     2      80.0 s  0.067      6.4 %
end of the run  2      12.0 s  0.013      1.3 %
)");
  const auto json = run_report_json(one);
  EXPECT_EQ(json["causes"][1]["cause"], "walltime of job 7");
  EXPECT_EQ(json["causes"][1]["phases"][0], Json({{"phase", "queue"}, {"seconds", 230.0}}));
  EXPECT_TRUE(json["ettr_last_hour"].is_null());
}

TEST(RunReportText, WithoutGpusTimeIsShownAlone) {
  const auto files = chain({});
  const auto text = run_report_text(report_of(files, "finished", 0, false, false), Paint(false));
  EXPECT_EQ(text.find("GPU hours"), std::string::npos);
  EXPECT_NE(text.find("walltime of job 7"), std::string::npos);
}

TEST(RunReportText, CausesAreNamed) {
  const auto text = [](Cause cause) { return cause_line(cause); };
  EXPECT_EQ(text({.kind = Kind::first_start}), "first start");
  EXPECT_EQ(text({.kind = Kind::walltime, .what = "stopped", .job = "7"}), "walltime of job 7");
  EXPECT_EQ(text({.kind = Kind::walltime, .what = "stopped"}), "walltime");
  EXPECT_EQ(text({.kind = Kind::finished, .what = "finished after 3.0s"}), "end of the run");
  EXPECT_EQ(text({.kind = Kind::stall, .what = "no progress for 19 s", .why = "learner.1 waits"}),
            "stall: no progress for 19 s: learner.1 waits");
  EXPECT_EQ(
      text({.kind = Kind::failure, .what = "engine.1 exited with code 1", .why = "no memory", .restart = 2}),
      "restart 2: engine.1 exited with code 1: no memory");
  EXPECT_EQ(text({.kind = Kind::killed, .what = "job 7 was killed", .job = "7"}), "job 7 was killed");
  EXPECT_EQ(text({.kind = Kind::failure}), "failure");  // of an older version
  EXPECT_EQ(text({.kind = Kind::failure, .what = "a\x1b[31m"}), "a\\x1b[31m");
}

}  // namespace
}  // namespace nlaunch::report
