#include "supervise/wire.h"

#include <gtest/gtest.h>

#include <csignal>

#include "base/json.h"

namespace nlaunch::supervise {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

TEST(Wire, EveryActionComesBackAsItWas) {
  const NodeAction actions[] = {action::Start{3},
                                action::AwaitReady{3},
                                action::SignalGroup{3, SIGTERM},
                                action::SignalProcess{3, SIGUSR1},
                                action::KillTree{3},
                                action::KillAll{},
                                action::CleanUp{3, true}};
  for (const auto& action : actions) {
    const auto message = to_message(action);
    const auto back = action_from(json::parse(message.dump()));
    EXPECT_EQ(back.index(), action.index()) << message;
    EXPECT_EQ(to_message(back), message);
  }
}

TEST(Wire, EveryNoticeComesBackAsItWas) {
  const Notice notices[] = {{1ms, notice::Started{2, 4711}},
                            {2ms, notice::NotStarted{2, "no such file"}},
                            {3ms, notice::Ready{2}},
                            {4ms, notice::NotReady{2, "http://h/: refused"}},
                            {5ms, notice::Ended{2, sys::WaitStatus(SIGSEGV)}},
                            {6ms, notice::CleanedUp{2, {"python (pid 5)"}}},
                            {7ms, notice::NotKillable{2}},
                            {8ms, notice::Signal{SIGTERM}},
                            {9ms, notice::Abort{"findings", 69}},
                            {10ms, notice::Trouble{"disk full"}}};
  for (const auto& notice : notices) {
    const auto message = to_message(notice);
    const auto back = notice_from(json::parse(message.dump()));
    EXPECT_EQ(back.what.index(), notice.what.index()) << message;
    EXPECT_EQ(to_message(back), message);
  }
}

TEST(Wire, WhatIsNotUtf8ComesBackReadable) {
  const auto message = to_message(Notice{1ms, notice::CleanedUp{2, {"d\xE4mon (pid 5)"}}});
  const auto back = notice_from(json::parse(json_text(message)));
  EXPECT_EQ(std::get<notice::CleanedUp>(back.what).killed, std::vector<std::string>{"d\uFFFDmon (pid 5)"});
}

TEST(Wire, WhatCannotBeReadIsAnException) {
  EXPECT_THROW(action_from({{"do", "dance"}, {"process", 1}}), std::domain_error);
  EXPECT_THROW(action_from({{"do", "start"}}), json::exception);
  EXPECT_THROW(notice_from({{"notice", "ended"}, {"at_ms", 1}, {"process", "x"}}), json::exception);
}

}  // namespace
}  // namespace nlaunch::supervise
