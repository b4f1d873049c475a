#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/registry.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/groups.h"
#include "preflight/checks.h"
#include "preflight/checks/gpu_state.h"

namespace nlaunch::preflight {
namespace {

/// The entry for the rank's GPU in CUDA_VISIBLE_DEVICES; without the variable, its number.
std::string token_of(const NodeObservations& observations, const Rank& rank) {
  const auto visible = observations.variable(rank, "CUDA_VISIBLE_DEVICES");
  if (!visible) return fmt::format("{}", rank.device);
  const auto tokens = text::split(*visible, ',');
  const auto index = static_cast<std::size_t>(rank.device);
  return index < tokens.size() ? std::string(text::trim(tokens[index])) : std::string();
}

const GpuFact* find_gpu_fact(const NodeObservations& observations, const std::string& token) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  if (error == std::errc() && end == token.data() + token.size()) {
    return index < observations.machine.gpus.size() ? &observations.machine.gpus[index] : nullptr;
  }
  const auto found = std::ranges::find_if(observations.machine.gpus, [&](const GpuFact& gpu) {
    return !token.empty() && gpu.uuid.starts_with(token);
  });
  return found == observations.machine.gpus.end() ? nullptr : &*found;
}

Row given_twice(const Rank& first, const Rank& second, const std::string& token, const GpuFact* gpu) {
  const auto where = gpu == nullptr ? std::string() : fmt::format(" ({}, {})", gpu->bus_id, gpu->uuid);
  return failed("gpus", second.subject,
                fmt::format("{} and {} were given the same GPU: '{}' of CUDA_VISIBLE_DEVICES{}",
                            first.subject, second.subject, token, where),
                "one GPU per rank",
                {"do not set CUDA_VISIBLE_DEVICES in an env: block; nlaunch assigns each process its GPUs"});
}

Row judge_visible_gpu(const NodeObservations& observations, std::size_t index) {
  const auto& rank = observations.ranks[index];
  const auto token = token_of(observations, rank);
  if (token.empty()) {
    return failed(
        "gpus", rank.subject,
        fmt::format("its CUDA_VISIBLE_DEVICES has no entry {}: '{}'", rank.device,
                    observations.variable(rank, "CUDA_VISIBLE_DEVICES").value_or("")),
        "an entry for each GPU of the process",
        {"do not set CUDA_VISIBLE_DEVICES in an env: block; nlaunch assigns each process its GPUs"});
  }
  const auto* gpu = find_gpu_fact(observations, token);
  for (std::size_t earlier = 0; earlier < index; ++earlier) {
    const auto& other = observations.ranks[earlier];
    const bool planned = other.gpu == rank.gpu;  // they share it, or use it one after the other
    if (other.device >= 0 && !planned && token_of(observations, other) == token)
      return given_twice(other, rank, token, gpu);
  }
  if (gpu == nullptr) {
    return unknown("gpus", rank.subject,
                   fmt::format("NVML does not list the GPU that '{}' refers to", token));
  }
  return passed("gpus", rank.subject, fmt::format("{} {} {}", gpu->name, gpu->bus_id, gpu->uuid));
}

void judge_bus_ids(const NodeObservations& observations, std::vector<Row>& rows) {
  std::vector<std::string> absent;
  for (const auto& wanted : observations.plan.expected.bus_ids) {
    const bool there = std::ranges::any_of(observations.machine.gpus,
                                           [&](const GpuFact& gpu) { return same_bus(wanted, gpu.bus_id); });
    if (!there) absent.push_back(wanted);
  }
  if (observations.plan.expected.bus_ids.empty()) return;
  const auto wanted = text::join(observations.plan.expected.bus_ids, ", ");
  if (absent.empty()) {
    rows.push_back(passed("gpus", "bus ids", fmt::format("all bus ids of the site are present: {}", wanted)));
  } else {
    rows.push_back(failed("gpus", "bus ids", fmt::format("no GPU at {}", text::join(absent, ", ")), wanted,
                          {"report the node: a GPU is missing", Responsible::admin}));
  }
}

std::vector<Row> check_gpus(const NodeObservations& observations) {
  if (!observations.has_gpus()) {
    // A failing driver does not mean a machine without GPUs: the plan would have had them.
    const auto& machine = observations.machine;
    const bool broken = observations.plan.node.cpu_slots && !machine.nvml_error.empty() && !machine.no_driver;
    if (broken) return {unknown("gpus", "NVML", machine.nvml_error)};
    return {skipped("gpus", "this machine",
                    observations.plan.node.gpus > 0 && !observations.plan.node.cpu_slots
                        ? "the plan uses no GPU of this node"
                        : "no GPUs: the plan uses CPU slots")};
  }
  if (!observations.machine.nvml_error.empty())
    return {unknown("gpus", "NVML", observations.machine.nvml_error)};
  std::vector<Row> rows;
  judge_bus_ids(observations, rows);
  for (std::size_t i = 0; i < observations.ranks.size(); ++i) {
    if (observations.ranks[i].device >= 0) rows.push_back(judge_visible_gpu(observations, i));
  }
  return rows;
}

const Registered<NodeCheck> gpus_check{{
    .order = 10,
    .name = "gpus",
    .what = "NVML lists the GPUs that the plan uses, with the site's bus ids",
    .judge = check_gpus,
}};

using nlohmann::json;
constexpr auto kGpuMode = "gpu-mode";

/// A plan counts GPUs; slices are only for processes that were given slices.
void judge_mig(const GpuState& gpu, bool slices, std::vector<Row>& rows) {
  const auto mig = gpu.said.value("mig", json::object());
  const bool on = mig.value("current", false);
  if (on && !slices) {
    rows.push_back(failed(
        kGpuMode, gpu.name, "MIG mode is on: programs see slices of it, which NCCL cannot use together",
        "MIG mode off, or MIG devices in CUDA_VISIBLE_DEVICES",
        {"turn it off while the GPU is idle (nvidia-smi -mig 0), or give nlaunch the slices by UUID",
         Responsible::admin}));
  } else if (on != mig.value("pending", on)) {
    rows.push_back(warned(kGpuMode, gpu.name,
                          fmt::format("MIG mode turns {} at its next reset", on ? "off" : "on"),
                          "no pending change", {"ask who changed it", Responsible::admin}));
  }
}

/// "engine.0 and learner.0": two processes that the plan puts on one GPU of this node at the same time;
/// empty: none.
std::string sharers(const NodeObservations& observations, std::uint16_t gpu) {
  std::vector<const plan::Process*> on_it;
  for (const auto& bound : observations.node.processes) {
    const auto& process = observations.plan.processes[bound.process];
    if (std::ranges::find(process.gpus, gpu) != process.gpus.end()) on_it.push_back(&process);
  }
  for (const auto* one : on_it) {
    for (const auto* other : on_it) {
      const auto& plan = observations.plan;
      if (one < other && plan::share_gpus(plan.role_of(*one), plan.role_of(*other)))
        return fmt::format("{} and {}", plan.name_of(*one), plan.name_of(*other));
    }
  }
  return "";
}

/// nvmlComputeMode_t. `sharers` are processes that are on it at the same time.
void judge_compute_mode(const GpuState& gpu, const std::string& sharers, std::vector<Row>& rows) {
  constexpr unsigned kProhibited = 2;
  constexpr unsigned kExclusive = 3;
  const Remedy remedy{"set it back: nvidia-smi --compute-mode=DEFAULT", Responsible::admin};
  const auto mode = gpu.get<unsigned>("compute_mode").value_or(0);
  if (mode == kProhibited) {
    rows.push_back(failed(kGpuMode, gpu.name, "its compute mode allows no program to use it (prohibited)",
                          "default", remedy));
  } else if (mode == kExclusive && !sharers.empty()) {
    rows.push_back(failed(
        kGpuMode, gpu.name,
        fmt::format("its compute mode allows one process at a time (exclusive), and {} share it", sharers),
        "default", remedy));
  } else if (mode == kExclusive) {
    rows.push_back(warned(kGpuMode, gpu.name,
                          "its compute mode allows one process at a time (exclusive): a second one, such as "
                          "a helper of a server, fails",
                          "default", remedy));
  }
}

/// An idle GPU lowers the generation of its link, never the width. The GPU of a Grace machine has its CPU on
/// another link.
void judge_pcie(const GpuState& gpu, std::vector<Row>& rows) {
  const auto pcie = gpu.said.value("pcie", json::object());
  const auto width = pcie.value("width", 0U);
  const auto full = pcie.value("max_width", 0U);
  if (width == 0 || width >= full || gpu.said.contains("c2c")) return;
  rows.push_back(warned(
      kGpuMode, gpu.name, fmt::format("PCIe x{}", width), fmt::format("x{}", full),
      {"report the node: its slot or riser card gives the GPU only some of its lanes", Responsible::admin}));
}

/// Minor releases of one major release are compatible ("CUDA Compatibility").
void judge_driver(const json& answer, std::vector<Row>& rows) {
  const auto driver = parse_version(answer.value("cuda_driver", ""));
  const auto runtime = parse_version(answer.value("cuda_runtime", ""));
  if (!driver || !runtime || driver->parts.at(0) >= runtime->parts.at(0)) return;
  rows.push_back(
      warned(kGpuMode, "driver",
             fmt::format(
                 "{} supports CUDA {}, and nlaunch-probe was built with CUDA {}: it cannot use the GPUs here",
                 answer.value("driver", ""), driver->str(), runtime->str()),
             fmt::format("a driver for CUDA {}", runtime->parts[0]),
             {fmt::format("build nlaunch with CUDA {}, or install a newer driver", driver->parts[0])}));
}

std::string mode_text(const json& answer, const std::vector<GpuState>& gpus) {
  const auto pcie = gpus.front().said.value("pcie", json::object());
  std::string out = fmt::format("driver {}", answer.value("driver", ""));
  if (pcie.contains("width") && !gpus.front().said.contains("c2c"))
    out += fmt::format(", PCIe x{}", pcie.value("width", 0U));
  const bool sleeps =
      std::ranges::any_of(gpus, [](const GpuState& gpu) { return !gpu.said.value("persistence", true); });
  if (sleeps) out += "; persistence mode is off: the first program on an idle GPU waits for it to initialize";
  return out;
}

std::vector<Row> check_gpu_mode(const NodeObservations& observations) {
  const auto gpus = gpu_states(observations);
  if (gpus.empty()) return {};
  const auto& answer = *gpu_health_answer(observations);
  const bool slices = std::ranges::any_of(
      observations.node.gpus, [](const plan::BoundGpu& gpu) { return gpu.uuid.starts_with("MIG-"); });
  std::vector<Row> rows;
  for (const auto& gpu : gpus) {
    judge_mig(gpu, slices, rows);
    judge_compute_mode(gpu, sharers(observations, gpu.number), rows);
    judge_pcie(gpu, rows);
  }
  judge_driver(answer, rows);
  if (rows.empty())
    rows.push_back(passed(kGpuMode, text::count(gpus.size(), "GPU"), mode_text(answer, gpus)));
  return rows;
}

const Registered<NodeCheck> gpu_mode_check{{
    .order = 40,
    .name = kGpuMode,
    .what = "MIG, compute mode and PCIe width suit the run; the driver is new enough for the probe",
    .judge = check_gpu_mode,
}};

constexpr auto kGpuProcesses = "gpu-processes";

/// Below this a GPU counts as idle: a driver can keep 2 % of the memory for itself, a desktop some more.
std::uint64_t small_memory(const json& memory) {
  constexpr std::uint64_t kDriverShare = 50;
  constexpr std::uint64_t kAlways = 1U << 30U;
  return std::max(kAlways, memory.value("total", std::uint64_t{0}) / kDriverShare);
}

/// Nothing useful fits next to what is there.
bool is_memory_full(const json& memory) {
  constexpr std::uint64_t kTenth = 10;
  const auto total = memory.value("total", std::uint64_t{0});
  return total > 0 && memory.value("used", std::uint64_t{0}) > total - total / kTenth;
}

/// A display's share does not matter.
bool holder_matters(const json& process, std::uint64_t limit) {
  return process.value("kind", "") != "graphics" || process.value("memory", std::uint64_t{0}) > limit;
}

/// "pid 4711 (python train.py, bob, 38.0 GiB)"
std::string holder_text(const json& process) {
  constexpr std::size_t kLongest = 60;
  auto command = process.value("command", "not visible here");
  if (command.size() > kLongest) command.replace(kLongest, std::string::npos, "...");
  std::string out = fmt::format("pid {} ({}", process.value("pid", 0), text::printable(command));
  if (process.contains("user")) out += ", " + process["user"].get<std::string>();
  if (process.contains("memory")) out += ", " + size_text(process["memory"].get<std::uint64_t>());
  return out + ")";
}

Remedy holders_remedy(const std::vector<json>& holders) {
  std::string own;
  std::set<std::string> others;
  bool hidden = false;
  for (const auto& holder : holders) {
    if (!holder.contains("user")) {
      hidden = true;
    } else if (holder.value("mine", false)) {
      own += fmt::format(" {}", holder.value("pid", 0));
    } else {
      others.insert(holder["user"].get<std::string>());
    }
  }
  if (!own.empty()) return {"stop your own processes: kill" + own};
  if (!others.empty()) {
    const std::vector<std::string> names(others.begin(), others.end());
    return {fmt::format("ask {}, or use another node", text::join(names, ", ")), Responsible::admin};
  }
  return {hidden ? "check on the host itself: the process is outside this container, or hidden from you" : "",
          Responsible::admin};
}

/// "held by pid 4711 (...), pid 4712 (...) and 3 more"
std::string holders_list(const std::vector<json>& holders) {
  constexpr std::size_t kShown = 4;
  std::string out = "held by ";
  for (std::size_t i = 0; i < std::min(holders.size(), kShown); ++i)
    out += fmt::format("{}{}", i == 0 ? "" : ", ", holder_text(holders[i]));
  if (holders.size() > kShown) out += fmt::format(" and {} more", holders.size() - kShown);
  return out;
}

void judge_holders(const GpuState& gpu, std::vector<Row>& rows) {
  const auto memory = gpu.said.value("memory", json::object());
  const auto limit = small_memory(memory);
  const auto status = is_memory_full(memory) ? Status::fail : Status::warn;
  std::vector<json> holders;
  std::uint64_t known = 0;
  bool all_known = true;
  for (const auto& process : gpu.said.value("processes", json::array())) {
    known += process.value("memory", std::uint64_t{0});
    all_known &= process.contains("memory");
    if (holder_matters(process, limit)) holders.push_back(process);
  }
  if (!holders.empty()) {
    rows.push_back(
        warned(kGpuProcesses, gpu.name, holders_list(holders), "an idle GPU", holders_remedy(holders)));
    rows.back().status = status;
  }
  const auto used = memory.value("used", std::uint64_t{0});
  if (!all_known || used <= known || used - known <= limit) return;
  rows.push_back(warned(kGpuProcesses, gpu.name,
                        fmt::format("{} of {} are in use, but NVML lists no process", size_text(used - known),
                                    size_text(memory.value("total", std::uint64_t{0}))),
                        "an idle GPU",
                        {"it may be a process of another container, or one that cannot exit (state D in ps): "
                         "check on the host; if there is none, reset the GPU",
                         Responsible::admin}));
  rows.back().status = status;
}

std::vector<Row> check_gpu_processes(const NodeObservations& observations) {
  const auto gpus = gpu_states(observations);
  return judge_gpus(gpus, judge_holders,
                    passed(kGpuProcesses, text::count(gpus.size(), "GPU"), "not in use", "idle GPUs"));
}

const Registered<NodeCheck> gpu_processes_check{{
    .order = 50,
    .name = kGpuProcesses,
    .what = "no process holds a GPU before the run starts",
    .judge = check_gpu_processes,
}};

}  // namespace
}  // namespace nlaunch::preflight
