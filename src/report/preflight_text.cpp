#include "report/preflight_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"

namespace nlaunch::report {

using preflight::Report;
using preflight::Row;
using preflight::Status;

std::string status_text(Status status, const Paint& paint) {
  const std::string name(preflight::name_of(status));
  switch (status) {
    case Status::pass:
      return paint.green(name);
    case Status::warn:
      return paint.yellow(name);
    case Status::fail:
      return paint.red(name);
    case Status::unknown:
      return paint.yellow(name);
    case Status::skip:
      return paint.dim(name);
  }
  return name;
}

std::string row_line(const Row& row, const Paint& paint) {
  auto out = fmt::format("{} {}{}{}", status_text(row.status, paint), row.check,
                         row.subject.empty() ? "" : " ", row.subject);
  if (!row.value.empty()) out += ": " + row.value;
  if (!row.expected.empty() && row.status != Status::pass) out += fmt::format(" (expected {})", row.expected);
  if (!row.fix.empty()) out += fmt::format("\n     fix ({}): {}", preflight::name_of(row.who), row.fix);
  return out + "\n";
}

std::string preflight_table(const Report& report, const Paint& paint) {
  Table table({"", "check", "subject", "value", "expected"});
  for (const auto& row : report.rows) {
    table.add({status_text(row.status, paint), row.check, row.subject, row.value, row.expected});
  }
  auto out = table.str(paint);
  if (report.measurements.empty()) return out;
  Table times({"group", "operation", "ranks", "size", "time", "bus bandwidth"});
  for (const auto& m : report.measurements) {
    times.add({m.group, fmt::format("{} ({})", m.op, m.backend), std::to_string(m.ranks),
               format_size(m.bytes), fmt::format("{:.1f} µs", m.seconds * 1e6), format_rate(m.busbw)});
  }
  return out + "\n" + times.str(paint);
}

std::string preflight_text(const Report& report, const Paint& paint) {
  std::string out;
  const auto number = [&](Status status) { return std::ranges::count(report.rows, status, &Row::status); };
  for (const auto& row : report.rows) {
    if (row.status != Status::pass && row.status != Status::skip) out += row_line(row, paint);
  }
  out += fmt::format("preflight {}: {} in {:.1f} s ({} passed", status_text(report.verdict, paint),
                     report.cancelled ? "stopped" : fmt::format("level {}", name_of(report.level)),
                     static_cast<double>(report.elapsed.count()) / 1000, number(Status::pass));
  for (const auto status : {Status::warn, Status::fail, Status::unknown, Status::skip}) {
    if (const auto n = number(status); n > 0) out += fmt::format(", {} {}", n, preflight::name_of(status));
  }
  return out + ")\n";
}

}  // namespace nlaunch::report
