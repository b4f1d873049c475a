#include "fleet/protocol.h"

#include <gtest/gtest.h>

#include <concepts>
#include <csignal>
#include <tuple>

#include "base/json.h"

namespace nlaunch::fleet {
namespace {

using namespace std::chrono_literals;
namespace action = supervise::action;
namespace command = supervise::node_command;
namespace event = supervise::process_event;
namespace news = preflight::probe_news;
namespace probes = preflight::probe_command;

/// A value with something in every member, and what it is as text.
template <class What>
struct Example {
  What what;
  std::string_view line;
};

template <class... What>
std::variant<What...> variant_of(const std::tuple<Example<What>...>&);

/// Holds for a choice within a message: `message` makes one of a value, `in_line` makes its line.
template <class Examples>
void expect_as_written(const Examples& examples, auto&& message, auto&& in_line) {
  const auto check = [&](const auto& one) {
    const std::string line = in_line(one.line);
    EXPECT_EQ(encode(message(one.what)), line);
    const auto back = decode(line);
    ASSERT_TRUE(back) << line << ": " << back.error().first_message();
    EXPECT_EQ(encode(*back), line);
  };
  std::apply([&](const auto&... one) { (check(one), ...); }, examples);
}

const std::tuple kMessages{
    Example{message::Challenge{"c"}, R"({"challenge":"c","type":"challenge"})"},
    Example{launch::Signed{"text", "f00"}, R"({"proof":"f00","says":"text","type":"signed"})"},
    Example{
        message::Hello{1, "plan", "c", "n1", "10.0.0.2", {20100, 65535}, "f1", 3},
        R"({"address":"10.0.0.2","agent":"f1","challenge":"c","host":"n1","node":1,"plan":"plan","ports":[20100,65535],"received":3,"type":"hello"})"},
    Example{message::OutputHello{1, "plan"}, R"({"node":1,"plan":"plan","type":"output"})"},
    Example{
        message::Welcome{{{"id", "/runs/id", "/runs/id/attempt-0", "/ckpt/step_7"}, true, false, true, 9}},
        R"({"assignment":{"color":true,"name_width":9,"output":false,"paths":)"
        R"({"attempt":"/runs/id/attempt-0","folder":"/runs/id","id":"id","resume":"/ckpt/step_7"},"share":true},)"
        R"("type":"welcome"})"},
    Example{message::Refused{"because"}, R"({"type":"refused","why":"because"})"},
    Example{message::Confirm{16}, R"({"count":16,"type":"confirm"})"},
    Example{message::Resume{7}, R"({"received":7,"type":"resume"})"},
    Example{message::Gone{"was closed", true}, R"({"may_return":true,"type":"gone","why":"was closed"})"},
    Example{message::Keep{"nodes.json", "[]\n"}, R"({"file":"nodes.json","text":"[]\n","type":"keep"})"},
    Example{message::Bind{}, R"({"type":"bind"})"},
    Example{preflight::ClockQuestion{1'700'000'000'000'000'000},
            R"({"asked":1700000000000000000,"type":"clock-question"})"},
    Example{message::Look{PreflightLevel::deep}, R"({"level":"deep","type":"look"})"},
    Example{probes::Start{2, 8, {8, 9}, "/folder"},
            R"({"first":8,"folder":"/folder","run":2,"type":"start-probes","wanted":[8,9]})"},
    Example{probes::Say{9, "go"}, R"({"line":"go","rank":9,"type":"say-to-probe"})"},
    Example{probes::Kill{}, R"({"type":"kill-probes"})"},
    Example{message::Supervise{30s}, R"({"kill_wait_ms":30000,"type":"supervise"})"},
    Example{command::Perform{action::KillAll{}}, R"({"action":{"type":"kill-all"},"type":"perform"})"},
    Example{command::Ending{}, R"({"type":"ending"})"},
    Example{command::Finish{3}, R"({"of":3,"type":"finish"})"},
    Example{message::Prepare{"update-1.json", {"engine"}},
            R"({"file":"update-1.json","roles":["engine"],"type":"prepare"})"},
    Example{message::Adopt{}, R"({"type":"adopt"})"},
    Example{message::Settle{}, R"({"type":"settle"})"},
    Example{message::Bye{69}, R"({"exit_code":69,"type":"bye"})"},
    Example{preflight::ClockAnswer{1, 2, -3},
            R"({"answered":-3,"asked":1,"received":2,"type":"clock-answer"})"},
    Example{
        message::Bound{{"a note"}, {"NCCL_DEBUG"}, {{"nccl", "x"}}, {{"y", 1}}, {{"env/learner", "A=1"}}},
        R"({"dropped":["NCCL_DEBUG"],"files":{"env/learner":"A=1"},"libraries":{"nccl":"x"},"lock":{"y":1},)"
        R"("notes":["a note"],"type":"bound"})"},
    Example{message::NotBound{65, "no GPU", "error: no GPU\n"},
            R"({"exit_code":65,"sentence":"no GPU","text":"error: no GPU\n","type":"not-bound"})"},
    Example{preflight::Findings{},
            R"({"findings":{"figures":[],"fingerprints":[],"ranks":[],"rows":[],"summary":)"
            R"({"arch":"","driver":"","gpu":"","gpus":0,"host":"","nccl":""}},"type":"findings"})"},
    Example{message::Prepared{"update-1.json", "no program"},
            R"({"file":"update-1.json","type":"prepared","why":"no program"})"},
    Example{message::Settled{}, R"({"type":"settled"})"},
    Example{message::ProbeNews{2, {8, news::Said{"ready"}}},
            R"({"news":{"rank":8,"what":{"line":"ready","type":"said"}},"run":2,"type":"probe"})"},
    Example{supervise::ProcessEvent{12ms, event::Ready{4}},
            R"({"at_ms":12,"type":"event","what":{"process":4,"type":"ready"}})"},
    Example{message::Audit{{{"host", "n1"}}, {"learner.0: libnccl"}, 1},
            R"({"findings":1,"json":{"host":"n1"},"lines":["learner.0: libnccl"],"type":"audit"})"},
    Example{supervise::BackendEnd{{"python pid 5"}, {"sh pid 6"}, {"last words"}, 7, {{"learner.0", 12}}, 1},
            R"({"last_lines":["last words"],"left_behind":["python pid 5"],)"
            R"("log_when_decided":{"learner.0":12},"lost_bytes":7,"oom_kills":1,)"
            R"("survivors":["sh pid 6"],"type":"end"})"},
    Example{message::Lost{"no answer"}, R"({"type":"lost","why":"no answer"})"}};
static_assert(std::same_as<decltype(variant_of(kMessages)), Message>, "every message has its example");

const std::tuple kActions{
    Example{action::Start{3}, R"({"process":3,"type":"start"})"},
    Example{action::AwaitReady{3}, R"({"process":3,"type":"await"})"},
    Example{action::Watch{3}, R"({"process":3,"type":"watch"})"},
    Example{action::AwaitFresh{3}, R"({"process":3,"type":"await-fresh"})"},
    Example{action::Notify{3, "engine", 2, {"n1:80"}, {"n1:80"}, {"n2:80"}},
            R"({"added":["n1:80"],"addresses":["n1:80"],"generation":2,"process":3,"removed":["n2:80"],)"
            R"("role":"engine","type":"notify"})"},
    Example{action::SignalGroup{3, SIGTERM}, R"({"process":3,"signal":15,"type":"signal-group"})"},
    Example{action::SignalProcess{3, SIGUSR1}, R"({"process":3,"signal":10,"type":"signal"})"},
    Example{action::KillTree{3}, R"({"process":3,"type":"kill"})"},
    Example{action::KillAll{}, R"({"type":"kill-all"})"},
    Example{action::Collect{"/folder"}, R"({"folder":"/folder","type":"collect"})"},
    Example{action::CleanUp{3, true}, R"({"leave":true,"process":3,"type":"clean"})"}};
static_assert(std::same_as<decltype(variant_of(kActions)), supervise::NodeAction>);

const std::tuple kEvents{
    Example{event::Started{2, 4711}, R"({"pid":4711,"process":2,"type":"started"})"},
    Example{event::NotStarted{2, "no such file"},
            R"({"process":2,"reason":"no such file","type":"not-started"})"},
    Example{event::Ready{2}, R"({"process":2,"type":"ready"})"},
    Example{
        event::NotReady{
            2, "refused", {"http://n1/health", "answered 404", {"0.0.0.0:80"}, "a", "s", "r", "l"}},
        R"({"process":2,"seen":{"answers":"a","check":"http://n1/health","last":"answered 404",)"
        R"("listens":["0.0.0.0:80"],"loading":"l","remedy":"r","stranger":"s"},"type":"not-ready","waited":"refused"})"},
    Example{event::Unresponsive{2, "silence"}, R"({"process":2,"reason":"silence","type":"unresponsive"})"},
    Example{event::Fresh{2}, R"({"process":2,"type":"fresh"})"},
    Example{
        event::Raised{2, "ValueError", "a NaN", 250ms, 1s},
        R"({"ago_ms":250,"message":"a NaN","process":2,"type":"raised","type_name":"ValueError","within_ms":1000})"},
    Example{event::Ended{2, sys::WaitStatus(SIGSEGV)}, R"({"process":2,"status":11,"type":"ended"})"},
    Example{
        event::ChildEnded{2, 4712, "VLLM::EngineCore", sys::WaitStatus(SIGKILL), {{"engine.0", 9}}},
        R"({"logs":{"engine.0":9},"pid":4712,"process":2,"status":9,"title":"VLLM::EngineCore","type":"child-ended"})"},
    Example{
        event::CleanedUp{2, {"sh pid 5"}, {"done"}, supervise::PortTaken{8000, 1, "h", "r"}},
        R"({"killed":["sh pid 5"],"last_lines":["done"],"port":{"holder":"h","index":1,"port":8000,"remedy":"r"},)"
        R"("process":2,"type":"cleaned"})"},
    Example{event::NotKillable{2}, R"({"process":2,"type":"not-killable"})"},
    Example{event::Signal{SIGTERM}, R"({"signal":15,"type":"signal"})"},
    Example{event::NodeLost{"n1", "gone", {2, 3}},
            R"({"host":"n1","processes":[2,3],"type":"node-lost","why":"gone"})"},
    Example{event::NodeBack{"n5", {2, 3}}, R"({"host":"n5","processes":[2,3],"type":"node-back"})"},
    Example{event::Abort{"findings", 69}, R"({"exit_code":69,"reason":"findings","type":"abort"})"},
    Example{event::Progress{2, 7, 1.5, 40},
            R"({"process":2,"seconds":1.5,"step":7,"total":40,"type":"progress"})"},
    Example{event::Saved{2, "/ckpt/step_7"}, R"({"path":"/ckpt/step_7","process":2,"type":"saved"})"},
    Example{event::Linked{2, "wandb", "https://wandb.ai/a/b/runs/c"},
            R"({"kind":"wandb","process":2,"type":"linked","url":"https://wandb.ai/a/b/runs/c"})"},
    Example{event::Collected{"no space"}, R"({"trouble":"no space","type":"collected"})"},
    Example{event::Trouble{"disk full"}, R"({"sentence":"disk full","type":"trouble"})"}};
static_assert(std::same_as<decltype(variant_of(kEvents)), decltype(supervise::ProcessEvent::what)>);

const std::tuple kNews{Example{news::Said{"x"}, R"({"line":"x","type":"said"})"},
                       Example{news::Ended{"y"}, R"({"how":"y","type":"ended"})"},
                       Example{news::Stuck{"z"}, R"({"state":"z","type":"stuck"})"},
                       Example{news::Lost{"w"}, R"({"type":"lost","why":"w"})"}};
static_assert(std::same_as<decltype(variant_of(kNews)), decltype(preflight::ProbeNews::what)>);

TEST(Protocol, EveryMessageIsWrittenAndReadAsItIs) {
  expect_as_written(
      kMessages, [](const auto& what) -> Message { return what; },
      [](std::string_view line) { return std::string(line); });
}

TEST(Protocol, EveryActionIsWrittenAndReadAsItIs) {
  expect_as_written(
      kActions, [](const auto& what) { return command::Perform{what}; },
      [](std::string_view line) { return fmt::format(R"({{"action":{},"type":"perform"}})", line); });
}

TEST(Protocol, EveryEventIsWrittenAndReadAsItIs) {
  expect_as_written(
      kEvents,
      [](const auto& what) {
        return supervise::ProcessEvent{1ms, what};
      },
      [](std::string_view line) { return fmt::format(R"({{"at_ms":1,"type":"event","what":{}}})", line); });
}

TEST(Protocol, AllNewsOfAProbeAreWrittenAndReadAsTheyAre) {
  expect_as_written(
      kNews,
      [](const auto& what) {
        return message::ProbeNews{2, {1, what}};
      },
      [](std::string_view line) {
        return fmt::format(R"({{"news":{{"rank":1,"what":{}}},"run":2,"type":"probe"}})", line);
      });
}

TEST(Protocol, WhatMayBeMissingIsNull) {
  EXPECT_EQ(encode(message::Bye{}), R"({"exit_code":null,"type":"bye"})");
  EXPECT_EQ(encode(command::Finish{}), R"({"of":null,"type":"finish"})");
  EXPECT_FALSE(std::get<message::Bye>(decode(encode(message::Bye{})).value()).exit_code);
}

TEST(Protocol, WhatIsNotUtf8ComesBackReadable) {
  const auto back = decode(encode(supervise::ProcessEvent{1ms, event::CleanedUp{2, {"d\xE4mon (pid 5)"}}}));
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<event::CleanedUp>(std::get<supervise::ProcessEvent>(*back).what).killed,
            std::vector<std::string>{"d\uFFFDmon (pid 5)"});
}

TEST(Protocol, WhatIsNoMessageIsRefusedWithAReason) {
  const std::pair<std::string, std::string> lines[] = {
      {"", "it is not JSON"},
      {"hello", "it is not JSON"},
      {"\xff\xfe", "it is not JSON"},
      {R"({"type":"bind")", "it is not JSON"},
      {"7", "it has no type"},
      {"[]", "it has no type"},
      {"{}", "it has no type"},
      {R"({"type":7})", "it has no type"},
      {R"({"type":"dance"})", "unknown type 'dance'"},
      {R"({"type":"look"})", "'level' is missing"},
      {R"({"type":"look","level":"shallow"})", "'level': not a level"},
      {R"({"type":"output","node":-1,"plan":"p"})", "'node': out of range"},
      {R"({"type":"output","node":4294967296,"plan":"p"})", "'node': out of range"},
      {R"({"type":"output","node":1.5,"plan":"p"})", "'node': not an integer"},
      {R"({"type":"output","node":true,"plan":"p"})", "'node': not an integer"},
      {R"({"type":"start-probes","run":1,"first":0,"wanted":7,"folder":""})", "'wanted': not a list"},
      {R"({"type":"start-probes","run":1,"first":0,"wanted":[0,"1"],"folder":""})",
       "'wanted': not an integer"},
      {R"({"type":"perform","action":{"type":"dance"}})", "'action': unknown type 'dance'"},
      {R"({"type":"perform","action":{"type":"start"}})", "'action': 'process' is missing"},
      {R"({"type":"perform","action":[]})", "'action': it has no type"},
      {R"({"type":"bound","lock":)" + std::string(100'000, '[') + "}", "it is nested too deeply"}};
  for (const auto& [line, reason] : lines) {
    const auto message = decode(line);
    ASSERT_FALSE(message) << line.substr(0, 80);
    EXPECT_EQ(message.error().first_message(), reason) << line.substr(0, 80);
  }
}

TEST(Protocol, BracketsInATextAreNotDeep) {
  const message::Keep keep{"env/learner", std::string(1000, '[') + R"("\{{)" + std::string(1000, '{')};
  const auto back = decode(encode(keep));
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<message::Keep>(*back).text, keep.text);
}

TEST(Protocol, EveryPieceOfALineIsRefused) {
  std::apply(
      [](const auto&... one) {
        const auto check = [](std::string_view line) {
          for (std::size_t size = 0; size < line.size(); ++size)
            EXPECT_FALSE(decode(line.substr(0, size))) << line.substr(0, size);
        };
        (check(one.line), ...);
      },
      kMessages);
}

}  // namespace
}  // namespace nlaunch::fleet
