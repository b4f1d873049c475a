#include "probe/rank/transport_log.h"

#include <gtest/gtest.h>

#include <string>

namespace nlaunch::probe {
namespace {

/// From NCCL 2.28.9 on two H200.
constexpr auto kNvlink = R"(vm:1711:1722 [0] NCCL INFO Assigned NET plugin Socket to comm
vm:1711:1722 [0] NCCL INFO Using network Socket
vm:1711:1729 [1] NCCL INFO Channel 00/0 : 1[1] -> 0[0] via P2P/direct pointer
vm:1711:1730 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer
vm:1711:1729 [1] NCCL INFO Channel 01/0 : 1[1] -> 0[0] via P2P/direct pointer
vm:1711:1722 [0] NCCL INFO Channel 00/24 :    0   1
)";

TEST(TransportLog, CountsTheChannelsOfEachPair) {
  const auto log = read_transport_log(kNvlink);
  EXPECT_EQ(log.network, "Socket");
  EXPECT_EQ(log.pairs, (std::vector<PairTransport>{{1, 0, "P2P", "P2P/direct pointer", 2},
                                                   {0, 1, "P2P", "P2P/direct pointer", 1}}));
}

struct Line {
  const char* text;
  PairTransport pair;
};

TEST(TransportLog, KnowsTheFormsOfAllTransports) {
  const Line lines[] = {
      {"h:1:2 [0] NCCL INFO Channel 03/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
       {0, 1, "P2P", "P2P/CUMEM/read", 1}},
      {"h:1:2 [0] NCCL INFO Channel 00 : 2[1a000] -> 3[1b000] via P2P/IPC", {2, 3, "P2P", "P2P/IPC", 1}},
      {"h:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",
       {0, 1, "SHM", "SHM/direct/direct", 1}},
      {"h:1:2 [0] NCCL INFO Channel 01/0 : 3[3] -> 4[0] [send] via NET/Socket/0",
       {3, 4, "NET/Socket", "NET/Socket/0", 1}},
      {"h:1:2 [0] NCCL INFO Channel 01/0 : 7[3] -> 0[0] [receive] via NET/AWS Libfabric/2/GDRDMA",
       {7, 0, "NET/AWS Libfabric", "NET/AWS Libfabric/2/GDRDMA", 1}},
      {"h:1:2 [0] NCCL INFO Channel 01/0 : 7[3] -> 0[0] [receive] via NET/IB/2(3)/GDRDMA comm 0x5 nRanks 08",
       {7, 0, "NET/IB", "NET/IB/2(3)/GDRDMA", 1}},
  };
  for (const auto& line : lines) {
    const auto log = read_transport_log(line.text);
    ASSERT_EQ(log.pairs.size(), 1U) << line.text;
    EXPECT_EQ(log.pairs[0], line.pair) << line.text;
  }
}

TEST(Choice, IsTheLastThatTheLogTells) {
  const auto choice = read_choice(
      "h:1:2 [0] NCCL INFO AllReduce: 8 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}\n"
      "h:1:2 [0] NCCL INFO AllReduce: 22118400 Bytes -> Algo RING proto LL128 channel{Lo..Hi}={0..23}\n"
      "h:1:2 [0] NCCL INFO Init COMPLETE\n");
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->algorithm, "RING");
  EXPECT_EQ(choice->protocol, "LL128");
  EXPECT_EQ(choice->channels, 24U);
}

TEST(Choice, ReadsTheNumbersOfOlderReleases) {
  const auto choice =
      read_choice("h:1:2 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo 1 proto 2 time 34.5\n");
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->algorithm, "RING");
  EXPECT_EQ(choice->protocol, "SIMPLE");
  EXPECT_EQ(choice->channels, 0U);
}

TEST(Choice, IsNotThereWhereNothingTellsIt) {
  EXPECT_FALSE(read_choice("h:1:2 [0] NCCL INFO Using network Socket\n"));
}

TEST(TransportLog, PassesOverOtherLines) {
  EXPECT_TRUE(read_transport_log("").pairs.empty());
  EXPECT_TRUE(read_transport_log("NCCL INFO Channel 00/24 :    0   1\nNCCL INFO Channel x : y -> z via P2P")
                  .pairs.empty());
}

}  // namespace
}  // namespace nlaunch::probe
