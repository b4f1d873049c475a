#include <gtest/gtest.h>

#include "report/fold.h"
#include "report/heat_map.h"
#include "report/html.h"
#include "report/preflight_html.h"
#include "report/preflight_prometheus.h"
#include "report/preflight_text.h"

namespace nlaunch::report {
namespace {

using preflight::Figure;
using preflight::Report;
using preflight::Status;

std::vector<Figure> pairs(const std::string& host, int gpus) {
  std::vector<Figure> out;
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < gpus; ++b) {
      if (a != b)
        out.push_back({"p2p", host, "GPU " + std::to_string(a), "GPU " + std::to_string(b),
                       a == 1 && b == 0 ? 38e9 : 390e9, "B/s"});
    }
  }
  return out;
}

TEST(HostList, IsAsSlurmWritesIt) {
  EXPECT_EQ(host_list({}), "");
  EXPECT_EQ(host_list({"login"}), "login");
  EXPECT_EQ(host_list({"n2", "n1", "n3", "n3", "n9"}), "n[1-3,9]");
  EXPECT_EQ(host_list({"nid000009", "nid000010", "gpu1", "b"}), "b, gpu1, nid[000009-000010]");
  EXPECT_EQ(host_list({"n9", "n10"}), "n9, n10");
  EXPECT_EQ(host_list({"a12345678901234567890", "a12345678901234567891"}),
            "a12345678901234567890, a12345678901234567891");
}

TEST(Html, LeavesNoMarkup) {
  EXPECT_EQ(html("<script>\"a\" & 'b'\n\x1b"), "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;\\n\\x1b");
  EXPECT_EQ(thousands(12), "12");
  EXPECT_EQ(thousands(1234567), "1,234,567");
}

TEST(HeatMap, NamesAreInTheOrderOfTheirNumbersAndClassesFollowTheMedian) {
  const auto matrices = pair_matrices(pairs("", 12));
  ASSERT_EQ(matrices.size(), 1U);
  EXPECT_EQ(matrices[0].names.back(), "GPU 11");
  EXPECT_EQ(matrices[0].median(), 390e9);
  EXPECT_EQ(heat_class(0.49), "h0");
  EXPECT_EQ(heat_class(0.5), "h1");
  EXPECT_EQ(heat_class(1.0), "h4");
  EXPECT_EQ(heat_class(1.2), "h5");
}

TEST(HeatMap, OfManyNodesTheMedianAndThoseWithASlowPair) {
  std::vector<Figure> figures;
  for (int node = 0; node < 9; ++node) {
    for (auto figure : pairs("n" + std::to_string(node), 4)) {
      if (node != 7) figure.value = 390e9;
      figures.push_back(figure);
    }
  }
  const auto page = heat_maps_html(figures);
  EXPECT_NE(page.find("<caption>median of 9 nodes "), std::string::npos);
  EXPECT_NE(page.find("<caption>n7 "), std::string::npos);
  EXPECT_EQ(page.find("<caption>n1 "), std::string::npos);
}

TEST(HeatMap, ClocksAreNoLinks) {
  EXPECT_EQ(heat_maps_html({{"clock", "b", "b", "a", 1e-5, "s"}}), "");
}

TEST(PreflightText, HasAMatrixOfPairs) {
  Report report;
  report.figures = pairs("", 3);
  EXPECT_EQ(preflight_table(report, Paint(false)),
            "\n\nfigure  count  median      min        max         where the minimum is\n"
            "p2p     6      390.0 GB/s  38.0 GB/s  390.0 GB/s  GPU 1 → GPU 0\n"
            "\np2p, GB/s  0    1    2\n"
            "GPU 0           390  390\n"
            "GPU 1      38        390\n"
            "GPU 2      390  390\n");
}

Report hostile() {
  Report report;
  report.plan = "a\"b\\c";
  report.site = "<b>";
  report.time = 1795284000;
  report.verdict = Status::fail;
  report.rows = {preflight::failed("gpus", "\"x\"\n", "<script>alert(1)</script>", "fine", {"a & b"})};
  report.rows[0].hosts = {"</script><script>"};
  report.nodes = {{"</script><script>", "x86_64", "<i>", 1, "1", "2"}, {"b", "x86_64", "<i>", 1, "1", "2"}};
  report.figures = {{"p2p", "<u>", "GPU 0", "GPU 1", 1e9, "B/s"}};
  report.measurements = {{"<g>", "all_reduce", "nccl", 2, 8, 1, 2.5, "node"},
                         {"<g>", "all_reduce", "nccl", 2, 16, 1, 2.5, "node"}};
  return report;
}

TEST(Page, ShowsWhatItIsGivenAndDoesNotRunIt) {
  const auto page = preflight_html(hostile());
  EXPECT_NE(page.find("&lt;script&gt;alert(1)&lt;/script&gt;"), std::string::npos);
  for (const auto* markup : {"<script>alert", "<g>", "<u>", "<i>", "</script><script>\"", "<b>,"})
    EXPECT_EQ(page.find(markup), std::string::npos) << markup;
  EXPECT_NE(page.find("[\"\\u003c/script>\\u003cscript>\",\"b\"]"), std::string::npos);
}

TEST(Prometheus, IsTheTextFormat) {
  auto report = hostile();
  report.figures.push_back({"clock", "b", "b", "", -0.25, "s"});
  EXPECT_EQ(preflight_prometheus(report), R"(# HELP nlaunch_preflight_info What was checked.
# TYPE nlaunch_preflight_info gauge
nlaunch_preflight_info{plan="a\"b\\c",site="<b>",level="standard"} 1
# HELP nlaunch_preflight_verdict 1 for the verdict of the last preflight, 0 for all others.
# TYPE nlaunch_preflight_verdict gauge
nlaunch_preflight_verdict{verdict="pass"} 0
nlaunch_preflight_verdict{verdict="warn"} 0
nlaunch_preflight_verdict{verdict="fail"} 1
nlaunch_preflight_verdict{verdict="unknown"} 0
# HELP nlaunch_preflight_fail_count Number of rows that fail.
# TYPE nlaunch_preflight_fail_count gauge
nlaunch_preflight_fail_count 1
# HELP nlaunch_preflight_check Rows of a check with this status.
# TYPE nlaunch_preflight_check gauge
nlaunch_preflight_check{check="gpus",status="pass"} 0
nlaunch_preflight_check{check="gpus",status="warn"} 0
nlaunch_preflight_check{check="gpus",status="fail"} 1
nlaunch_preflight_check{check="gpus",status="unknown"} 0
nlaunch_preflight_check{check="gpus",status="skip"} 0
# HELP nlaunch_preflight_busbw_bytes_per_second Bus bandwidth of a collective at a message size in bytes.
# TYPE nlaunch_preflight_busbw_bytes_per_second gauge
nlaunch_preflight_busbw_bytes_per_second{group="<g>",op="all_reduce",backend="nccl",size="8"} 2.5
nlaunch_preflight_busbw_bytes_per_second{group="<g>",op="all_reduce",backend="nccl",size="16"} 2.5
# HELP nlaunch_preflight_collective_seconds Time of one collective at a message size in bytes.
# TYPE nlaunch_preflight_collective_seconds gauge
nlaunch_preflight_collective_seconds{group="<g>",op="all_reduce",backend="nccl",size="8"} 1
nlaunch_preflight_collective_seconds{group="<g>",op="all_reduce",backend="nccl",size="16"} 1
# HELP nlaunch_preflight_figure_bytes_per_second Figures of GPUs and links: minimum and median of a node.
# TYPE nlaunch_preflight_figure_bytes_per_second gauge
nlaunch_preflight_figure_bytes_per_second{what="p2p",host="<u>",stat="min"} 1000000000
nlaunch_preflight_figure_bytes_per_second{what="p2p",host="<u>",stat="median"} 1000000000
# HELP nlaunch_preflight_figure_seconds Figures of GPUs and links: minimum and median of a node.
# TYPE nlaunch_preflight_figure_seconds gauge
nlaunch_preflight_figure_seconds{what="clock",host="b",stat="min"} -0.25
nlaunch_preflight_figure_seconds{what="clock",host="b",stat="median"} -0.25
# HELP nlaunch_preflight_elapsed_seconds How long the preflight took.
# TYPE nlaunch_preflight_elapsed_seconds gauge
nlaunch_preflight_elapsed_seconds 0
# HELP nlaunch_preflight_timestamp_seconds When the preflight ended, in seconds since 1970.
# TYPE nlaunch_preflight_timestamp_seconds gauge
nlaunch_preflight_timestamp_seconds 1795284000
)");
}

}  // namespace
}  // namespace nlaunch::report
