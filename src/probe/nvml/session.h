#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "probe/dynamic_library.h"

namespace nlaunch::probe {

/// The part of NVML's stable interface that is used here. NVML is loaded at run time, and its header is not
/// part of every CUDA toolkit; the few declarations are therefore here and where they are used. The numbers
/// are those of nvml.h of CUDA 12.9 and of nvidia-ml-py 13.615.71, which has the newer ones.
namespace nvml {

using Device = void*;

struct Memory {  // nvmlMemory_t, bytes
  unsigned long long total, free, used;
};

/// nvmlReturn_t, the values that matter here.
enum : int {
  kMissing = -1,  ///< this NVML lacks the function
  kSuccess = 0,
  kInvalidArgument = 2,
  kNoPermission = 4,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kLibraryNotFound = 12,
  kOperatingSystem = 17,  ///< "blocked by the operating system/cgroups"
  kNoGpu = 28,
};

/// A GPU that NVML counts but does not give a handle for.
struct Refused {
  unsigned index = 0;  ///< as NVML counts
  int code = 0;        ///< nvmlReturn_t
  std::string error;
};

struct Devices {
  std::vector<Device> usable;
  std::vector<Refused> refused;
};

/// NVML, loaded and initialized until the process exits.
class Session {
 public:
  /// The error says which library was searched for, and where. Its id is "probe.library", or
  /// "probe.no-driver" if this machine has no driver, and so no usable GPU.
  static Result<Session> open();

  /// The result of a function, or kMissing.
  template <class Function, class... Args>
  int call(const char* name, Args... args) const {
    const auto function = library_.find<Function>(name);
    return function == nullptr ? kMissing : function(args...);
  }

  /// A number of a device; nothing if this NVML or this GPU does not have it.
  template <class Number = unsigned>
  [[nodiscard]] std::optional<Number> number(const char* name, Device device) const {
    Number value{};
    const int error = call<int (*)(Device, Number*)>(name, device, &value);
    return error == kSuccess ? std::optional(value) : std::nullopt;
  }

  template <class... Before>
  [[nodiscard]] std::string text(const char* name, Before... before) const {
    std::array<char, 96> value{};
    const int error = call<int (*)(Before..., char*, unsigned)>(name, before..., value.data(), 96U);
    return error == kSuccess ? std::string(value.data()) : std::string();
  }

  [[nodiscard]] std::string error_text(int error) const;
  Result<Devices> devices() const;
  /// With the whole PCI domain: "00000000:3B:00.0".
  [[nodiscard]] std::string bus_id(Device device) const;
  /// "580.95.05".
  [[nodiscard]] std::string driver() const { return text("nvmlSystemGetDriverVersion"); }
  /// "13.0"; empty if unknown.
  [[nodiscard]] std::string cuda_driver() const;

 private:
  explicit Session(DynamicLibrary library) : library_(std::move(library)) {}
  DynamicLibrary library_;
};

/// One value of nvmlDeviceGetFieldValues.
struct Field {
  unsigned id = 0;
  unsigned scope = 0;                       ///< the link, for fields of links
  std::optional<std::uint64_t> value = {};  ///< nothing if it is not available
};
/// Fills in all values, in one call to the driver.
void read_fields(const Session& nvml, Device device, std::vector<Field>& fields);

}  // namespace nvml
}  // namespace nlaunch::probe
