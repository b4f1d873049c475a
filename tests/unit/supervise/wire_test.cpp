#include "supervise/wire.h"

#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

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
  const ProcessEvent notices[] = {{1ms, process_event::Started{2, 4711}},
                                  {2ms, process_event::NotStarted{2, "no such file"}},
                                  {3ms, process_event::Ready{2}},
                                  {4ms, process_event::NotReady{2, "http://h/: refused"}},
                                  {5ms, process_event::Ended{2, sys::WaitStatus(SIGSEGV)}},
                                  {6ms, process_event::CleanedUp{2, {"python (pid 5)"}}},
                                  {7ms, process_event::NotKillable{2}},
                                  {8ms, process_event::Signal{SIGTERM}},
                                  {9ms, process_event::Abort{"findings", 69}},
                                  {10ms, process_event::Trouble{"disk full"}}};
  for (const auto& process_event : notices) {
    const auto message = to_message(process_event);
    const auto back = notice_from(json::parse(message.dump()));
    EXPECT_EQ(back.what.index(), process_event.what.index()) << message;
    EXPECT_EQ(to_message(back), message);
  }
}

TEST(Wire, WhatIsNotUtf8ComesBackReadable) {
  const auto message = to_message(ProcessEvent{1ms, process_event::CleanedUp{2, {"d\xE4mon (pid 5)"}}});
  const auto back = notice_from(json::parse(json_text(message)));
  EXPECT_EQ(std::get<process_event::CleanedUp>(back.what).killed,
            std::vector<std::string>{"d\uFFFDmon (pid 5)"});
}

TEST(Wire, WhatCannotBeReadIsAnException) {
  EXPECT_THROW(action_from({{"do", "dance"}, {"process", 1}}), std::domain_error);
  EXPECT_THROW(action_from({{"do", "start"}}), json::exception);
  EXPECT_THROW(notice_from({{"notice", "ended"}, {"at_ms", 1}, {"process", "x"}}), json::exception);
}

}  // namespace
}  // namespace nlaunch::supervise
