#include "probe/fabric.h"

#include <cstdint>

#include "probe/dynamic_library.h"
#include "probe/output.h"

namespace nlaunch::probe {

nlohmann::json examine_fabric() {
  nlohmann::json out{{"event", "fabric"}};
  const auto library = DynamicLibrary::open("libfabric.so.1");
  const auto version = library ? library->find<std::uint32_t (*)()>("fi_version") : nullptr;
  if (!library) {
    out["error"] = text_of(library.error());
  } else if (version == nullptr) {
    out["error"] = library->path() + " has no fi_version";
  } else {
    const auto code = version();
    out["version"] = fmt::format("{}.{}", code >> 16U, code & 0xffffU);
    out["path"] = library->path();
  }
  return out;
}

}  // namespace nlaunch::probe
