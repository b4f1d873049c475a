#pragma once
#include <string>

#include "preflight/preflight.h"

/// The sections of the page; each is empty where there is nothing to show.
namespace nlaunch::report {

/// What is wrong, the worst first, with what to do.
std::string findings_html(const preflight::Report& report);
/// Times of collectives as curves, against what the site expects.
std::string curves_section(const preflight::Report& report);
/// A line for each node; those that are equal and well are one line.
std::string nodes_html(const preflight::Report& report);
/// All rows by check, as far as the page has room.
std::string checks_html(const preflight::Report& report);
std::string figures_html(const preflight::Report& report);
std::string measurements_html(const preflight::Report& report);

/// "<span class=\"status fail\">fail</span>"
std::string status_html(preflight::Status status);

}  // namespace nlaunch::report
