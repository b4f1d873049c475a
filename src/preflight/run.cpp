#include "preflight/examine.h"
#include "preflight/local_probes.h"
#include "preflight/preflight.h"

namespace nlaunch::preflight {

Report run(const Request& request) {
  const auto begin = std::chrono::steady_clock::now();
  sys::Loop loop;
  Examination examination{.plan = request.plan,
                          .level = request.level,
                          .deadlines = request.deadlines,
                          .folder = request.folder,
                          .on_row = request.on_row,
                          .cancelled = request.cancelled,
                          .probes = [&](const std::vector<Rank>& ranks, const std::string& folder) {
                            return std::make_unique<LocalProbes>(
                                loop, LocalProbes::Options{request.node, ranks, 0, folder, request.probe});
                          }};
  auto report = examine(loop, examination,
                        {look({request.plan, request.node, request.folder, request.probe, request.facts})});
  report.elapsed = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
  return report;
}

}  // namespace nlaunch::preflight
