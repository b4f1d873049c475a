#include "probe/nvml/nvml.h"

#include <algorithm>
#include <cstdio>

#include "probe/nvml/links.h"
#include "probe/nvml/session.h"

namespace nlaunch::probe {
namespace {

NvmlGpu describe(const nvml::Session& session, nvml::Device device) {
  NvmlGpu gpu;
  gpu.bus_id = session.bus_id(device);
  gpu.uuid = session.text<nvml::Device>("nvmlDeviceGetUUID", device);
  gpu.name = session.text<nvml::Device>("nvmlDeviceGetName", device);
  gpu.domain = nvlink_domain(session, device);
  const auto memory =
      session.number<nvml::Memory>("nvmlDeviceGetMemoryInfo", device).value_or(nvml::Memory{});
  gpu.memory_total = memory.total;
  gpu.memory_used = memory.used;
  return gpu;
}

}  // namespace

Result<NvmlFacts> ask_nvml() {
  const auto session = nvml::Session::open();
  if (!session) return std::unexpected(session.error());
  const auto devices = session->devices();
  if (!devices) return std::unexpected(devices.error());
  NvmlFacts facts{session->driver(), session->cuda_driver(), {}, {}};
  for (const auto& gpu : devices->refused) {
    facts.errors.push_back(fmt::format("NVML GPU {} cannot be used: {}", gpu.index, gpu.error));
  }
  for (auto* device : devices->usable) facts.gpus.push_back(describe(*session, device));
  std::ranges::stable_sort(facts.gpus, {}, &NvmlGpu::bus_id);
  for (unsigned i = 0; i < facts.gpus.size(); ++i) facts.gpus[i].index = i;
  return facts;
}

std::string full_bus_id(const std::string& text) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned function = 0;
  constexpr int kParts = 4;
  if (std::sscanf(text.c_str(), "%x:%x:%x.%x", &domain, &bus, &device, &function) != kParts) return "";
  return fmt::format("{:08X}:{:02X}:{:02X}.{:X}", domain, bus, device, function);
}

}  // namespace nlaunch::probe
