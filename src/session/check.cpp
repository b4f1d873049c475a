#include "session/check.h"

#include "base/scheduler_traits.h"
#include "report/progress_line.h"
#include "sys/spawn.h"

namespace nlaunch::session {

std::string job_of(const std::vector<std::string>& environment) {
  for (const auto* scheduler : all_schedulers()) {
    if (scheduler->job_variable.empty()) continue;
    const auto job = sys::env_value(environment, scheduler->job_variable);
    if (!job.empty()) return std::string(job);
  }
  return "";
}

preflight::Report check(AttemptHost& host, preflight::Options options, const Caller& caller) {
  report::ProgressLine line(caller.console);
  options.progress = line.teller();
  auto report = host.check(options);
  report.job = job_of(caller.environment);
  return report;
}

}  // namespace nlaunch::session
