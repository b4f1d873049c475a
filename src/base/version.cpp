#include "base/version.h"

namespace nlaunch {

std::string_view version() {
  return NLAUNCH_VERSION;
}

}  // namespace nlaunch
