#include "probe/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>

namespace nlaunch::probe {
namespace {

std::string places() {
  const char* extra = std::getenv("LD_LIBRARY_PATH");
  return fmt::format("{}the loader's cache and system directories",
                     extra == nullptr || *extra == 0 ? "" : fmt::format("LD_LIBRARY_PATH ({}), ", extra));
}

std::string loaded_path(void* handle, const std::string& name) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return name;
  std::error_code error;
  const auto real = std::filesystem::canonical(map->l_name, error);
  return error ? std::string(map->l_name) : real.string();
}

}  // namespace

Result<DynamicLibrary> DynamicLibrary::open(const std::string& name) {
  const bool is_path = name.find('/') != std::string::npos;
  std::error_code error;
  if (is_path && !std::filesystem::exists(name, error)) {
    return failure("probe.library", "not found: looked for {}", name);
  }
  void* handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) return DynamicLibrary(handle, loaded_path(handle, name));
  const char* why = ::dlerror();
  const std::string reason = why == nullptr ? "no reason given" : why;
  if (!is_path && reason.find("No such file") != std::string::npos) {
    return failure("probe.library", "not found: looked for {} in {}", name, places());
  }
  return failure("probe.library", "cannot be loaded: {}", reason);
}

void* DynamicLibrary::address(const char* symbol) const {
  return ::dlsym(handle_, symbol);
}

}  // namespace nlaunch::probe
