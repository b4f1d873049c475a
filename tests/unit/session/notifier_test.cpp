#include "session/notifier.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace nlaunch::session {
namespace {

using Json = nlohmann::ordered_json;

plan::Plan grpo(std::vector<NotifyOn> on) {
  plan::Plan plan;
  plan.name = "grpo";
  plan.site = "isambard";
  plan.notify.emplace().on = std::move(on);
  plan.roles.resize(3);
  plan.roles[0].name = "data";
  plan.roles[0].kind = RoleKind::task;
  plan.roles[1].name = "engine";
  plan.roles[1].kind = RoleKind::engine;
  plan.roles[1].ready.http = "http://x/health";
  plan.roles[2].name = "learner";
  for (const std::uint32_t role : {0U, 1U, 2U}) {
    plan.processes.emplace_back();
    plan.processes.back().role = role;
  }
  return plan;
}

/// The texts of what the events of a run are told as.
std::vector<std::string> told(const plan::Plan& plan,
                              const std::vector<std::pair<std::string, Json>>& events) {
  Notices notices(plan);
  std::vector<std::string> out;
  for (const auto& [event, fields] : events)
    if (const auto notice = notices.take(event, fields)) out.push_back(notice->text);
  return out;
}

const std::vector<std::pair<std::string, Json>> kRun{
    {"attempt", {{"number", 0}}},
    {"attempt-started", {{"attempt", 0}}},
    {"process-started", {{"process", "data.0"}}},
    {"process-started", {{"process", "engine.0"}}},
    {"process-ready", {{"process", "engine.0"}}},
    {"process-started", {{"process", "learner.0"}}},
    {"watch", {{"kind", "slow"}, {"what", "steps have become slow"}}},
    {"watch", {{"kind", "stalled"}, {"what", "no progress for 10 s, after step 3"}}},
    {"process-restart", {{"process", "engine.0"}}},
    {"process-started", {{"process", "engine.0"}}},
    {"process-ready", {{"process", "engine.0"}}},
    {"attempt-ended", {{"what", "learner.0 exited with code 1 after 12s"}}},
    {"end", {{"outcome", "failed"}}},
};

TEST(Notices, EachOnceInOneSentence) {
  EXPECT_EQ(told(grpo({NotifyOn::start, NotifyOn::ready, NotifyOn::stall, NotifyOn::end}), kRun),
            (std::vector<std::string>{
                "grpo on isambard: started",
                "grpo on isambard: all processes are ready",
                "grpo on isambard: no progress for 10 s, after step 3",
                "grpo on isambard: failed: learner.0 exited with code 1 after 12s",
            }));
}

TEST(Notices, OnlyWhatIsWanted) {
  EXPECT_EQ(told(grpo({NotifyOn::stall}), kRun),
            (std::vector<std::string>{"grpo on isambard: no progress for 10 s, after step 3"}));
}

TEST(Notices, ARunThatWasRefusedHasOnlyAnEnd) {
  EXPECT_EQ(told(grpo({NotifyOn::end}), {{"attempt", {{"number", 0}}}, {"end", {{"outcome", "refused"}}}}),
            (std::vector<std::string>{"grpo on isambard: refused"}));
}

TEST(Notices, ANoticeHasTheTextThatChatProgramsShow) {
  EXPECT_EQ(
      to_json({NotifyOn::end, "grpo on isambard: finished"}, grpo({}),
              {"20260131-120000-7", "/runs/grpo/x", {}})
          .dump(),
      R"({"text":"grpo on isambard: finished","event":"end","run":"20260131-120000-7","name":"grpo","site":"isambard","folder":"/runs/grpo/x"})");
}

TEST(Notices, TheUrlOfAWebhookIsQuotedForCurl) {
  EXPECT_EQ(curl_config("https://x/\"a\\b", R"({"text":"a \"b\""})"),
            "url = \"https://x/\\\"a\\\\b\"\n"
            "data-raw = \"{\\\"text\\\":\\\"a \\\\\\\"b\\\\\\\"\\\"}\"\n"
            "header = \"Content-Type: application/json\"\n"
            "silent\nshow-error\nfail\ngloboff\nmax-time = 10\n");
}

}  // namespace
}  // namespace nlaunch::session
