#include "probe/nvml/session.h"

#include "probe/nvml/nvml.h"

namespace nlaunch::probe::nvml {
namespace {

struct PciInfo {  // nvmlPciInfo_t, versions 2 and 3
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

struct FieldValue {  // nvmlFieldValue_t
  unsigned id;
  unsigned scope;
  long long timestamp;
  long long latency;
  unsigned type;  // nvmlValueType_t
  int result;
  union {
    double real;
    unsigned natural;
    unsigned long long wide;
    int whole;
  } value;
};

/// nvmlValueType_t: 0 double, 1 unsigned int, 2 unsigned long, 3 unsigned long long, 4 long long, 5 int.
std::uint64_t natural(const FieldValue& field) {
  constexpr unsigned kDouble = 0;
  constexpr unsigned kUnsigned = 1;
  constexpr unsigned kInt = 5;
  switch (field.type) {
    case kDouble:
      return static_cast<std::uint64_t>(field.value.real);
    case kUnsigned:
      return field.value.natural;
    case kInt:
      return static_cast<std::uint64_t>(field.value.whole);
    default:
      return field.value.wide;
  }
}

}  // namespace

Result<Session> Session::open() {
  auto library = DynamicLibrary::open("libnvidia-ml.so.1");
  if (!library) return std::unexpected(library.error());
  Session session(*library);
  const int error = session.call<int (*)()>("nvmlInit_v2");
  if (error == kSuccess) return session;
  const bool no_driver = error == kDriverNotLoaded || error == kLibraryNotFound || error == kNoGpu;
  return failure(no_driver ? "probe.no-driver" : "probe.nvml", "nvmlInit_v2 failed: {}",
                 session.error_text(error));
}

std::string Session::error_text(int error) const {
  const auto text = library_.find<const char* (*)(int)>("nvmlErrorString");
  return error < 0 || text == nullptr ? "this NVML lacks the function" : text(error);
}

Result<Devices> Session::devices() const {
  unsigned count = 0;
  if (const int error = call<int (*)(unsigned*)>("nvmlDeviceGetCount_v2", &count); error != kSuccess) {
    return failure("probe.nvml", "nvmlDeviceGetCount_v2 failed: {}", error_text(error));
  }
  Devices out;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    const int error = call<int (*)(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2", i, &device);
    if (error == kSuccess) {
      out.usable.push_back(device);
    } else {
      out.refused.push_back({i, error, error_text(error)});
    }
  }
  return out;
}

std::string Session::bus_id(Device device) const {
  PciInfo pci{};
  const int error = call<int (*)(Device, PciInfo*)>("nvmlDeviceGetPciInfo_v3", device, &pci);
  return error == kSuccess ? full_bus_id(pci.bus_id) : std::string();
}

std::string Session::cuda_driver() const {
  int version = 0;
  const int error = call<int (*)(int*)>("nvmlSystemGetCudaDriverVersion_v2", &version);
  return error == kSuccess ? fmt::format("{}.{}", version / 1000, version % 1000 / 10) : std::string();
}

void read_fields(const Session& nvml, Device device, std::vector<Field>& fields) {
  std::vector<FieldValue> values(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    values[i].id = fields[i].id;
    values[i].scope = fields[i].scope;
  }
  const int error = nvml.call<int (*)(Device, int, FieldValue*)>(
      "nvmlDeviceGetFieldValues", device, static_cast<int>(values.size()), values.data());
  if (error != kSuccess) return;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (values[i].result == kSuccess) fields[i].value = natural(values[i]);
  }
}

}  // namespace nlaunch::probe::nvml
