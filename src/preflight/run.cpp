#include "preflight/examine.h"
#include "preflight/local_probes.h"
#include "preflight/preflight.h"

namespace nlaunch::preflight {

namespace {

Examination examination_here(sys::Loop& loop, const Request& request) {
  return {.plan = request.plan,
          .options = request.options,
          .deadlines = request.deadlines,
          .folder = request.folder,
          .cancelled = request.cancelled,
          .probes = [&](const ProbeStart& start) {
            return std::make_unique<LocalProbes>(
                loop, LocalProbes::Options{request.node, start.ranks, 0, start.folder, request.probe,
                                           start.wanted});
          }};
}

}  // namespace

Measured measure(const Request& request, std::vector<Rank> ranks, std::vector<GroupTrial> trials) {
  sys::Loop loop;
  return measure(loop, examination_here(loop, request), std::move(ranks), std::move(trials));
}

Report run(const Request& request) {
  const auto begin = std::chrono::steady_clock::now();
  sys::Loop loop;
  request.options.tell("looking at this machine");
  auto report = examine(loop, examination_here(loop, request),
                        {look({request.plan, request.node, request.folder, request.probe,
                               request.options.level, request.facts})});
  report.elapsed = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
  return report;
}

}  // namespace nlaunch::preflight
