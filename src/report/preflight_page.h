#pragma once
#include <memory>

#include "base/source.h"

namespace nlaunch::report {

/// templates/preflight.html, as it was when this was built.
std::shared_ptr<const SourceFile> preflight_page();

}  // namespace nlaunch::report
