#include "probe/nvml.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "probe/dynamic_library.h"

namespace nlaunch::probe {
namespace {

/// The part of NVML's stable interface that is used here. NVML is loaded at run time, and its header is not
/// part of every CUDA toolkit, so that the few declarations stand here (nvml.h, API version 2 and 3 of
/// PciInfo).
using Device = void*;
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct Memory {
  unsigned long long total, free, used;
};

class Nvml {
 public:
  static Result<Nvml> open() {
    auto library = DynamicLibrary::open("libnvidia-ml.so.1");
    if (!library) return std::unexpected(library.error());
    Nvml nvml(*library);
    if (const int error = nvml.call<int (*)()>("nvmlInit_v2"); error != 0) {
      return failure("probe.nvml", "nvmlInit_v2 failed: {}", nvml.error_text(error));
    }
    return nvml;
  }

  /// The result of a function, or -1 where this NVML does not have it.
  template <class Function, class... Args>
  int call(const char* name, Args... args) const {
    const auto function = library_.find<Function>(name);
    return function == nullptr ? -1 : function(args...);
  }

  [[nodiscard]] std::string error_text(int error) const {
    const auto text = library_.find<const char* (*)(int)>("nvmlErrorString");
    return error < 0 || text == nullptr ? "this NVML does not have the function" : text(error);
  }

  template <class... Before>
  [[nodiscard]] std::string text(const char* name, Before... before) const {
    std::array<char, 96> value{};
    const int error = call<int (*)(Before..., char*, unsigned)>(name, before..., value.data(), 96U);
    return error == 0 ? std::string(value.data()) : std::string();
  }

 private:
  explicit Nvml(DynamicLibrary library) : library_(std::move(library)) {}
  DynamicLibrary library_;
};

NvmlGpu describe(const Nvml& nvml, Device device) {
  NvmlGpu gpu;
  PciInfo pci{};
  if (nvml.call<int (*)(Device, PciInfo*)>("nvmlDeviceGetPciInfo_v3", device, &pci) == 0)
    gpu.bus_id = full_bus_id(pci.bus_id);
  gpu.uuid = nvml.text<Device>("nvmlDeviceGetUUID", device);
  gpu.name = nvml.text<Device>("nvmlDeviceGetName", device);
  Memory memory{};
  if (nvml.call<int (*)(Device, Memory*)>("nvmlDeviceGetMemoryInfo", device, &memory) == 0) {
    gpu.memory_total = memory.total;
    gpu.memory_used = memory.used;
  }
  return gpu;
}

}  // namespace

Result<NvmlFacts> ask_nvml() {
  const auto nvml = Nvml::open();
  if (!nvml) return std::unexpected(nvml.error());
  NvmlFacts facts;
  facts.driver = nvml->text("nvmlSystemGetDriverVersion");
  nvml->call<int (*)(int*)>("nvmlSystemGetCudaDriverVersion_v2", &facts.cuda_driver);
  unsigned count = 0;
  if (const int error = nvml->call<int (*)(unsigned*)>("nvmlDeviceGetCount_v2", &count); error != 0) {
    return failure("probe.nvml", "nvmlDeviceGetCount_v2 failed: {}", nvml->error_text(error));
  }
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    const int error = nvml->call<int (*)(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2", i, &device);
    if (error != 0) {
      facts.errors.push_back(fmt::format("GPU {} of NVML cannot be used: {}", i, nvml->error_text(error)));
    } else {
      facts.gpus.push_back(describe(*nvml, device));
    }
  }
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
