#include <fmt/format.h>

#include "preflight/checks.h"

namespace nlaunch::preflight {

std::vector<Row> check_libraries(const NodeObservations& observations) {
  if (!observations.has_gpus()) return {skipped("nccl", "this machine", "no GPUs: no libnccl is needed")};
  std::vector<Row> rows;
  for (const auto& [role, library] : observations.libraries) {
    const auto& subject = observations.plan.roles[role].name;
    if (!library.version.empty()) {
      rows.push_back(
          passed("nccl", subject, fmt::format("{} {} ({})", library.version, library.path, library.by)));
    } else if (library.path.empty()) {
      rows.push_back(
          unknown("nccl", subject, fmt::format("no libnccl was found ({}): {}", library.by, library.error)));
    } else {
      rows.push_back(failed("nccl", subject,
                            fmt::format("{} ({}): {}", library.path, library.by, library.error),
                            "a libnccl that loads", {"name a library that is there, or install it"}));
    }
  }
  return rows;
}

}  // namespace nlaunch::preflight
