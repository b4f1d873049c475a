#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/text.h"
#include "supervise/outcome.h"
#include "supervise/state_machine.h"

namespace nlaunch::supervise {

using namespace std::chrono_literals;

/// An action as a word, so that a whole step reads as one line.
struct Describe {
  std::string operator()(const action::Start& a) const { return fmt::format("start {}", a.process); }
  std::string operator()(const action::AwaitReady& a) const { return fmt::format("await {}", a.process); }
  std::string operator()(const action::Watch& a) const { return fmt::format("watch {}", a.process); }
  std::string operator()(const action::ForgetRestart& a) const {
    return fmt::format("forget {} {}", a.process, format_duration(a.after));
  }
  std::string operator()(const action::Tolerate& a) const {
    std::vector<std::string> names;
    for (const auto process : a.processes) names.push_back(std::to_string(process));
    return fmt::format("without {} ({}), {} left", text::join(names, "+"), cause(a.cause), a.left);
  }
  std::string operator()(const action::AwaitFresh& a) const { return fmt::format("fresh? {}", a.process); }
  std::string operator()(const action::Release& a) const {
    return fmt::format("release {}", fmt::join(a.processes, "+"));
  }
  std::string operator()(const action::Recover& a) const {
    std::vector<std::string> names;
    for (const auto process : a.processes) names.push_back(std::to_string(process));
    return fmt::format("recover {}", text::join(names, "+"));
  }
  std::string operator()(const action::SignalGroup& a) const {
    return fmt::format("{} to group {}", sys::signal_name(a.signal), a.process);
  }
  std::string operator()(const action::SignalProcess& a) const {
    return fmt::format("{} to {}", sys::signal_name(a.signal), a.process);
  }
  std::string operator()(const action::ArmGrace& a) const {
    return fmt::format("grace {} {}", a.process, format_duration(a.grace));
  }
  std::string operator()(const action::KillTree& a) const { return fmt::format("kill {}", a.process); }
  std::string operator()(const action::KillAll&) const { return "kill all"; }
  std::string operator()(const action::CleanUp& a) const {
    return fmt::format("clean {}{}", a.process, a.leave ? " but leave" : "");
  }
  std::string operator()(const action::ArmBackoff& a) const {
    return fmt::format("backoff {} {}", a.process, format_duration(a.backoff));
  }
  std::string operator()(const action::Decide& a) const { return "decide " + cause(a.cause); }
  std::string operator()(const action::Finish& a) const { return "finish " + cause(a.cause); }

  static std::string cause(const Cause& cause) {
    struct Name {
      std::string operator()(const Finished&) const { return "finished"; }
      std::string operator()(const ProcessFailed& c) const {
        return fmt::format("failed {} {}", c.process, c.status.str());
      }
      std::string operator()(const StartFailed& c) const { return fmt::format("not started {}", c.process); }
      std::string operator()(const NeverReady& c) const {
        return fmt::format("{} {}", c.has_ended ? "ended unready" : "not ready", c.process);
      }
      std::string operator()(const PartLost& c) const { return fmt::format("lost a part {}", c.process); }
      std::string operator()(const Unresponsive& c) const {
        return fmt::format("silent {}: {}", c.process, c.reason);
      }
      std::string operator()(const StoppedBySignal& c) const { return sys::signal_name(c.signal); }
      std::string operator()(const GuardianGone&) const { return "guardian gone"; }
      std::string operator()(const WalltimeNear&) const { return "walltime"; }
      std::string operator()(const NodeLost& c) const { return "lost " + c.host; }
      std::string operator()(const Aborted& c) const { return "aborted: " + c.reason; }
    };
    return std::visit(Name{}, cause);
  }
};

using Ready = ProcessRules::Ready;

/// Learners 0 and 1 wait for engines 2 and 3, which have a readiness check.
class Machine : public ::testing::Test {
 protected:
  Machine() {
    const ProcessRules learner{.process = 0, .role = "learner", .stop = {SIGTERM, 60s}, .ends_run = true};
    const ProcessRules engine{.process = 0, .role = "engine", .ready = Ready::checked, .stop = {SIGINT, 5s}};
    rules.processes = {learner, learner, engine, engine};
    rules.stages = {{2, 3}, {0, 1}};
  }

  std::string take(Step step) {
    state = std::move(step.state);
    std::vector<std::string> words;
    for (const auto& action : step.actions) words.push_back(std::visit(Describe{}, action));
    return text::join(words, ", ");
  }
  std::string start() { return take(begin(rules)); }
  std::string on(const Event& event) { return take(step(rules, state, event)); }
  std::string ended(ProcessIndex process, int code = 0) {
    return on(event::Ended{process, sys::WaitStatus::exited(code)});
  }
  /// To the point where all are ready.
  void all_ready() {
    start();
    for (const ProcessIndex engine : {2U, 3U}) {
      on(event::Started{engine});
      on(event::Ready{engine});
    }
    for (const ProcessIndex learner : {0U, 1U}) on(event::Started{learner});
  }

  Rules rules;
  State state;
};

}  // namespace nlaunch::supervise
