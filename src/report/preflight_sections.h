#pragma once
#include <string>

#include "preflight/preflight.h"

/// The sections of the page; each is empty if it has nothing to show.
namespace nlaunch::report {

/// The problems, the worst first, with their fixes.
std::string findings_html(const preflight::Report& report);
/// Collectives as curves, compared with what the site expects.
std::string curves_section(const preflight::Report& report);
/// One line for each node; equal nodes without findings share one line.
std::string nodes_html(const preflight::Report& report);
/// All rows by check, up to the size limit of the page.
std::string checks_html(const preflight::Report& report);
std::string figures_html(const preflight::Report& report);
std::string measurements_html(const preflight::Report& report);

/// "<span class=\"status fail\">fail</span>"
std::string status_html(preflight::Status status);

}  // namespace nlaunch::report
