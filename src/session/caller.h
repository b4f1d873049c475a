#pragma once
#include <string>
#include <vector>

#include "report/console.h"

namespace nlaunch::session {

/// The caller of nlaunch, as far as a run needs it.
struct Caller {
  report::Console console;
  std::vector<std::string> environment;
};

}  // namespace nlaunch::session
