#include "report/preflight_prometheus.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "preflight/report/figures.h"
#include "report/exposition.h"

namespace nlaunch::report {
namespace {

using preflight::Report;
using preflight::Status;

void write_checks(const Report& report, Exposition& page) {
  std::map<std::string, std::map<Status, int>> counts;
  for (const auto& row : report.rows) ++counts[row.check][row.status];
  page.gauge("nlaunch_preflight_check", "Rows of a check with this status.");
  for (auto& [check, of] : counts) {
    for (const auto status : kValues<Status>)
      page.sample(of[status], {{"check", check}, {"status", std::string(name_of(status))}});
  }
}

void write_measurements(const Report& report, Exposition& page) {
  if (report.measurements.empty()) return;
  const auto each = [&](std::string_view name, std::string_view help, double preflight::Measurement::*value) {
    page.gauge(name, help);
    for (const auto& one : report.measurements) {
      page.sample(one.*value, {{"group", one.group},
                               {"op", one.op},
                               {"backend", one.backend},
                               {"size", std::to_string(one.bytes)}});
    }
  };
  each("nlaunch_preflight_busbw_bytes_per_second",
       "Bus bandwidth of a collective at a message size in bytes.", &preflight::Measurement::busbw);
  each("nlaunch_preflight_collective_seconds", "Time of one collective at a message size in bytes.",
       &preflight::Measurement::seconds);
}

constexpr std::pair<std::string_view, std::string_view> kUnits[] = {
    {"B/s", "bytes_per_second"}, {"FLOP/s", "flops_per_second"}, {"s", "seconds"}};

void write_figures(const Report& report, Exposition& page) {
  for (const auto& [unit, name] : kUnits) {
    std::map<std::pair<std::string, std::string>, std::vector<double>> of_nodes;
    for (const auto& figure : report.figures) {
      if (figure.unit == unit) of_nodes[{figure.what, figure.host}].push_back(figure.value);
    }
    if (of_nodes.empty()) continue;
    const auto full = fmt::format("nlaunch_preflight_figure_{}", name);
    page.gauge(full, "Figures of GPUs and links: minimum and median of a node.");
    for (const auto& [key, values] : of_nodes) {
      const auto spread = preflight::spread_of(values);
      page.sample(spread.least, {{"what", key.first}, {"host", key.second}, {"stat", "min"}});
      page.sample(spread.median, {{"what", key.first}, {"host", key.second}, {"stat", "median"}});
    }
  }
}

}  // namespace

std::string preflight_prometheus(const Report& report) {
  Exposition page;
  page.gauge("nlaunch_preflight_info", "What was checked.");
  page.sample(1,
              {{"plan", report.plan}, {"site", report.site}, {"level", std::string(name_of(report.level))}});
  page.gauge("nlaunch_preflight_verdict", "1 for the verdict of the last preflight, 0 for all others.");
  for (const auto status : {Status::pass, Status::warn, Status::fail, Status::unknown})
    page.sample(report.verdict == status ? 1 : 0, {{"verdict", std::string(name_of(status))}});
  page.gauge("nlaunch_preflight_fail_count", "Number of rows that fail.");
  page.sample(static_cast<double>(std::ranges::count(report.rows, Status::fail, &preflight::Row::status)));
  write_checks(report, page);
  write_measurements(report, page);
  write_figures(report, page);
  page.gauge("nlaunch_preflight_elapsed_seconds", "How long the preflight took.");
  page.sample(std::chrono::duration<double>(report.elapsed).count());
  page.gauge("nlaunch_preflight_timestamp_seconds", "When the preflight ended, in seconds since 1970.");
  page.sample(static_cast<double>(report.time));
  return page.take();
}

}  // namespace nlaunch::report
