#pragma once
#include <string>
#include <utility>

#include "base/diagnostic.h"

namespace nlaunch::probe {

/// A shared object opened at run time. It stays loaded until the process exits: CUDA, NCCL and NVML do not
/// survive being unloaded.
class DynamicLibrary {
 public:
  /// `name`: a path, or a name for the loader. The error lists what was searched for, and where.
  static Result<DynamicLibrary> open(const std::string& name);

  /// The function, or null if this library has none of that name.
  template <class Function>
  [[nodiscard]] Function find(const char* symbol) const {
    return reinterpret_cast<Function>(address(symbol));
  }
  /// The loaded file, with links resolved.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  DynamicLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  [[nodiscard]] void* address(const char* symbol) const;

  void* handle_;
  std::string path_;
};

}  // namespace nlaunch::probe
