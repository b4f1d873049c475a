#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "preflight/checks.h"
#include "preflight/gpu_state.h"
#include "preflight/xid.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;
constexpr auto kCheck = "kernel-log";
constexpr double kHour = 3600;
/// What is older has been dealt with, or has not come back.
constexpr double kJudged = 24 * kHour;

/// The same event of the same GPU, however often it is in the log.
struct Told {
  GpuEvent event;
  std::size_t times = 0;
  double age = 0;  ///< of the last one
};

std::vector<Told> collect(const json& lines) {
  std::vector<Told> out;
  for (const auto& line : lines) {
    const auto age = line.value("age", 0.0);
    auto event = age > kJudged ? std::nullopt : parse_gpu_event(line.value("text", ""));
    if (!event) continue;
    auto same = std::ranges::find_if(out, [&](const Told& told) {
      return told.event.kind == event->kind && told.event.code == event->code &&
             told.event.bus_id == event->bus_id;
    });
    if (same == out.end()) same = out.insert(out.end(), Told{});
    *same = {std::move(*event), same->times + 1, age};  // the log's order: the last one counts
  }
  return out;
}

/// "0009:01:00" as a bus id ends: with the device's function.
std::string whole(const std::string& bus_id) {
  return bus_id.find('.') == std::string::npos ? bus_id + ".0" : bus_id;
}

/// Which GPU it is about, and whether that one is fit again.
struct About {
  std::string subject;
  bool ours = false;       ///< the plan's, or one that the site has
  bool recovered = false;  ///< it answers, and its driver asks for no recovery
};

bool is_fit(const GpuState& gpu) {
  return gpu.get<unsigned>("recovery_action") == 0U;
}

About about(const Told& told, const NodeObservations& observations, const std::vector<GpuState>& gpus) {
  const auto bus_id = whole(told.event.bus_id);
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
  // Where no GPU can be seen, it may be for this very reason.
  return {fmt::format("GPU {}, none of the plan's", bus_id), sites || observations.node.gpus.empty(), false};
}

std::string value_of(const Told& told) {
  const auto& event = told.event;
  const bool is_switch = event.kind == GpuEvent::Kind::sxid;
  const auto* known = is_switch ? nullptr : find_xid(event.code);
  const auto what = known == nullptr || known->action == XidAction::by_line ? text::printable(event.text)
                                                                            : std::string(known->what);
  return fmt::format("{} {} ({}), {}{} ago", is_switch ? "SXid" : "Xid", event.code, what,
                     told.times == 1 ? "" : fmt::format("{} times, the last ", told.times),
                     age_text(told.age));
}

Remedy remedy_of(XidAction action) {
  switch (action) {
    case XidAction::reboot:
      return {"reboot the node; if it comes back, have the GPU and its slot looked at", Responsible::admin};
    case XidAction::repair:
      return {"have the GPU's power cable and its seat looked at", Responsible::admin};
    case XidAction::reset:
      return {
          "reset the GPU while nobody uses it (nvidia-smi --gpu-reset), or reboot the node; if it comes "
          "back, have the GPU replaced",
          Responsible::admin};
    default:
      return {"watch whether it comes back; NVIDIA's Xid catalog says what it may mean", Responsible::admin};
  }
}

Row judge(const Told& told, const About& about) {
  const auto action = action_of(told.event);
  const bool serious = action != XidAction::watch;
  auto row = failed(kCheck, about.subject, value_of(told), "none in the last 24 hours", remedy_of(action));
  if (serious && about.ours && !about.recovered) return row;
  row.status = Status::warn;
  if (serious && about.recovered) {
    row.value += "; the driver asks for no recovery now";
    row.fix = remedy_of(XidAction::watch).fix;
  }
  return row;
}

/// "task python:4711 blocked for more than 122 seconds": its process cannot be ended, and may hold a GPU.
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
      kCheck, "tasks",
      fmt::format("{} hung in the last hour: {}", text::count(tasks.size(), "task"), text::join(tasks, ", ")),
      "none",
      {"see what they wait for: a file system or a driver that does not answer", Responsible::admin}));
}

/// What programs did to themselves says nothing against the node.
std::string fine(const std::vector<Told>& of_programs) {
  std::string out = "no fault in the last 24 hours";
  for (const auto& told : of_programs)
    out += fmt::format("{}{}", &told == &of_programs.front() ? "; no fault of the node: " : ", ",
                       value_of(told));
  return out;
}

}  // namespace

std::vector<Row> check_kernel_log(const NodeObservations& observations) {
  const auto* answer = observations.answer(kCheck);
  if (answer == nullptr) return {};
  constexpr auto kSubject = "Xid, SXid, hung tasks";
  if (!answer->error.empty()) return {unknown(kCheck, kSubject, answer->error)};
  const auto& said = answer->said;
  if (said.contains("error")) return {unknown(kCheck, kSubject, said.value("error", ""))};
  if (said.contains("denied")) {
    return {
        skipped(kCheck, kSubject,
                fmt::format("needs to read the kernel log: root, CAP_SYSLOG, kernel.dmesg_restrict=0, or the "
                            "group adm or systemd-journal ({})",
                            said.value("denied", "")))};
  }
  const auto lines = said.value("lines", json::array());
  const auto gpus = gpu_states(observations);
  std::vector<Row> rows;
  std::vector<Told> of_programs;
  for (auto& told : collect(lines)) {
    if (action_of(told.event) == XidAction::none) {
      of_programs.push_back(std::move(told));
    } else {
      rows.push_back(judge(told, about(told, observations, gpus)));
    }
  }
  // On a machine without GPUs they are no matter of ours.
  if (!observations.machine.no_driver) judge_hung_tasks(lines, rows);
  if (rows.empty()) rows.push_back(passed(kCheck, kSubject, fine(of_programs)));
  return rows;
}

}  // namespace nlaunch::preflight
