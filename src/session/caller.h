#pragma once
#include <string>
#include <vector>

#include "report/console.h"

namespace nlaunch::session {

/// Who called nlaunch, as far as a run needs to know.
struct Caller {
  report::Console console;
  std::vector<std::string> environment;
};

}  // namespace nlaunch::session
