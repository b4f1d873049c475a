#include "preflight/ask/events.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace nlaunch::preflight {
namespace {

/// A rank's report after these lines.
RankReport heard(std::initializer_list<std::string_view> lines) {
  RankReport report;
  for (const auto line : lines) EXPECT_TRUE(read_event(line, report)) << line;
  return report;
}

TEST(ReadEvent, KnowsWhoARankIs) {
  const auto report =
      heard({R"({"event":"identity","host_id":"h","host_id_source":"boot id","visible_devices":"0,1",
    "gpu":{"device":1,"bus_id":"b","uuid":"u","nvml_uuid":"n","free_bytes":77}})"});
  ASSERT_TRUE(report.identity);
  EXPECT_EQ(report.identity->host_id, "h");
  EXPECT_EQ(report.identity->host_id_source, "boot id");
  EXPECT_EQ(report.identity->visible_devices, "0,1");
  EXPECT_EQ(report.identity->device, 1);
  EXPECT_EQ(report.identity->bus_id, "b");
  EXPECT_EQ(report.identity->uuid, "u");
  EXPECT_EQ(report.identity->nvml_uuid, "n");
  EXPECT_EQ(report.identity->free_bytes, 77U);
}

TEST(ReadEvent, OfACpuSlotThereIsNoGpu) {
  const auto report = heard({R"({"event":"identity","host_id":"h","gpu":null})"});
  EXPECT_EQ(report.identity->device, -1);
  EXPECT_EQ(report.identity->bus_id, "");
  EXPECT_EQ(heard({R"({"event":"identity","gpu":{}})"}).identity->device, -1);
  EXPECT_EQ(heard({R"({"event":"identity","gpu":{}})"}).identity->free_bytes, 0U);
}

TEST(ReadEvent, FollowsARankThroughAGroup) {
  auto report = heard({R"({"event":"joining","group":"node 0"})"});
  EXPECT_TRUE(report.groups.at("node 0").joining);
  EXPECT_FALSE(report.groups.at("node 0").joined);
  report = heard({R"({"event":"joined","group":"node 0"})"});
  EXPECT_FALSE(report.groups.at("node 0").joining);
  EXPECT_TRUE(report.groups.at("node 0").joined);
  EXPECT_FALSE(report.done);
  report = heard({R"({"event":"done"})"});
  EXPECT_TRUE(report.done);
  EXPECT_TRUE(report.groups.empty());
}

TEST(ReadEvent, ReadsAResult) {
  auto report =
      heard({R"({"event":"result","group":"g","bytes":8,"elements":2,"wrong":1,"first_wrong":5,"expected":6,
    "found":7,"rank":3,"fault":"missing","seconds":0.5,"busbw":1e9})"});
  const auto& full = report.groups.at("g").results.at(0);
  EXPECT_EQ(full.bytes, 8U);
  EXPECT_EQ(full.elements, 2U);
  EXPECT_EQ(full.wrong, 1U);
  EXPECT_EQ(full.first_wrong, 5U);
  EXPECT_EQ(full.expected, 6U);
  EXPECT_EQ(full.found, 7U);
  EXPECT_EQ(full.rank, 3);
  EXPECT_EQ(full.fault, "missing");
  EXPECT_EQ(full.seconds, 0.5);
  EXPECT_EQ(full.busbw, 1e9);
  report =
      heard({R"({"event":"result","group":"g","bytes":8,"elements":2,"wrong":0,"seconds":0.5,"busbw":1})"});
  const auto& bare = report.groups.at("g").results.at(0);
  EXPECT_EQ(bare.first_wrong, 0U);
  EXPECT_EQ(bare.expected, 0U);
  EXPECT_EQ(bare.found, 0U);
  EXPECT_EQ(bare.rank, -1);
}

TEST(ReadEvent, ReadsTheTransportAndWhatNcclChose) {
  const auto report = heard(
      {R"({"event":"transport","group":"g","error":"e","network":"IB","pairs":[{"from":0,"to":1,"via":"P2P"}]})",
       R"({"event":"choice","group":"g","op":"broadcast","bytes":4,"algorithm":"Ring","protocol":"LL","channels":2})",
       R"({"event":"choice","group":"g","op":"new","bytes":4,"algorithm":"Ring","protocol":"LL","channels":2})",
       R"({"event":"workload","group":"g","workload":"step","wrong":3,"seconds":[0.1,0.2]})"});
  const auto& progress = report.groups.at("g");
  EXPECT_EQ(progress.transport_error, "e");
  EXPECT_EQ(progress.network, "IB");
  ASSERT_EQ(progress.pairs.size(), 1U);
  EXPECT_EQ(progress.pairs[0].from, 0U);
  EXPECT_EQ(progress.pairs[0].to, 1U);
  EXPECT_EQ(progress.pairs[0].via, "P2P");
  ASSERT_EQ(progress.choices.size(), 2U);
  EXPECT_EQ(progress.choices[0].op, Collective::broadcast);
  EXPECT_EQ(progress.choices[0].channels, 2U);
  EXPECT_EQ(progress.choices[1].op, Collective::all_reduce);
  ASSERT_EQ(progress.workloads.size(), 1U);
  EXPECT_EQ(progress.workloads[0].wrong, 3U);
  EXPECT_EQ(progress.workloads[0].seconds.size(), 2U);
}

TEST(ReadEvent, ReadsHowADrillEnded) {
  const auto end_of = [](std::string_view ended) {
    const auto report = heard({R"({"event":"drill","group":"g","ended":")" + std::string(ended) +
                               R"(","launched":2,"text":"t","wrong":1,"seconds":3})"});
    return report.groups.at("g").drill->end;
  };
  EXPECT_EQ(end_of("completed"), DrillSeen::End::completed);
  EXPECT_EQ(end_of("waiting"), DrillSeen::End::waiting);
  EXPECT_EQ(end_of("blocked"), DrillSeen::End::blocked);
  EXPECT_EQ(end_of("failed"), DrillSeen::End::failed);
  EXPECT_EQ(end_of("of a later probe"), DrillSeen::End::failed);
}

TEST(ReadEvent, ReadsAnError) {
  const auto report =
      heard({R"({"event":"error","phase":"join","group":"g","kind":"failed","text":"no route"})"});
  ASSERT_EQ(report.errors.size(), 1U);
  EXPECT_EQ(report.errors[0].phase, "join");
  EXPECT_EQ(report.errors[0].group, "g");
  EXPECT_EQ(report.errors[0].kind, "failed");
  EXPECT_EQ(report.errors[0].text, "no route");
  EXPECT_TRUE(report.groups.empty());
}

TEST(ReadEvent, WhatIsNoneIsLeft) {
  for (const auto* line : {"", "{", "[]", "7", "null", R"({"event":7})", R"({"event":"joining"})",
                           R"({"event":"result","group":"g"})", R"({"event":"identity"})"}) {
    RankReport report;
    EXPECT_FALSE(read_event(std::string_view(line), report)) << line;
  }
  EXPECT_TRUE(heard({R"({"event":"of a later probe","group":"g"})"}).groups.contains("g"));
}

}  // namespace
}  // namespace nlaunch::preflight
