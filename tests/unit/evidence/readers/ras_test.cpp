#include "evidence/readers/ras.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace nlaunch::evidence {
namespace {

// As client_support.cc of NCCL 2.28.9 writes it, the comma that it forgets included.
constexpr auto kJson = R"({
  "nccl_version": "2.28.9",
  "cuda_runtime_version": 12080,
  "cuda_driver_version": 13000,
  "timestamp": "2026-11-22 02:00:00",
  "communicators_count": 1,
  "communicators": [
    {
      "hash": "0xd1f2",
      "secondary_hash": "0x1:0x2",
      "size": 3,
      "ranks_count": 2,
      "missing_ranks_count": 1,
      "ranks": [
        {
          "rank": 0,
          "host": "10.0.0.1",
          "pid": 100,
          "cuda_dev": 0,
          "nvml_dev": 0,
          "status": {
            "init_state": 0,
            "async_error": 0,
            "finalize_called": false,
            "destroy_flag": false,
            "abort_flag": false
          },
          "collective_counts": {
            "Broadcast": 2,
            "AllReduce": 120
          }
        },
        {
          "rank": 1,
          "host": "10.0.0.1",
          "pid": 101,
          "cuda_dev": 1,
          "nvml_dev": 1,
          "status": {
            "init_state": 0,
            "async_error": 6,
            "finalize_called": false,
            "destroy_flag": false,
            "abort_flag": true
          },
          "collective_counts": {
            "Broadcast": 2,
            "AllReduce": 119
          }
        }
      ],
      "missing_ranks": [
        {
          "rank": 2,
          "host": "10.0.0.2",
          "pid": 102,
          "cuda_dev": 0,
          "nvml_dev": 0
          "status": {
            "unresponsive": true,
            "considered_dead": false
          }
        }
      ]
    }
  ],
  "ras": {
    "collection_time_sec": 0.012,
    "timeouts_count": 0
  }
}
)";

TEST(Ras, ReadsJson) {
  const auto report = read_ras(kJson);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->version, "2.28.9");
  ASSERT_EQ(report->communicators.size(), 1U);
  const auto& communicator = report->communicators[0];
  EXPECT_EQ(communicator.hash, "0xd1f2");
  EXPECT_EQ(communicator.size, 3);
  ASSERT_EQ(communicator.ranks.size(), 3U);
  EXPECT_EQ(communicator.ranks[0].launched.at("AllReduce"), 120);
  EXPECT_EQ(communicator.ranks[0].status, "RUNNING");
  EXPECT_EQ(communicator.ranks[1].status, "ABORT");
  EXPECT_TRUE(communicator.ranks[1].failed);
  EXPECT_TRUE(communicator.ranks[2].silent);
  EXPECT_EQ(communicator.ranks[2].address, "10.0.0.2");
  EXPECT_EQ(communicator.ranks[2].pid, 102);
}

TEST(Ras, ReadsTheTextOfOlderReleases) {
  const auto report = read_ras(
      "ERROR: Unknown command SET FORMAT json\n"
      "NCCL version 2.27.7 compiled with CUDA 12.9\n"
      "CUDA runtime version 12090, driver version 13000\n"
      "\n"
      "Job summary\n"
      "===========\n"
      "\n"
      "  Nodes  Processes         GPUs  Processes     GPUs\n"
      "(total)   per node  per process    (total)  (total)\n"
      "      2          4            1          8        8\n"
      "\n"
      "Communicators... (0.01s)\n"
      "=============\n"
      "\n"
      "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
      "    #  in group  per comm  per node  per comm  in group\n"
      "    0         1         2         4         8         8   RUNNING  INCOMPLETE,MISMATCH\n"
      "\n"
      "Errors\n"
      "======\n"
      "\n"
      "DEAD\n"
      "  1 job process is considered dead (unreachable via the RAS network)\n"
      "  Process 207 on node 10.0.0.2 managing GPU 3\n"
      "\n"
      "#0-0 (d1f2) INCOMPLETE\n"
      "  Missing communicator data from 1 rank\n"
      "  Rank 7 -- GPU 3 managed by process 207 on node 10.0.0.2\n"
      "\n"
      "Warnings\n"
      "========\n"
      "\n"
      "#0-0 (d1f2) MISMATCH\n"
      "  Communicator ranks have different AllReduce operation counts\n"
      "  5 ranks have launched up to operation 120\n"
      "  Rank 2 has launched up to operation 119 -- GPU 2 managed by process 102 on node 10.0.0.1\n"
      "  Rank 3 has not launched any operations -- GPU 3 (NVML 1) managed by process 103 on node 10.0.0.1\n"
      "\n");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->version, "2.27.7");
  ASSERT_EQ(report->processes.size(), 1U);
  EXPECT_TRUE(report->processes[0].dead);
  EXPECT_EQ(report->processes[0].pid, 207);
  ASSERT_EQ(report->communicators.size(), 1U);
  const auto& communicator = report->communicators[0];
  EXPECT_EQ(communicator.usual.at("AllReduce"), 120);
  EXPECT_EQ(communicator.size, 8);
  ASSERT_EQ(communicator.ranks.size(), 3U);
  EXPECT_EQ(communicator.ranks[0].rank, 7);
  EXPECT_TRUE(communicator.ranks[0].silent);
  EXPECT_EQ(communicator.ranks[1].rank, 2);
  EXPECT_EQ(communicator.ranks[1].launched.at("AllReduce"), 119);
  EXPECT_EQ(communicator.ranks[1].pid, 102);
  EXPECT_EQ(communicator.ranks[2].launched.at("AllReduce"), 0);
}

TEST(Ras, PassesOverNumbersThatAreTooLarge) {
  const auto report = read_ras(
      "NCCL version 2.28.9 compiled with CUDA 13.0\n"
      "\n"
      "DEAD\n"
      "  Process 99999999999999999999 on node 10.0.0.1 managing GPU 0\n"
      "  Process 207 on node 10.0.0.2 managing GPU 7\n"
      "\n"
      "#0-0 (d1f2) MISMATCH\n"
      "  Communicator ranks have different AllReduce operation counts\n"
      "  5 ranks have launched up to operation 99999999999999999999\n"
      "  Rank 99999999999 has not launched any operations -- GPU 2 managed by process 102 on node 10.0.0.1\n"
      "  Rank 3 has not launched any operations -- GPU 3 managed by process 99999999999 on node 10.0.0.1\n"
      "  Rank 4 has launched up to operation 99999999999999999999 -- GPU 4 managed by process 104 on node "
      "10.0.0.1\n"
      "  Rank 5 has launched up to operation 119 -- GPU 5 managed by process 105 on node 10.0.0.1\n");
  ASSERT_TRUE(report);
  ASSERT_EQ(report->processes.size(), 1U);
  EXPECT_EQ(report->processes[0].pid, 207);
  ASSERT_EQ(report->communicators.size(), 1U);
  EXPECT_TRUE(report->communicators[0].usual.empty());
  ASSERT_EQ(report->communicators[0].ranks.size(), 1U);
  EXPECT_EQ(report->communicators[0].ranks[0].rank, 5);
}

TEST(Ras, SaysWhatIsNone) {
  EXPECT_EQ(read_ras("HTTP/1.1 400 Bad Request\n").error().first_message(),
            "unexpected answer from NCCL's RAS");
  EXPECT_EQ(read_ras("{\"communicators\": [").error().first_message(),
            "NCCL's RAS answered with invalid JSON");
  EXPECT_EQ(read_ras("{\"communicators\": [{\"size\": \"many\"}]}").error().first_message(),
            "unexpected answer from NCCL's RAS: [json.exception.type_error.302] type must be number, but is "
            "string");
}

}  // namespace
}  // namespace nlaunch::evidence
