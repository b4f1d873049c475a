#pragma once
#include "cli/context.h"
#include "preflight/preflight.h"

namespace nlaunch::cli {

/// The value of --level, which the parser has checked.
PreflightLevel level_of(std::string_view typed);

/// The exit code that a report's verdict is.
int code_of(preflight::Status verdict, bool strict);

/// Prints a report to standard output.
void print_report(const preflight::Report& report, bool json, const Context& context);

}  // namespace nlaunch::cli
