#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>

#include "base/text.h"
#include "supervise/supervisor.h"
#include "unit/supervise/folder.h"

/// A supervisor whose processes do what a test says.
namespace nlaunch::supervise {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

/// Performs nothing but what a test says.
class Acting : public ProcessBackend {
 public:
  void perform(const NodeAction& action) override {
    std::visit([this](const auto& what) { on(what); }, action);
  }
  void ending() override { performed.emplace_back("ending"); }
  void finish(std::optional<ProcessIndex> of, std::function<void(BackendEnd)> done) override {
    performed.push_back(of ? fmt::format("finish {}", *of) : "finish");
    done(end);
  }

  Lines performed;
  BackendEnd end;
  std::function<void(ProcessIndex)> start = [](ProcessIndex) {};
  std::function<void(ProcessIndex)> await = [](ProcessIndex) {};
  std::function<void(ProcessIndex, int)> signal = [](ProcessIndex, int) {};
  std::function<void(ProcessIndex)> kill = [](ProcessIndex) {};
  std::function<void()> kill_all = [] {};
  std::function<void(ProcessIndex)> clean = [](ProcessIndex) {};
  std::function<void(const std::string&)> collect = [](const std::string&) {};

 private:
  void on(const action::Start& what) {
    performed.push_back(fmt::format("start {}", what.process));
    start(what.process);
  }
  void on(const action::AwaitReady& what) {
    performed.push_back(fmt::format("await {}", what.process));
    await(what.process);
  }
  void on(const action::Watch& what) { performed.push_back(fmt::format("watch {}", what.process)); }
  void on(const action::AwaitFresh& what) { performed.push_back(fmt::format("fresh? {}", what.process)); }
  void on(const action::Notify& what) {
    performed.push_back(fmt::format("tell {} of {} {}", what.process, what.role, what.generation));
  }
  void on(const action::SignalGroup& what) {
    performed.push_back(fmt::format("{} to group {}", sys::signal_name(what.signal), what.process));
    signal(what.process, what.signal);
  }
  void on(const action::SignalProcess& what) {
    performed.push_back(fmt::format("{} to {}", sys::signal_name(what.signal), what.process));
  }
  void on(const action::KillTree& what) {
    performed.push_back(fmt::format("kill {}", what.process));
    kill(what.process);
  }
  void on(const action::KillAll&) {
    performed.emplace_back("kill all");
    kill_all();
  }
  void on(const action::Collect& what) {
    performed.emplace_back("collect");
    collect(what.folder);
  }
  void on(const action::CleanUp& what) {
    performed.push_back(fmt::format("clean {}", what.process));
    clean(what.process);
  }
};

/// Two learners, with ranks 0 and 1, that wait for an engine with a readiness check. By default all that is
/// started is ready 50 ms later, and all that is asked to end does.
class Supervised : public testing::Test {
 protected:
  Supervised() {
    fs::create_directories(folder / "attempt-0");
    terminal_file = std::tmpfile();
    plan::Role learner;
    learner.name = "learner";
    learner.kind = RoleKind::learner;
    learner.command = {"python3", "train.py"};
    learner.count = 2;
    learner.ends_run = true;
    plan::Role engine;
    engine.name = "engine";
    engine.command = {"serve"};
    engine.count = 1;
    engine.ready.tcp = "127.0.0.1:80";
    plan.roles = {learner, engine};
    for (std::uint32_t i = 0; i < 2; ++i) {
      auto& process = plan.processes.emplace_back();
      process.index = i;
      process.rank = static_cast<std::int32_t>(i);
    }
    plan.processes.emplace_back().role = 1;
    plan.stages = {{1}, {0}};
    backend.start = [this](ProcessIndex p) {
      tell(100ms * (p + 1), process_event::Started{p, 100 + static_cast<pid_t>(p)});
    };
    backend.await = [this](ProcessIndex p) { tell(100ms * (p + 1) + 50ms, process_event::Ready{p}); };
    backend.signal = [this](ProcessIndex p, int signal) {
      tell(3s, process_event::Ended{p, sys::WaitStatus(signal)});
    };
    backend.clean = [this](ProcessIndex p) { tell(4s, process_event::CleanedUp{p, {}}); };
    backend.kill_all = [this] {
      for (ProcessIndex p = 0; p < 3; ++p) tell(3s, process_event::Ended{p, sys::WaitStatus(SIGKILL)});
    };
  }
  ~Supervised() override { std::fclose(terminal_file); }

  template <class What>
  void tell(Duration at, What what) {
    supervisor->on({at, std::move(what)});
  }
  void end(ProcessIndex process, int code, Duration at = 2s) {
    tell(at, process_event::Ended{process, sys::WaitStatus::exited(code)});
  }
  /// Supervises a run to its end; `then` happens once all learners are started.
  Outcome run(std::function<void()> then) {
    terminal = std::make_unique<Terminal>(::fileno(terminal_file), terminal_queue);
    EventLog events(folder / "events.jsonl", nullptr);
    supervisor = std::make_unique<Supervisor>(
        loop, Supervisor::Options{plan, 0, folder / "attempt-0" / "logs", hosts, events, guardian,
                                  terminal.get(), terminal.get(), judge, address_of});
    loop.post(std::move(then));
    loop.after(20s, [this] { loop.stop(); });
    auto outcome = supervisor->run(backend);
    supervisor.reset();
    skipped = terminal->skipped();
    terminal.reset();
    return outcome;
  }
  /// What was recorded, without times, from this event on.
  [[nodiscard]] Lines recorded(const std::string& from = "") const {
    Lines lines;
    auto events = read_events(folder / "events.jsonl").value();
    for (auto& event : events) {
      for (const auto* key : {"mono_ms", "time"}) event.erase(key);
      if (!lines.empty() || from.empty() || event["event"] == from) lines.push_back(event.dump());
    }
    return lines;
  }
  [[nodiscard]] Lines recorded_as(const std::string& name) const {
    auto all = recorded();
    std::erase_if(
        all, [&](const auto& line) { return !line.starts_with(fmt::format("{{\"event\":\"{}\"", name)); });
    return all;
  }
  /// What stands on the terminal, without "nlaunch: ".
  [[nodiscard]] Lines said() const {
    std::rewind(terminal_file);
    std::string text(1U << 16U, ' ');
    text.resize(std::fread(text.data(), 1, text.size(), terminal_file));
    Lines lines;
    for (const auto& line : text::split(text, '\n')) {
      if (line.empty()) continue;
      EXPECT_TRUE(line.starts_with("nlaunch: ")) << line;
      lines.push_back(line.substr(std::string_view("nlaunch: ").size()));
    }
    return lines;
  }
  static bool fits(const std::string& text, const std::string& pattern) {
    return std::regex_match(text, std::regex(pattern));
  }

  Folder made;
  fs::path folder = made.path();
  std::FILE* terminal_file = nullptr;
  std::size_t terminal_queue = Terminal::kQueue;
  Terminal::Skipped skipped;
  plan::Plan plan;
  Lines hosts;
  GuardianLink guardian;
  Judge judge;
  Roster::AddressOf address_of;
  sys::Loop loop;
  Acting backend;
  std::unique_ptr<Terminal> terminal;
  std::unique_ptr<Supervisor> supervisor;
};

}  // namespace nlaunch::supervise
