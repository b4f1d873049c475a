#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "preflight/findings.h"
#include "preflight/report/figures.h"
#include "preflight/report/report_json.h"
#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

TEST(SpreadOf, HasTheLargerOfTheTwoInTheMiddle) {
  const auto one = spread_of({7});
  EXPECT_EQ(one.least, 7);
  EXPECT_EQ(one.median, 7);
  EXPECT_EQ(one.most, 7);
  const auto two = spread_of({9, 3});
  EXPECT_EQ(two.least, 3);
  EXPECT_EQ(two.median, 9);
  const auto five = spread_of({5, 1, 4, 2, 3});
  EXPECT_EQ(five.least, 1);
  EXPECT_EQ(five.median, 3);
  EXPECT_EQ(five.most, 5);
}

TEST(ExplainByUsers, OfASlowGpuOrGroupItsUserIsTheReason) {
  const Remedy by_rule{"report the node", Responsible::admin};
  const auto used = [](std::string host) {
    auto row = warned("gpu-processes", "GPU 1 (00000000:00:07.0)", "held by pid 997 (hog.py, alice, 2.1 GiB)",
                      "an idle GPU", {"stop your own processes: kill 997"});
    row.hosts = {std::move(host)};
    return row;
  };
  const auto fix_of = [&](std::string check, std::string subject, Row user) {
    std::vector<Row> rows{failed(std::move(check), std::move(subject), "slow", "fast", by_rule),
                          std::move(user)};
    rows[0].hosts = {"n0"};
    explain_by_users(rows);
    return fmt::format("{} ({})", rows[0].fix, name_of(rows[0].responsible));
  };
  constexpr auto kUser =
      "GPU 1 (00000000:00:07.0) is held by pid 997 (hog.py, alice, 2.1 GiB): stop your own processes: kill "
      "997 "
      "(user)";
  constexpr auto kRule = "report the node (admin)";
  EXPECT_EQ(fix_of("bandwidth", "node 0", used("n0")), kUser);
  EXPECT_EQ(fix_of("bandwidth", "node 0", used("n1")), kRule);
  EXPECT_EQ(fix_of("peers", "gemm GPU 1", used("n0")), kUser);
  EXPECT_EQ(fix_of("peers", "p2p GPU 1 → GPU 2", used("n0")), kUser);
  EXPECT_EQ(fix_of("peers", "gemm GPU 11", used("n0")), kRule);
  EXPECT_EQ(fix_of("baseline", "all_reduce of node 0 at 32MiB", used("n0")), kUser);
  EXPECT_EQ(fix_of("nvlink", "GPU 1", used("n0")), kRule);
  EXPECT_EQ(fix_of("bandwidth", "node 0", passed("gpu-processes", "4 GPUs", "not in use")), kRule);
}

TEST(PlaceOf, NamesTheHostOnce) {
  const auto place = [](const std::string& host, const std::string& from, const std::string& to = "") {
    return place_of({"p2p", host, from, to, 1, "B/s"});
  };
  EXPECT_EQ(place("", "GPU 3"), "GPU 3");
  EXPECT_EQ(place("n1", "GPU 3"), "n1 GPU 3");
  EXPECT_EQ(place("n1", "GPU 3", "GPU 4"), "n1 GPU 3 → GPU 4");
  EXPECT_EQ(place("n1", "n1", "n2"), "n1 → n2");
}

TEST(FigureText, IsWrittenByItsUnit) {
  EXPECT_EQ(figure_text(390.06e9, "B/s"), "390.1 GB/s");
  EXPECT_EQ(figure_text(612.34e12, "FLOP/s"), "612.3 TFLOP/s");
  EXPECT_EQ(figure_text(9.5e-5, "s"), "95.0 µs");
  EXPECT_EQ(figure_text(-0.5, "s"), "-500.00 ms");
  EXPECT_EQ(figure_text(0, "s"), "0.0 µs");
  EXPECT_EQ(figure_text(12.3456, "W"), "12.35 W");
}

Report some_report() {
  Report report;
  report.level = PreflightLevel::deep;
  report.rows = {passed("limits", "memlock", "unlimited"),
                 failed("gpus", "GPU 1", "gone", "there", {"look", Responsible::admin})};
  report.rows[1].hosts = {"n1"};
  report.verdict = worst(report.rows);
  report.measurements = {
      {"node 0", "all_reduce", "nccl", 2, 8, 0.5, 4e9, "node", 1e9, 2e9},
      {"world", "broadcast", "gloo", 3, 16, 0.25, 5e9},
  };
  report.figures = {{"gemm", "", "GPU 0", "", 4e14, "FLOP/s"}, {"p2p", "n1", "GPU 0", "GPU 1", 3e11, "B/s"}};
  report.nodes = {{"n1", "x86_64", "H200", 2, "580", "2.28.9"}};
  report.elapsed = 1500ms;
  report.cancelled = true;
  report.plan = "grpo";
  report.site = "lab";
  report.time = 1795284000;
  return report;
}

TEST(ReportJson, HasAllThatAProgramMayAskFor) {
  const auto out = to_json(some_report());
  EXPECT_EQ(out["level"], "deep");
  EXPECT_EQ(out["verdict"], "fail");
  EXPECT_EQ(out["elapsed"], 1.5);
  EXPECT_EQ(out["cancelled"], true);
  EXPECT_EQ(out["fail_count"], 1);
  EXPECT_EQ(out["rows"][0].dump(),
            R"({"check":"limits","expected":"","fix":"","status":"pass","subject":"memlock",)"
            R"("value":"unlimited","who":""})");
  EXPECT_EQ(out["rows"][1].dump(),
            R"({"check":"gpus","expected":"there","fix":"look","hosts":["n1"],"status":"fail",)"
            R"("subject":"GPU 1","value":"gone","who":"admin"})");
  EXPECT_EQ(
      out["measurements"][0].dump(),
      R"({"backend":"nccl","busbw":4000000000.0,"bytes":8,"floor":1000000000.0,"group":"node 0","kind":"node",)"
      R"("limit":2000000000.0,"op":"all_reduce","ranks":2,"seconds":0.5})");
  EXPECT_FALSE(out["measurements"][1].contains("floor"));
  EXPECT_FALSE(out["measurements"][1].contains("limit"));
  EXPECT_EQ(out["figures"][0].dump(),
            R"({"from":"GPU 0","unit":"FLOP/s","value":400000000000000.0,"what":"gemm"})");
  EXPECT_EQ(out["figures"][1].dump(),
            R"({"from":"GPU 0","host":"n1","to":"GPU 1","unit":"B/s","value":300000000000.0,"what":"p2p"})");
  EXPECT_EQ(out["nodes"][0].dump(),
            R"({"arch":"x86_64","driver":"580","gpu":"H200","gpus":2,"host":"n1","nccl":"2.28.9"})");
}

TEST(ReportJson, IsReadAsItWasWritten) {
  const auto out = to_json(some_report());
  const auto report = report_from_json(out);
  EXPECT_EQ(to_json(report), out);
  EXPECT_EQ(report.elapsed, 1500ms);
  EXPECT_EQ(report.time, 1795284000);
  EXPECT_EQ(report.measurements[1].floor, 0);
  EXPECT_EQ(report.measurements[1].limit, 0);
  EXPECT_EQ(report.rows[0].responsible, Responsible::nobody);
}

TEST(ReportJson, AnOlderOneHasLess) {
  auto out = to_json(some_report());
  for (const auto* key : {"plan", "site", "time"}) out.erase(key);
  const auto report = report_from_json(out);
  EXPECT_EQ(report.plan, "");
  EXPECT_EQ(report.time, 0);
}

TEST(ReportJson, AnUnknownWordIsNoReport) {
  auto out = to_json(some_report());
  out["rows"][0]["status"] = "splendid";
  EXPECT_THROW(report_from_json(out), std::domain_error);
}

TEST(FindingsJson, HasAllThatTheLeaderNeeds) {
  Findings findings;
  findings.rows = {passed("limits", "memlock", "unlimited")};
  findings.figures = {{"gemm", "", "GPU 0", "", 4e14, "FLOP/s"}};
  findings.summary = {"n1", "x86_64", "H200", 2, "580", "2.28.9"};
  Rank rank{3, 1, 2, 4, "learner rank 3 (n1 GPU 1)", 1};
  rank.library = {"/lib/libnccl.so.2", "2.28.9", "loader", "none"};
  rank.slow = {"NCCL_PROTO=LL"};
  rank.no_probe = "no glibc";
  findings.ranks = {rank};
  const auto back = findings_from_json(to_json(findings));
  ASSERT_EQ(back.ranks.size(), 1U);
  EXPECT_EQ(back.ranks[0].process, 3U);
  EXPECT_EQ(back.ranks[0].gpu, 1U);
  EXPECT_EQ(back.ranks[0].node, 2U);
  EXPECT_EQ(back.ranks[0].bound, 4U);
  EXPECT_EQ(back.ranks[0].subject, "learner rank 3 (n1 GPU 1)");
  EXPECT_EQ(back.ranks[0].device, 1);
  EXPECT_EQ(back.ranks[0].library.by, "loader");
  EXPECT_EQ(back.ranks[0].library.error, "none");
  EXPECT_EQ(back.ranks[0].slow, Lines{"NCCL_PROTO=LL"});
  EXPECT_EQ(back.ranks[0].no_probe, "no glibc");
  EXPECT_EQ(back.rows.size(), 1U);
  EXPECT_EQ(back.figures.size(), 1U);
  EXPECT_EQ(back.summary.driver, "580");
}

}  // namespace
}  // namespace nlaunch::preflight
