#include <fmt/format.h>

#include <algorithm>

#include "base/registry.h"
#include "base/text.h"
#include "preflight/ask/inquiries.h"
#include "preflight/checks.h"
#include "preflight/checks/gpu_state.h"
#include "preflight/checks/xid.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;
constexpr auto kGpuHealth = "gpu-health";

Remedy reset_gpu() {
  return {
      "reset the GPU while it is idle (nvidia-smi --gpu-reset), or reboot the node; if the fault returns, "
      "have the GPU replaced",
      Responsible::admin};
}
Remedy replace_gpu() {
  return {"take the node out of service and have the GPU replaced", Responsible::admin};
}

/// The driver itself reports that no action is needed (nvml.h, NVML_GPU_RECOVERY_ACTION_NONE).
bool has_recovered(const GpuState& gpu) {
  return gpu.get<unsigned>("recovery_action") == 0U;
}

void judge_ecc(const GpuState& gpu, std::vector<Row>& rows) {
  const auto errors = gpu.get<std::uint64_t>("uncorrected_ecc").value_or(0);
  if (errors > 0) {
    auto row =
        failed(kGpuHealth, gpu.name,
               fmt::format("{} since the driver was loaded", text::count(errors, "uncorrected ECC error")),
               "none", reset_gpu());
    if (has_recovered(gpu)) {
      row.status = Status::warn;
      row.value += "; the driver requests no recovery";
    }
    rows.push_back(std::move(row));
  }
  if (gpu.is("sram_threshold")) {
    rows.push_back(failed(kGpuHealth, gpu.name, "more uncorrected SRAM errors than NVIDIA accepts",
                          "fewer than the threshold", replace_gpu()));
  }
}

/// NVIDIA's "GPU Memory Error Management": a row is remapped at the next reset; there are spare rows for 512.
void judge_rows(const GpuState& gpu, std::vector<Row>& rows) {
  const auto remap = gpu.said.value("remap", json::object());
  if (remap.value("failed", false)) {
    rows.push_back(failed(kGpuHealth, gpu.name, "a faulty memory row could not be remapped", "rows remapped",
                          replace_gpu()));
  }
  if (remap.value("pending", false)) {
    rows.push_back(failed(kGpuHealth, gpu.name, "faulty memory rows are waiting to be remapped",
                          "none pending", reset_gpu()));
  }
  if (gpu.is("retired_pages_pending")) {
    rows.push_back(failed(kGpuHealth, gpu.name, "faulty memory pages are waiting to be retired",
                          "none pending", reset_gpu()));
  }
}

/// nvmlDeviceGpuRecoveryAction_t.
std::string recovery_text(unsigned action) {
  constexpr const char* kActions[] = {"no recovery",
                                      "a GPU reset",
                                      "a node reboot",
                                      "draining all traffic between GPUs",
                                      "draining its workload, and then a GPU reset",
                                      "a recovery of the IMEX domain",
                                      "a bus reset",
                                      "a system reboot"};
  return action < std::size(kActions) ? kActions[action] : fmt::format("recovery action {}", action);
}

void judge_recovery(const GpuState& gpu, std::vector<Row>& rows) {
  const auto action = gpu.get<unsigned>("recovery_action").value_or(0);
  const bool told = std::ranges::any_of(
      rows, [&](const Row& row) { return row.subject == gpu.name && row.status == Status::fail; });
  if (action == 0 || told) return;
  rows.push_back(failed(kGpuHealth, gpu.name, fmt::format("its driver requests {}", recovery_text(action)),
                        "a GPU that needs no recovery", {"do what the driver requests", Responsible::admin}));
}

/// The three that the hardware decides (nvml.h, nvmlClocksEventReason*). A software power cap is normal for a
/// GPU under load.
void judge_clocks(const GpuState& gpu, std::vector<Row>& rows) {
  constexpr std::uint64_t kSlowdown = 0x8;
  constexpr std::uint64_t kThermal = 0x40;
  constexpr std::uint64_t kPowerBrake = 0x80;
  const auto reasons = gpu.get<std::uint64_t>("clocks_event_reasons").value_or(0);
  if ((reasons & (kSlowdown | kThermal | kPowerBrake)) == 0) return;
  const bool hot = (reasons & kThermal) != 0;
  const bool braked = (reasons & kPowerBrake) != 0;
  const auto* why = hot && braked ? "it is too hot, and the node's power supply requests it"
                    : hot         ? "it is too hot"
                    : braked      ? "the node's power supply requests it"
                                  : "it is too hot or draws too much power";
  rows.push_back(warned(kGpuHealth, gpu.name, fmt::format("slowed down by its hardware: {}", why),
                        "full clocks",
                        {"report the node: check its cooling and power supply", Responsible::admin}));
}

void judge_health(const GpuState& gpu, std::vector<Row>& rows) {
  judge_ecc(gpu, rows);
  judge_rows(gpu, rows);
  judge_recovery(gpu, rows);
  judge_clocks(gpu, rows);
}

/// A GPU that NVML counts but does not give a handle for. One that a container or a job may not use does not
/// concern us.
void judge_unreadable(const json& gpu, std::vector<Row>& rows) {
  constexpr int kNoPermission = 4;            // nvmlReturn_t
  constexpr int kOperatingSystem = 17;        // "blocked by the operating system/cgroups"
  constexpr int kFaults[] = {8, 11, 15, 16};  // no power, no interrupts, lost, reset required
  const auto code = gpu.value("code", 0);
  if (code == kNoPermission || code == kOperatingSystem) return;
  const auto subject = fmt::format("NVML GPU {}", gpu.value("index", 0U));
  const auto error = gpu.value("error", "");
  rows.push_back(std::ranges::find(kFaults, code) == std::end(kFaults)
                     ? unknown(kGpuHealth, subject, error)
                     : failed(kGpuHealth, subject, error, "a GPU that responds", reset_gpu()));
}

/// What was checked: a GPU or an NVML that does not support a fact cannot be found at fault.
std::string health_text(const std::vector<GpuState>& gpus) {
  constexpr std::pair<const char*, const char*> kFacts[] = {{"uncorrected_ecc", "no uncorrected ECC error"},
                                                            {"remap", "no row to remap"},
                                                            {"recovery_action", "no recovery requested"},
                                                            {"clocks_event_reasons", "no slowdown"}};
  std::string out;
  for (const auto& [fact, said] : kFacts) {
    const bool known =
        std::ranges::all_of(gpus, [name = fact](const GpuState& gpu) { return gpu.said.contains(name); });
    if (known) out += fmt::format("{}{}", out.empty() ? "" : ", ", said);
  }
  return out.empty() ? "NVML reports nothing about their health" : out;
}

std::vector<Row> check_gpu_health(const NodeObservations& observations) {
  const auto* answer = observations.answer("gpu-health");
  if (answer == nullptr) return {};
  if (const auto* said = gpu_health_answer(observations)) {
    const auto gpus = gpu_states(observations);
    auto rows = judge_gpus(gpus, judge_health,
                           passed(kGpuHealth, text::count(gpus.size(), "GPU"), health_text(gpus)));
    for (const auto& gpu : said->value("refused", json::array())) judge_unreadable(gpu, rows);
    return rows;
  }
  const auto error = answer->said.is_object() ? answer->said.value("error", "") : answer->error;
  return {unknown(kGpuHealth, "state, links, modes and processes of the GPUs", error)};
}

const Registered<NodeCheck> gpu_health_check{{
    .order = 20,
    .name = kGpuHealth,
    .what = "no GPU has memory errors, needs a reset, or is slowed down by its hardware",
    .judge = check_gpu_health,
}};

const Registered<Inquiry> gpu_health_inquiry{{
    .name = kGpuHealth,
    .deadline = std::chrono::seconds(10),  // persistence mode may be off
    .applies = has_gpus,
}};

constexpr auto kKernelLog = "kernel-log";
constexpr double kHour = 3600;
/// Older events have been dealt with, or have not recurred.
constexpr double kJudged = 24 * kHour;

/// The same event of the same GPU, however often it is in the log.
struct LoggedEvent {
  GpuEvent event;
  std::size_t times = 0;
  double age = 0;  ///< of the last one
};

std::vector<LoggedEvent> collect_events(const json& lines) {
  std::vector<LoggedEvent> out;
  for (const auto& line : lines) {
    const auto age = line.value("age", 0.0);
    auto event = age > kJudged ? std::nullopt : parse_gpu_event(line.value("text", ""));
    if (!event) continue;
    auto same = std::ranges::find_if(out, [&](const LoggedEvent& told) {
      return told.event.kind == event->kind && told.event.code == event->code &&
             told.event.bus_id == event->bus_id;
    });
    if (same == out.end()) same = out.insert(out.end(), LoggedEvent{});
    *same = {std::move(*event), same->times + 1, age};  // in log order: the last one counts
  }
  return out;
}

/// "0009:01:00" as a bus id ends: with the device's function.
std::string whole_bus_id(const std::string& bus_id) {
  return bus_id.find('.') == std::string::npos ? bus_id + ".0" : bus_id;
}

/// Which GPU it concerns, and whether that GPU is fit again.
struct AboutEvent {
  std::string subject;
  bool ours = false;       ///< the plan's, or one in the site profile
  bool recovered = false;  ///< it responds, and its driver requests no recovery
};

bool is_fit(const GpuState& gpu) {
  return gpu.get<unsigned>("recovery_action") == 0U;
}

AboutEvent about_event(const LoggedEvent& told, const NodeObservations& observations,
                       const std::vector<GpuState>& gpus) {
  const auto bus_id = whole_bus_id(told.event.bus_id);
  const auto is_it = [&](const std::string& other) { return same_bus(bus_id, other); };
  if (told.event.kind == GpuEvent::Kind::sxid)
    return {fmt::format("NVSwitch {}", bus_id), true, !gpus.empty() && std::ranges::all_of(gpus, is_fit)};
  for (std::size_t i = 0; i < observations.node.gpus.size(); ++i) {
    const auto& gpu = observations.node.gpus[i];
    if (!is_it(gpu.bus_id)) continue;
    const auto state =
        std::ranges::find_if(gpus, [&](const GpuState& one) { return is_it(one.said.value("bus_id", "")); });
    return {fmt::format("GPU {} ({})", i, gpu.bus_id), true, state != gpus.end() && is_fit(*state)};
  }
  const bool sites = std::ranges::any_of(observations.plan.expected.bus_ids,
                                         [&](const std::string& one) { return same_bus(one, bus_id); });
  // If no GPU is visible, this may be the reason.
  return {fmt::format("GPU {}, not used by the plan", bus_id), sites || observations.node.gpus.empty(),
          false};
}

std::string event_text(const LoggedEvent& told) {
  const auto& event = told.event;
  const bool is_switch = event.kind == GpuEvent::Kind::sxid;
  const auto* known = is_switch ? nullptr : find_xid(event.code);
  const auto what = known == nullptr || known->action == XidAction::by_line ? text::printable(event.text)
                                                                            : std::string(known->what);
  return fmt::format("{} {} ({}), {}{} ago", is_switch ? "SXid" : "Xid", event.code, what,
                     told.times == 1 ? "" : fmt::format("{} times, the last ", told.times),
                     age_text(told.age));
}

Remedy event_remedy(XidAction action) {
  switch (action) {
    case XidAction::reboot:
      return {"reboot the node; if the fault returns, have the GPU and its slot checked", Responsible::admin};
    case XidAction::repair:
      return {"have the GPU's power cable and seating checked", Responsible::admin};
    case XidAction::reset:
      return {
          "reset the GPU while it is idle (nvidia-smi --gpu-reset), or reboot the node; if the fault "
          "returns, have the GPU replaced",
          Responsible::admin};
    default:
      return {"watch whether it recurs; NVIDIA's Xid catalog explains what it may mean", Responsible::admin};
  }
}

Row judge_event(const LoggedEvent& told, const AboutEvent& about) {
  const auto action = action_of(told.event);
  const bool serious = action != XidAction::watch;
  auto row =
      failed(kKernelLog, about.subject, event_text(told), "none in the last 24 hours", event_remedy(action));
  if (serious && about.ours && !about.recovered) return row;
  row.status = Status::warn;
  if (serious && about.recovered) {
    row.value += "; the driver requests no recovery now";
    row.fix = event_remedy(XidAction::watch).fix;
  }
  return row;
}

/// "task python:4711 blocked for more than 122 seconds": its process cannot be killed, and may hold a GPU.
void judge_hung_tasks(const json& lines, std::vector<Row>& rows) {
  constexpr std::string_view kTask = "task ";
  constexpr std::string_view kBlocked = " blocked for more than ";
  std::vector<std::string> tasks;
  for (const auto& line : lines) {
    const auto said = line.value("text", "");
    const auto from = said.find(kTask);
    const auto to = said.find(kBlocked);
    if (line.value("age", 0.0) > kHour || from >= to || to == std::string::npos) continue;
    const auto task = text::printable(said.substr(from + kTask.size(), to - from - kTask.size()));
    if (std::ranges::find(tasks, task) == tasks.end()) tasks.push_back(task);
  }
  if (tasks.empty()) return;
  rows.push_back(warned(
      kKernelLog, "tasks",
      fmt::format("{} hung in the last hour: {}", text::count(tasks.size(), "task"), text::join(tasks, ", ")),
      "none",
      {"check what they wait for: a file system or a driver that does not respond", Responsible::admin}));
}

/// Faults that programs caused themselves do not count against the node.
std::string log_text(const std::vector<LoggedEvent>& of_programs) {
  std::string out = "no fault in the last 24 hours";
  for (const auto& told : of_programs)
    out += fmt::format("{}{}", &told == &of_programs.front() ? "; not a fault of the node: " : ", ",
                       event_text(told));
  return out;
}

std::vector<Row> check_kernel_log(const NodeObservations& observations) {
  const auto* answer = observations.answer(kKernelLog);
  if (answer == nullptr) return {};
  constexpr auto kSubject = "Xid, SXid, hung tasks";
  if (!answer->error.empty()) return {unknown(kKernelLog, kSubject, answer->error)};
  const auto& said = answer->said;
  if (said.contains("error")) return {unknown(kKernelLog, kSubject, said.value("error", ""))};
  if (said.contains("denied")) {
    return {
        skipped(kKernelLog, kSubject,
                fmt::format("needs permission to read the kernel log: root, CAP_SYSLOG, "
                            "kernel.dmesg_restrict=0, or membership in the group adm or systemd-journal ({})",
                            said.value("denied", "")))};
  }
  const auto lines = said.value("lines", json::array());
  const auto gpus = gpu_states(observations);
  std::vector<Row> rows;
  std::vector<LoggedEvent> of_programs;
  for (auto& told : collect_events(lines)) {
    if (action_of(told.event) == XidAction::none) {
      of_programs.push_back(std::move(told));
    } else {
      rows.push_back(judge_event(told, about_event(told, observations, gpus)));
    }
  }
  // On a machine without GPUs they do not concern us.
  if (!observations.machine.no_driver) judge_hung_tasks(lines, rows);
  if (rows.empty()) rows.push_back(passed(kKernelLog, kSubject, log_text(of_programs)));
  return rows;
}

const Registered<NodeCheck> kernel_log_check{{
    .order = 60,
    .name = kKernelLog,
    .what = "the kernel reported no GPU or NVSwitch fault in the last 24 hours",
    .judge = check_kernel_log,
}};

const Registered<Inquiry> kernel_log_inquiry{{.name = kKernelLog}};

}  // namespace
}  // namespace nlaunch::preflight
