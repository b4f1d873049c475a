#include "supervise/explanation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nlaunch::supervise {
namespace {

using Lines = std::vector<std::string>;
using namespace std::chrono_literals;

/// "CLASS sure: WHY | FIX"
std::string str(const Explanation& told) {
  return fmt::format("{}{}: {} | {}", told.category, told.sure ? " sure" : "", told.why, told.fix);
}

class NotReadyExplained : public testing::Test {
 protected:
  NotReadyExplained() {
    role_.name = "engine";
    role_.origin = "e.yaml:6:3";
    role_.kind = RoleKind::engine;
    role_.command = {"vllm", "serve", "m", "--port", "${self.ports.http}"};
    role_.command_origin = "e.yaml:8:14";
    role_.ports = {"http"};
    role_.ready.http = "http://${self.host}:${self.ports.http}/healthz";
    role_.ready.origin = "e.yaml:9:12";
    role_.ready.timeout = 10min;
    seen_.check = "http://n1:20001/healthz";
    seen_.last = "answered 404";
    seen_.listens = {"0.0.0.0:20001"};
  }
  [[nodiscard]] std::string told() const { return str(explain(role_, "engine.0", seen_)); }

  plan::Role role_;
  NotReadySeen seen_;
};

TEST_F(NotReadyExplained, AnotherPathAnswers) {
  seen_.answers = "http://n1:20001/health";
  EXPECT_EQ(
      told(),
      "not-ready sure: the server of engine.0 is up, but GET /healthz answered 404; GET /health answers "
      "there | write `http: \"http://${self.host}:${self.ports.http}/health\"` in `ready` (e.yaml:9:12)");
  role_.ready.http = "http://${self.host}:8000";
  EXPECT_TRUE(
      told().ends_with(" | write `http: \"http://${self.host}:8000/health\"` in `ready` (e.yaml:9:12)"))
      << told();
}

TEST_F(NotReadyExplained, NoUsualPathAnswers) {
  EXPECT_EQ(
      told(),
      "not-ready sure: the server of engine.0 is up, but GET /healthz answered 404, and none of the usual "
      "health paths (/health, /health/, /healthz, /health_generate, /ready, /ping, /v1/models, /) answers "
      "2xx | write the health path of this server, or another check (`tcp`, `log`), in `ready` "
      "(e.yaml:9:12)");
}

TEST_F(NotReadyExplained, AnotherPortAnswers) {
  seen_.last = "Connection refused";
  seen_.listens = {"0.0.0.0:8000"};
  seen_.answers = "http://n1:8000/health";
  EXPECT_EQ(told(),
            "not-ready sure: engine.0 listens on port 8000, not on port 20001, which is checked; GET /health "
            "answers there | pass it that port, for example `--port, \"${self.ports.http}\"`, in its command "
            "(e.yaml:8:14); or write `http: \"http://${self.host}:8000/health\"` in `ready` (e.yaml:9:12)");
}

TEST_F(NotReadyExplained, OnlyItsOwnMachineCanConnect) {
  seen_.last = "Connection refused";
  seen_.listens = {"127.0.0.1:20001"};
  EXPECT_EQ(
      told(),
      "not-ready sure: engine.0 listens on 127.0.0.1:20001 only, and the check connects to n1:20001 | let it "
      "listen on the address of its node, for example `--host, \"${self.host}\"`, in its command "
      "(e.yaml:8:14)");
}

TEST_F(NotReadyExplained, ItIsStillLoading) {
  seen_.last = "Connection refused";
  seen_.listens = {"0.0.0.0:40123"};
  seen_.loading = "Loading safetensors checkpoint shards:  45% Completed | 5/11";
  EXPECT_EQ(told(),
            "not-ready: engine.0 was still loading after 10m: Loading safetensors checkpoint shards:  45% "
            "Completed "
            "| 5/11 | write `timeout: 20m` in its `ready` (e.yaml:9:12)");
  role_.ready.timeout_origin = "e.yaml:9:70";
  EXPECT_TRUE(told().ends_with(" | write `timeout: 20m` in its `ready` (e.yaml:9:70)")) << told();
  role_.ready.timeout_origin.clear();
  role_.ready.server = ReadyServer::vllm;
  EXPECT_TRUE(told().ends_with(" | write `ready: {server: vllm, timeout: 20m}` (e.yaml:9:12)")) << told();
}

TEST_F(NotReadyExplained, ItAnswersThatItIsNotReady) {
  seen_.last = "answered 503";
  EXPECT_EQ(
      told(),
      "not-ready: the server of engine.0 answered 503 after 10m: it listens, but is not ready | see its last "
      "lines; if it needs longer, write `timeout: 20m` in its `ready` (e.yaml:9:12)");
}

TEST_F(NotReadyExplained, ItListensElsewhereOrNowhere) {
  seen_.last = "Connection refused";
  seen_.listens = {"127.0.0.1:5555"};
  EXPECT_EQ(
      told(),
      "not-ready: engine.0 listens on 127.0.0.1:5555, not on port 20001, which is checked | pass it that "
      "port, "
      "for example `--port, \"${self.ports.http}\"`, in its command (e.yaml:8:14); if it needs longer, write "
      "`timeout: 20m` in its `ready` (e.yaml:9:12)");
  seen_.listens.clear();
  EXPECT_EQ(
      told(),
      "not-ready: engine.0 listens on no port after 10m (http://n1:20001/healthz: Connection refused) | see "
      "its last lines; if it is a server, pass it that port, for example `--port, \"${self.ports.http}\"`, "
      "in "
      "its command (e.yaml:8:14); if it needs longer, write `timeout: 20m` in its `ready` (e.yaml:9:12)");
}

TEST_F(NotReadyExplained, SomebodyElseHoldsThePort) {
  role_.ready.http = "http://${self.host}:8000/health";
  seen_.check = "http://n1:8000/health";
  seen_.stranger = "server.py (pid 4711, user alice) of run 20260131-1";
  seen_.remedy = "stop that run with `nlaunch stop /runs/a`";
  EXPECT_EQ(told(),
            "port-in-use sure: port 8000, on which engine.0 is checked, is held by server.py (pid 4711, user "
            "alice) "
            "of run 20260131-1 | stop that run with `nlaunch stop /runs/a`, or write `ports: [http]` in role "
            "'engine' (e.yaml:6:3) and use ${self.ports.http} in its command (e.yaml:8:14) and in `ready` "
            "(e.yaml:9:12)");
}

TEST_F(NotReadyExplained, WhatIsNoServer) {
  seen_ = {.check = "a line of its output that matches 'ready'", .last = "no such line yet"};
  role_.ready.http.clear();
  role_.ready.log = "ready";
  EXPECT_EQ(
      told(),
      "not-ready: no line of the output of engine.0 matched 'ready' within 10m | compare `log` in `ready` "
      "(e.yaml:9:12) with its last lines; if it needs longer, write `timeout: 20m` in its `ready` "
      "(e.yaml:9:12)");
  role_.ready.log.clear();
  role_.ready.file = "/x";
  seen_ = {.check = "file '/x'", .last = "does not exist"};
  EXPECT_TRUE(told().starts_with("not-ready: file '/x': does not exist after 10m | compare `file` in "))
      << told();
  role_.ready.file.clear();
  role_.ready.exited = true;
  role_.kind = RoleKind::task;
  EXPECT_EQ(
      told(),
      "not-ready sure: engine.0 did not exit within 10m | see its last lines; if it needs longer, write "
      "`timeout: 20m` in role 'engine' (e.yaml:6:3)");
}

TEST_F(NotReadyExplained, TheCheckIsNamedWithItsPlaces) {
  EXPECT_EQ(check_text(role_.ready),
            "its check: `http: http://${self.host}:${self.ports.http}/healthz` (e.yaml:9:12); its timeout: "
            "10m (the "
            "default)");
  role_.ready.timeout_origin = "e.yaml:9:70";
  role_.ready.server = ReadyServer::sglang;
  EXPECT_EQ(
      check_text(role_.ready),
      "its check: `sglang: http://${self.host}:${self.ports.http}/healthz` (e.yaml:9:12); its timeout: 10m "
      "(e.yaml:9:70)");
}

TEST_F(NotReadyExplained, OfATaskTheTimeoutIsNamed) {
  plan::Ready ready;
  ready.exited = true;
  ready.timeout = 1h;
  ready.timeout_origin = "e.yaml:4:30";
  EXPECT_EQ(check_text(ready), "its timeout: 1h (e.yaml:4:30)");
}

TEST(PortTakenExplained, IsOneOfTheCommandOrOneThatNlaunchChose) {
  plan::Role role;
  role.name = "engine";
  role.origin = "e.yaml:6:3";
  role.command = {"vllm", "serve", "--port", "8000"};
  role.command_origin = "e.yaml:8:14";
  role.ports = {"http"};
  PortTaken taken{
      .port = 8000, .holder = "server.py (pid 4711, user alice)", .remedy = "stop it with `kill 4711`"};
  EXPECT_EQ(
      str(explain(role, "engine.0", taken)),
      "port-in-use sure: engine.0 could not listen on port 8000, which is held by server.py (pid 4711, user "
      "alice); the port is from its command (e.yaml:8:14) | stop it with `kill 4711`, or write `ports: "
      "[http]` in role 'engine' (e.yaml:6:3) and use ${self.ports.http} in its command (e.yaml:8:14)");
  taken = {.port = 20001, .index = 0, .holder = "engine.1 of this run"};
  EXPECT_EQ(
      str(explain(role, "engine.0", taken)),
      "port-in-use sure: engine.0 could not listen on port 20001, which is held by engine.1 of this run; "
      "the port is from 'http' in the `ports` of role 'engine' (e.yaml:6:3) | start again: nlaunch chooses a "
      "free "
      "port each time");
}

TEST(LoadingLine, IsTheLastThatSaysSo) {
  EXPECT_EQ(loading_line({"Loading safetensors checkpoint shards:  20% Completed | 1/5",
                          "Loading safetensors checkpoint shards:  40% Completed | 2/5", "other"}),
            "Loading safetensors checkpoint shards:  40% Completed | 2/5");
  for (const auto* line :
       {"[2026-01-01 00:00:00 TP0] Load weight begin. avail mem=78.90 GB",
        "Capturing batches (bs=4): 33%|#| 1/3",
        "[x] Capture cuda graph begin. This can take up to several minutes.", "Fetching 8 files:  12%|#| 1/8",
        "INFO [gpu_model_runner.py:5037] Starting to load model my/model...",
        "Loading checkpoint shards:  50%|##"})
    EXPECT_EQ(loading_line({line}), line);
  EXPECT_EQ(loading_line({"Loading safetensors checkpoint shards: 100% Completed | 5/5", "Uvicorn running"}),
            "");
}

TEST(PortsInUse, AreThoseThatTheLinesName) {
  using Ports = std::vector<std::uint16_t>;
  EXPECT_EQ(ports_in_use({"fine", "port 7"}), std::nullopt);
  EXPECT_EQ(ports_in_use({"OSError: [Errno 98] Address already in use"}), Ports{});
  EXPECT_EQ(
      ports_in_use({"[Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already "
                    "in use"}),
      Ports{8000});
  EXPECT_EQ(ports_in_use({"The server socket has failed to listen on any local network address. port: 56065, "
                          "useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use"}),
            Ports{56065});
  EXPECT_EQ(ports_in_use({"Address already in use: 127.0.0.1:6379, port 6379"}), Ports{6379});
}

TEST(PortsInUse, OfAProgramThatTriesAnotherAreNotItsEnd) {
  for (const auto* line :
       {"Port 8000 is already in use, trying port 8001", "Port 8000 is in use. Using port 8001.",
        "port 8000 is in use, using 8001 instead", "Address already in use (8000): falling back to 8001",
        "port 8000 is in use; fallback: 8001", "Port 8000 is in use, switching to port 8001",
        "Address already in use: 127.0.0.1:8000; retrying with the next port",
        "Port 8000 is in use, will use a random port", "Port 8000 is already in use, selected port 8001"})
    EXPECT_EQ(ports_in_use({line}), std::nullopt) << line;
  for (const auto* line : {"Port 8000 is already in use. Please use another port.",
                           "Address already in use: port 8000; is another process using it?",
                           "port 8000 is in use: try another one, or start with --port"})
    EXPECT_EQ(ports_in_use({line}), std::vector<std::uint16_t>{8000}) << line;
}

TEST(PortsInUse, AreThoseThatTheOutputEndsWith) {
  const auto followed = [](std::vector<std::string> lines, int by, const std::string& more) {
    for (int i = 0; i < by; ++i) lines.push_back(more);
    return ports_in_use(lines);
  };
  const std::vector<std::uint16_t> port{8000};
  EXPECT_EQ(followed({"Port 8000 is already in use"}, 19, "step"), port);
  EXPECT_EQ(followed({"Port 8000 is already in use"}, 20, "step"), std::nullopt);
  const std::string header = "(APIServer pid=1) Traceback (most recent call last):";
  const std::string bind = "OSError: [Errno 98] Address already in use: ('0.0.0.0', 8000)";
  EXPECT_EQ(followed({header, "  sock.bind(addr)", bind}, 30, "  shutting down"), port);
  EXPECT_EQ(followed({header, bind, "", "During handling of the above exception, another exception occurred:",
                      "", header, "RuntimeError: no server"},
                     30, "  shutting down"),
            port);
  EXPECT_EQ(followed({header, bind, "caught it", header, "torch.OutOfMemoryError: CUDA out of memory."}, 30,
                     "  shutting down"),
            std::nullopt);
  EXPECT_EQ(followed({header, "Port 8000 is already in use"}, 30, "step"), std::nullopt)
      << "the exception is another one";
}

}  // namespace
}  // namespace nlaunch::supervise
