#pragma once
#include "cli/context.h"
#include "preflight/preflight.h"

namespace nlaunch::cli {

/// The exit code that a report's verdict is.
int code_of(preflight::Status verdict, bool strict);

/// Prints a report to standard output.
void print_report(const preflight::Report& report, bool json, const Context& context);

}  // namespace nlaunch::cli
