#include "probe/nvml/processes.h"

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/text.h"
#include "sys/proc.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;
using nvml::Device;

struct Holder {  // nvmlProcessInfo_v2_t, which the functions _v2 and _v3 fill in
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};
constexpr unsigned long long kNotAvailable = ~0ULL;  // NVML_VALUE_NOT_AVAILABLE

struct MemoryV2 {  // nvmlMemory_v2_t
  unsigned version;
  unsigned long long total, reserved, free, used;
};

/// Nothing if this NVML does not support it.
std::vector<Holder> ask_holders(const nvml::Session& nvml, Device device, const std::string& function) {
  constexpr unsigned kAtFirst = 64;
  constexpr int kTries = 3;  // more may have appeared between two calls
  std::vector<Holder> holders(kAtFirst);
  for (int i = 0; i < kTries; ++i) {
    auto count = static_cast<unsigned>(holders.size());
    const int error =
        nvml.call<int (*)(Device, unsigned*, Holder*)>(function.c_str(), device, &count, holders.data());
    if (error != nvml::kInsufficientSize) {
      holders.resize(error == nvml::kSuccess ? count : 0);
      return holders;
    }
    holders.resize(std::size_t{count} + kAtFirst);
  }
  return {};
}

/// The uppermost nlaunch above this process, or this process.
pid_t own_root() {
  auto root = ::getpid();
  auto process = sys::process_info(root);
  while (process && process->parent > 1) {
    process = sys::process_info(process->parent);
    if (process && process->name == "nlaunch") root = process->pid;
  }
  return root;
}

bool descends(pid_t pid, pid_t root) {
  for (auto process = sys::process_info(pid); process; process = sys::process_info(process->parent)) {
    if (process->pid == root) return true;
  }
  return false;
}

json describe(const Holder& holder, const char* kind) {
  json out{{"pid", holder.pid}, {"kind", kind}};
  if (holder.memory != kNotAvailable) out["memory"] = holder.memory;
  if (!sys::sees_all_processes()) return out;  // the same pid may be another process here
  const auto pid = static_cast<pid_t>(holder.pid);
  const auto process = sys::process_info(pid);
  const auto owner = process ? sys::owner(pid) : std::nullopt;
  if (!owner) return out;
  const auto command = text::join(sys::command_line(pid), " ");
  out["command"] = command.empty() ? process->name : command;
  out["user"] = sys::user_name(*owner);
  out["mine"] = *owner == ::getuid();
  return out;
}

void add_memory(json& gpu, const nvml::Session& nvml, Device device) {
  MemoryV2 memory{};
  memory.version = static_cast<unsigned>(sizeof(memory)) | 2U << 24U;
  if (nvml.call<int (*)(Device, MemoryV2*)>("nvmlDeviceGetMemoryInfo_v2", device, &memory) ==
      nvml::kSuccess) {
    gpu["memory"] = {{"total", memory.total}, {"used", memory.used}};
    return;
  }
  if (const auto old = nvml.number<nvml::Memory>("nvmlDeviceGetMemoryInfo", device))
    gpu["memory"] = {{"total", old->total}, {"used", old->used}};
}

}  // namespace

void add_processes(json& gpu, const nvml::Session& nvml, Device device) {
  constexpr std::pair<const char*, const char*> kKinds[] = {
      {"compute", "nvmlDeviceGetComputeRunningProcesses"},
      {"graphics", "nvmlDeviceGetGraphicsRunningProcesses"},
      {"mps", "nvmlDeviceGetMPSComputeRunningProcesses"}};
  add_memory(gpu, nvml, device);
  const auto root = own_root();
  std::vector<unsigned> seen;
  gpu["processes"] = json::array();
  for (const auto& [kind, function] : kKinds) {
    auto holders = ask_holders(nvml, device, fmt::format("{}_v3", function));
    if (holders.empty()) holders = ask_holders(nvml, device, fmt::format("{}_v2", function));
    for (const auto& holder : holders) {
      if (std::ranges::find(seen, holder.pid) != seen.end()) continue;
      seen.push_back(holder.pid);
      if (!descends(static_cast<pid_t>(holder.pid), root)) gpu["processes"].push_back(describe(holder, kind));
    }
  }
}

}  // namespace nlaunch::probe
