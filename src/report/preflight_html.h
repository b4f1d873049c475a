#pragma once
#include <string>

#include "preflight/preflight.h"

namespace nlaunch::report {

/// A report as one self-contained page: the verdict with its reasons first, then pairs, curves, nodes, and
/// all rows and figures. Made from templates/preflight.html.
std::string preflight_html(const preflight::Report& report);

}  // namespace nlaunch::report
