#pragma once
#include "cli/context.h"
#include "cli/place.h"
#include "preflight/preflight.h"

namespace nlaunch::cli {

/// The value of --level, which the parser has checked.
PreflightLevel level_of(std::string_view typed);

/// Place::check, with a line on the terminal that says what goes on.
preflight::Report check_place(Place& place, preflight::Options options, const Context& context);

/// A report that was saved as JSON.
Result<preflight::Report> read_report(const std::string& path);

/// Prints a report to standard output.
void print_report(const preflight::Report& report, bool json, const Context& context);

}  // namespace nlaunch::cli
