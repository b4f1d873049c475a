#include "session/check.h"

#include "report/progress_line.h"

namespace nlaunch::session {

preflight::Report check(AttemptHost& host, preflight::Options options, const Caller& caller) {
  report::ProgressLine line(caller.console);
  options.progress = line.teller();
  return host.check(options);
}

}  // namespace nlaunch::session
