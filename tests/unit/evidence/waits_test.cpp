#include "evidence/analyzers/waits.h"

#include <gtest/gtest.h>

#include <string>

namespace nlaunch::evidence {
namespace {

using Members = std::set<std::size_t>;

TEST(Blame, IsOnWhoIsWaitedForAndWaitsForNobody) {
  const auto result = blame({{0, {1}}, {1, {2}}, {3, {1}}});
  EXPECT_TRUE(result.sure);
  EXPECT_EQ(result.whom, Members{2});
  EXPECT_EQ(blame({{0, {1}}, {1, {}}}).whom, Members{1}) << "it waits for nobody";
}

TEST(Blame, OfACircleIsOnAllOfIt) {
  const auto result = blame({{0, {1}}, {1, {0}}});
  EXPECT_FALSE(result.sure);
  EXPECT_EQ(result.whom, (Members{0, 1}));
}

TEST(Blame, IsOnNobodyWhereNobodyWaits) {
  EXPECT_FALSE(blame({}).sure);
  EXPECT_TRUE(blame({}).whom.empty());
}

TEST(Listed, IsASentencesList) {
  EXPECT_EQ(listed({}), "");
  EXPECT_EQ(listed({"0"}), "0");
  EXPECT_EQ(listed({"0", "1"}), "0 and 1");
  EXPECT_EQ(listed({"0", "1", "2"}), "0, 1 and 2");
  EXPECT_EQ(listed({"0", "1", "2", "3", "4", "5", "6", "7"}), "0, 1, 2, 3, 4, 5, 6 and 7");
  EXPECT_EQ(listed({"0", "1", "2", "3", "4", "5", "6", "7", "8"}), "0, 1, 2, 3, 4, 5, 6, 7 and 1 more");
  EXPECT_EQ(listed({"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
}

TEST(WaitsInNetwork, IsKnownByTheKernelsFunction) {
  Member member;
  for (const auto* channel : {"wait_woken", "sk_wait_data", "ep_poll", "do_poll.constprop.0", "do_sys_poll",
                              "poll_schedule_timeout.constprop.0", "inet_csk_accept"}) {
    member.wait_channel = channel;
    EXPECT_TRUE(waits_in_network(member)) << channel;
  }
  for (const auto* channel : {"", "futex_do_wait", "hrtimer_nanosleep", "pipe_read"}) {
    member.wait_channel = channel;
    EXPECT_FALSE(waits_in_network(member)) << channel;
  }
}

TEST(WaitsInNetwork, IsKnownByTheInnermostFunction) {
  Member member;
  for (const std::string call :
       {"recv", "recvfrom", "poll", "ppoll", "epoll_wait", "select", "accept", "accept4"}) {
    for (const auto* prefix : {"", "__", "__libc_"}) {
      member.native = {{prefix + call, "libc.so.6", 0}, {"main", "", 0}};
      EXPECT_TRUE(waits_in_network(member)) << prefix << call;
    }
  }
  member.native = {{"futex_wait", "libc.so.6", 0}, {"recv", "", 0}};
  EXPECT_FALSE(waits_in_network(member)) << "it has called something else on the way";
}

Member connected(const char* local, const char* peer) {
  Member member;
  member.connections = {{"10.0.0.9:1", "10.0.0.9:2"}, {local, peer}};
  return member;
}

TEST(AreConnected, NeedsBothEnds) {
  const auto client = connected("10.0.0.1:40000", "10.0.0.2:8000");
  EXPECT_TRUE(are_connected(client, connected("10.0.0.2:8000", "10.0.0.1:40000")));
  EXPECT_FALSE(are_connected(client, connected("10.0.0.2:8000", "10.0.0.1:40001")));
  EXPECT_FALSE(are_connected(client, connected("10.0.0.2:8001", "10.0.0.1:40000")));
  EXPECT_FALSE(are_connected(client, client));
  EXPECT_FALSE(are_connected(client, Member()));
}

TEST(WaitsForAnswerOf, NeedsAConnectionAndToWaitForTheNetwork) {
  auto client = connected("10.0.0.1:40000", "10.0.0.2:8000");
  const auto server = connected("10.0.0.2:8000", "10.0.0.1:40000");
  EXPECT_FALSE(waits_for_answer_of(client, server));
  client.wait_channel = "sk_wait_data";
  EXPECT_TRUE(waits_for_answer_of(client, server));
  EXPECT_FALSE(waits_for_answer_of(client, Member()));
}

/// Waits outside of any collective, without a GPU.
Member at(Stack python) {
  Member member;
  member.state = 'S';
  member.python = std::move(python);
  return member;
}

bool own_thing(const Member& member, std::vector<Member> others = {}) {
  Evidence evidence;
  evidence.members = std::move(others);
  return does_own_thing(evidence, member);
}

TEST(DoesOwnThing, IsCodeThatWaitsForNobody) {
  EXPECT_TRUE(own_thing(at({{"load", "train.py", 5}})));
  EXPECT_FALSE(own_thing(at({}))) << "nothing tells";
  EXPECT_FALSE(own_thing(at({{"all_reduce", "torch/distributed/distributed_c10d.py", 1}})));
  auto member = at({{"load", "train.py", 5}});
  member.cuda = true;
  EXPECT_FALSE(own_thing(member)) << "it may wait for its GPU";
  member.cuda = false;
  member.server = Server();
  EXPECT_FALSE(own_thing(member)) << "its main thread waits for whoever comes";
}

TEST(DoesOwnThing, IsNotWhatWaitsForAnotherThread) {
  for (const auto* file :
       {"ray/worker.py", "threading.py", "queue.py", "selectors.py", "asyncio/base_events.py",
        "concurrent/futures/_base.py", "multiprocessing/queues.py", "aiohttp/client.py", "anyio/_core.py",
        "zmq/sugar/poll.py"})
    EXPECT_FALSE(own_thing(at({{"wait", file, 1}, {"load", "train.py", 5}}))) << file;
}

TEST(DoesOwnThing, OnTheNetworkIsSomebodyOutsideOfTheRun) {
  for (const auto* file :
       {"socket.py", "ssl.py", "http/client.py", "urllib/request.py", "urllib3/connection.py",
        "requests/api.py", "httpx/_client.py", "httpcore/_sync/http11.py"}) {
    auto client = at({{"readinto", file, 706}, {"ask", "train.py", 5}});
    client.connections = {{"10.0.0.1:40000", "10.0.0.2:8000"}};
    EXPECT_TRUE(own_thing(client)) << file;
    EXPECT_TRUE(own_thing(client, {connected("10.0.0.3:80", "10.0.0.1:40001")})) << file;
    EXPECT_FALSE(own_thing(client, {Member(), connected("10.0.0.2:8000", "10.0.0.1:40000")})) << file;
  }
}

}  // namespace
}  // namespace nlaunch::evidence
