#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "preflight/checks/xid.h"
#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

/// Two GPUs at 00000000:06:00.0 and 00000000:07:00.0, and a kernel log.
struct Log {
  Machine machine{1, 1};
  json lines = json::array();
  json gpus = json::array();

  Log& line(double age, const std::string& text) {
    lines.push_back({{"age", age}, {"text", text}});
    return *this;
  }
  Log& recovery(std::uint32_t gpu, unsigned action) {
    gpus.push_back(
        {{"bus_id", Machine::bus(gpu)}, {"uuid", Machine::uuid(gpu)}, {"recovery_action", action}});
    return *this;
  }
  [[nodiscard]] Lines rows() const {
    NodeObservations observations{.plan = machine.plan, .node = machine.node};
    observations.answers["kernel-log"] = {{{"source", "/dev/kmsg"}, {"lines", lines}}, ""};
    observations.answers["gpu-health"] = {{{"gpus", gpus}}, ""};
    return preflight::lines(run_check("kernel-log", observations));
  }
};

constexpr auto kReset =
    " | none in the last 24 hours | reset the GPU while it is idle (nvidia-smi --gpu-reset), or reboot the "
    "node; if the fault returns, have the GPU replaced | admin";
constexpr auto kReboot =
    " | none in the last 24 hours | reboot the node; if the fault returns, have the GPU and its slot checked "
    "| admin";
constexpr auto kWatch =
    " | none in the last 24 hours | watch whether it recurs; NVIDIA's Xid catalog explains what it may mean "
    "| admin";

TEST(KernelLog, IsFineWithoutFaults) {
  EXPECT_EQ(Log().rows(), (Lines{"pass | Xid, SXid, hung tasks | no fault in the last 24 hours |  |  | "}));
  EXPECT_EQ(Log().line(90000, "NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.").rows()[0],
            "pass | Xid, SXid, hung tasks | no fault in the last 24 hours |  |  | ");
}

TEST(KernelLog, AFaultNamesTheGpuAndHowLongAgo) {
  EXPECT_EQ(
      Log()
          .line(
              720,
              "NVRM: Xid (PCI:0000:07:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")
          .rows(),
      (Lines{std::string(
                 "fail | GPU 1 (00000000:07:00.0) | Xid 79 (the GPU has fallen off the bus), 12 min ago") +
             kReboot}));
  EXPECT_EQ(Log().line(720, "NVRM: GPU 0000:07:00.0: GPU has fallen off the bus.").rows()[0].substr(0, 60),
            "fail | GPU 1 (00000000:07:00.0) | Xid 79 (the GPU has fallen");
}

TEST(KernelLog, TheSameFaultIsToldOnce) {
  Log log;
  for (const double age : {7300.0, 3000.0, 40.0})
    log.line(
        age,
        "NVRM: Xid (PCI:0000:06:00): 119, pid=1, name=python3, Timeout after 6s of waiting for RPC response");
  EXPECT_EQ(log.rows(), (Lines{std::string("fail | GPU 0 (00000000:06:00.0) | Xid 119 (the GPU's system "
                                           "processor (GSP) did not answer), 3 times, the last 40 s ago") +
                               kReset}));
}

TEST(KernelLog, AGpuThatNeedsNoRecoveryNowIsNotBlamed) {
  Log log;
  log.line(50000, "NVRM: Xid (PCI:0000:06:00): 95, pid=1, name=python3, Uncontained ECC error")
      .recovery(0, 0);
  EXPECT_EQ(log.rows(),
            (Lines{std::string("warn | GPU 0 (00000000:06:00.0) | Xid 95 (an uncontained memory error), 14 h "
                               "ago; the driver requests no recovery now") +
                   kWatch}));
  log.gpus[0]["recovery_action"] = 1;
  EXPECT_TRUE(log.rows()[0].starts_with("fail"));
}

TEST(KernelLog, AGpuThatIsNotThePlansIsNoReasonToRefuse) {
  Log log;
  log.line(60, "NVRM: Xid (PCI:0009:01:00): 48, pid=1, name=python3, DBE");
  EXPECT_TRUE(log.rows()[0].starts_with("warn | GPU 0009:01:00.0, not used by the plan | Xid 48"));
  log.machine.plan.expected.bus_ids = {"0009:01:00.0"};
  EXPECT_TRUE(log.rows()[0].starts_with("fail"));
  log.machine.plan.expected.bus_ids.clear();
  log.machine.node.gpus.clear();  // NVML shows none: perhaps because of this
  EXPECT_TRUE(log.rows()[0].starts_with("fail"));
}

TEST(KernelLog, ProgramsOwnFaultsAreTold) {
  EXPECT_EQ(Log()
                .line(7200, "NVRM: Xid (PCI:0000:06:00): 31, pid=77, name=python3, MMU Fault")
                .line(300, "NVRM: Xid (PCI:0000:07:00): 43, pid=78, name=python3, Ch 00000008")
                .rows(),
            (Lines{"pass | Xid, SXid, hung tasks | no fault in the last 24 hours; not a fault of the node: "
                   "Xid 31 (a program accessed memory that is not mapped), 2 h ago, Xid 43 (the GPU stopped "
                   "processing for a program), 5 min ago |  |  | "}));
}

TEST(KernelLog, TheLineSaysWhetherAnNvlinkErrorWasFatal) {
  const std::string intro = "NVRM: Xid (PCI:0000:06:00): ";
  EXPECT_EQ(Log().line(60, intro + "149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6)").rows(),
            (Lines{std::string("fail | GPU 0 (00000000:06:00.0) | Xid 149 (NETIR_LINK_EVT  Fatal   XC0 i0 "
                               "Link 08 (0x004505c6)), 60 s ago") +
                   kReset}));
  EXPECT_TRUE(Log()
                  .line(60, intro + "145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 12 (0x0)")
                  .rows()[0]
                  .starts_with("warn"));
}

TEST(KernelLog, TheDriversLastAdviceCounts) {
  Log log;
  log.line(90,
           "NVRM: Xid (PCI:0000:06:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot "
           "Required)");
  EXPECT_TRUE(log.rows()[0].ends_with(kReboot)) << log.rows()[0];
  log.line(60,
           "NVRM: Xid (PCI:0000:06:00): 154, GPU recovery action changed from 0x2 (Node Reboot Required) to "
           "0x0 (None)");
  EXPECT_TRUE(log.rows()[0].starts_with("pass")) << log.rows()[0];
}

TEST(KernelLog, SwitchesHaveSxids) {
  EXPECT_EQ(
      Log()
          .line(60, "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up")
          .rows(),
      (Lines{
          std::string("fail | NVSwitch 0000:c1:00.0 | SXid 20034 (Fatal, Link 30 LTSSM Fault Up), 60 s ago") +
          kReset}));
  EXPECT_EQ(
      Log()
          .line(60, "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress (First)")
          .rows(),
      (Lines{std::string(
                 "warn | NVSwitch 0000:c1:00.0 | SXid 12028 (Non-fatal, Link 32 egress (First)), 60 s ago") +
             kWatch}));
}

TEST(KernelLog, AnUnknownXidIsToldInItsOwnWords) {
  EXPECT_EQ(
      Log().line(60, "NVRM: Xid (PCI:0000:06:00): 999, something \x1b[31mnew").rows(),
      (Lines{std::string("warn | GPU 0 (00000000:06:00.0) | Xid 999 (something \\x1b[31mnew), 60 s ago") +
             kWatch}));
}

TEST(KernelLog, TasksThatHangNowAreNamed) {
  EXPECT_EQ(Log()
                .line(9000, "INFO: task dd:12 blocked for more than 120 seconds.")
                .line(600, "INFO: task python3:4711 blocked for more than 122 seconds.")
                .line(480, "INFO: task python3:4711 blocked for more than 245 seconds.")
                .rows(),
            (Lines{"warn | tasks | 1 task hung in the last hour: python3:4711 | none | check what they wait "
                   "for: a file system or a driver that does not respond | admin"}));
}

TEST(KernelLog, WithoutTheRightItIsSkipped) {
  const Machine machine(1, 1);
  NodeObservations observations{.plan = machine.plan, .node = machine.node};
  EXPECT_TRUE(run_check("kernel-log", observations).empty());
  observations.answers["kernel-log"] = {{{"denied", "/dev/kmsg: Operation not permitted"}}, ""};
  EXPECT_EQ(lines(run_check("kernel-log", observations)),
            (Lines{"skip | Xid, SXid, hung tasks | needs permission to read the kernel log: root, "
                   "CAP_SYSLOG, kernel.dmesg_restrict=0, or membership in the group adm or systemd-journal "
                   "(/dev/kmsg: Operation not permitted) |  |  | "}));
  observations.answers["kernel-log"] = {nullptr, "nlaunch-probe kernel-log did not answer within 5 s"};
  EXPECT_EQ(run_check("kernel-log", observations)[0].status, Status::unknown);
}

TEST(Xids, AreInOrderEachOnce) {
  for (std::size_t i = 1; i < xids().size(); ++i) EXPECT_LT(xids()[i - 1].code, xids()[i].code);
}

TEST(Xids, LinesThatAreNone) {
  for (const auto* line :
       {"", "NVRM: Xid (", "NVRM: Xid ()", "NVRM: Xid (PCI:0000:06:00): ", "NVRM: Xid (PCI:0000:06:00): x, y",
        "NVRM: Xid (PCI:0000:06:00): 99999999999999999999, y", "GPU has fallen off the bus"}) {
    EXPECT_FALSE(parse_gpu_event(line)) << line;
  }
}

TEST(KernelLog, ADayAndAnHourAreTheLimits) {
  const std::string xid = "NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.";
  EXPECT_TRUE(Log().line(86400, xid).rows()[0].starts_with("fail"));
  EXPECT_TRUE(Log().line(86401, xid).rows()[0].starts_with("pass"));
  const std::string task = "INFO: task dd:12 blocked for more than 120 seconds.";
  EXPECT_TRUE(Log().line(3600, task).rows()[0].starts_with("warn"));
  EXPECT_TRUE(Log().line(3601, task).rows()[0].starts_with("pass"));
}

TEST(KernelLog, EventsOfOtherCodesAndGpusAreTheirOwn) {
  const auto rows = Log()
                        .line(60, "NVRM: Xid (PCI:0000:06:00): 48, DBE")
                        .line(50, "NVRM: Xid (PCI:0000:07:00): 48, DBE")
                        .line(40, "NVRM: Xid (PCI:0000:06:00): 95, Uncontained")
                        .line(30, "nvidia-nvswitch0: SXid (PCI:0000:06:00): 48, Fatal, x")
                        .rows();
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_TRUE(rows[0].starts_with("fail | GPU 0 (00000000:06:00.0) | Xid 48"));
  EXPECT_TRUE(rows[1].starts_with("fail | GPU 1 (00000000:07:00.0) | Xid 48"));
  EXPECT_TRUE(rows[2].starts_with("fail | GPU 0 (00000000:06:00.0) | Xid 95"));
  EXPECT_TRUE(rows[3].starts_with("fail | NVSwitch 0000:06:00.0 | SXid 48"));
}

TEST(KernelLog, ASwitchHasRecoveredWhereAllGpusHave) {
  const std::string sxid = "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30";
  EXPECT_TRUE(Log().line(60, sxid).recovery(0, 0).recovery(1, 0).rows()[0].starts_with("warn"));
  EXPECT_TRUE(Log().line(60, sxid).recovery(0, 0).recovery(1, 1).rows()[0].starts_with("fail"));
  EXPECT_TRUE(Log().line(60, sxid).rows()[0].starts_with("fail"));
}

TEST(KernelLog, AGpuThatDoesNotSayThatItIsWellIsNot) {
  Log log;
  log.line(60, "NVRM: Xid (PCI:0000:06:00): 95, x").recovery(1, 0);
  EXPECT_TRUE(log.rows()[0].starts_with("fail"));
  log.recovery(0, 0);
  log.gpus[1].erase("recovery_action");
  EXPECT_TRUE(log.rows()[0].starts_with("fail"));
}

TEST(KernelLog, WhatIsToBeWatchedIsAWarningWhateverTheDriverSays) {
  Log log;
  log.line(60, "NVRM: Xid (PCI:0000:06:00): 63, Row Remapper");
  const auto row =
      std::string("warn | GPU 0 (00000000:06:00.0) | Xid 63 (a memory row will be remapped), 60 s ago");
  EXPECT_EQ(log.rows(), Lines{row + kWatch});
  EXPECT_EQ(log.recovery(0, 0).rows(), Lines{row + kWatch});
}

TEST(KernelLog, APowerCableIsRepairedByHand) {
  EXPECT_TRUE(Log()
                  .line(60, "NVRM: Xid (PCI:0000:06:00): 54, power")
                  .rows()[0]
                  .ends_with(" | have the GPU's power cable and seating checked | admin"));
}

TEST(KernelLog, SeveralTasksThatHangAreOneRow) {
  const auto rows = Log()
                        .line(60, "INFO: task dd:12 blocked for more than 120 seconds.")
                        .line(60, "INFO: task cp:13 blocked for more than 120 seconds.")
                        .line(60, "task without an end")
                        .line(60, " blocked for more than a task can ")
                        .rows();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_TRUE(rows[0].starts_with("warn | tasks | 2 tasks hung in the last hour: dd:12, cp:13 | none | "));
}

TEST(KernelLog, OfAMachineWithoutADriverTasksAreNoMatter) {
  const Machine machine(1, 1);
  NodeObservations observations{.plan = machine.plan, .node = machine.node};
  observations.answers["kernel-log"] = {
      {{"lines",
        json::array({{{"age", 60}, {"text", "INFO: task dd:12 blocked for more than 120 seconds."}}})}},
      ""};
  EXPECT_EQ(run_check("kernel-log", observations)[0].status, Status::warn);
  observations.machine.no_driver = true;
  EXPECT_EQ(run_check("kernel-log", observations)[0].status, Status::pass);
  observations.answers["kernel-log"] = {{{"error", "no log"}}, ""};
  EXPECT_EQ(lines(run_check("kernel-log", observations)),
            Lines{"unknown | Xid, SXid, hung tasks | no log |  |  | "});
}

TEST(Xids, AreFoundByTheirCode) {
  EXPECT_EQ(find_xid(79)->what, "the GPU has fallen off the bus");
  EXPECT_EQ(find_xid(8)->action, XidAction::none);
  EXPECT_EQ(find_xid(172)->action, XidAction::reset);
  EXPECT_EQ(find_xid(7), nullptr);
  EXPECT_EQ(find_xid(78), nullptr);
  EXPECT_EQ(find_xid(173), nullptr);
}

TEST(Xids, AreReadWithTheirBusIdAndText) {
  const auto event =
      parse_gpu_event("[12.3] NVRM: Xid (PCI:0009:01:00): 94, pid=7, name=python, Contained  ");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, GpuEvent::Kind::xid);
  EXPECT_EQ(event->code, 94U);
  EXPECT_EQ(event->bus_id, "0009:01:00");
  EXPECT_EQ(event->text, "pid=7, name=python, Contained");
  EXPECT_EQ(parse_gpu_event("NVRM: Xid (0009:01:00): 94")->bus_id, "0009:01:00");
  EXPECT_EQ(parse_gpu_event("NVRM: Xid (0009:01:00): 94")->text, "");
  const auto fallen = parse_gpu_event("NVRM: GPU at PCI:0000:18:00: GPU has fallen off the bus.");
  ASSERT_TRUE(fallen);
  EXPECT_EQ(fallen->code, 79U);
  EXPECT_EQ(fallen->bus_id, "0000:18:00");
  EXPECT_EQ(parse_gpu_event("a: GPU 0000:18:00.0: GPU has fallen off the bus")->bus_id, "0000:18:00.0");
  EXPECT_FALSE(parse_gpu_event("12 : face GPU has fallen off the bus"));
}

TEST(Xids, TheLineDecidesWhereTheCodeDoesNot) {
  const auto action = [](const std::string& line) { return action_of(*parse_gpu_event(line)); };
  const std::string xid = "NVRM: Xid (PCI:0000:06:00): ";
  EXPECT_EQ(action(xid + "144, x Fatal y"), XidAction::reset);
  EXPECT_EQ(action(xid + "144, x Nonfatal y"), XidAction::watch);
  EXPECT_EQ(action(xid + "999, Fatal"), XidAction::watch);
  EXPECT_EQ(action(xid + "79, x"), XidAction::reboot);
  EXPECT_EQ(action(xid + "154, changed from 0x0 (None) to 0x1 (GPU Reset Required)"), XidAction::reset);
  EXPECT_EQ(action(xid + "154, changed from 0x1 (Reset) to 0x2 (Node Reboot Required)"), XidAction::reboot);
  EXPECT_EQ(action(xid + "154, changed from 0x2 (Node Reboot Required) to 0x0 (None)"), XidAction::none);
  EXPECT_EQ(action(xid + "154, something else"), XidAction::watch);
  EXPECT_EQ(action("nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 79, Fatal"), XidAction::reset);
  EXPECT_EQ(action("nvidia-nvswitch0: SXid (PCI:0000:06:00.0): 79, Non-fatal"), XidAction::watch);
}

}  // namespace
}  // namespace nlaunch::preflight
