#include "report/preflight_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"
#include "base/units.h"

namespace nlaunch::report {

using preflight::Report;
using preflight::Row;
using preflight::Status;

namespace {

/// "pass" in green, "fail" in red.
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

/// "node0", "node0 and 2 more", "all 4"
std::string hosts_text(const std::vector<std::string>& hosts, std::size_t all) {
  if (hosts.empty()) return "";
  if (hosts.size() == all && all > 1) return fmt::format("all {}", all);
  return hosts.size() == 1 ? hosts.front() : fmt::format("{} and {} more", hosts.front(), hosts.size() - 1);
}

/// How many nodes the rows are about.
std::size_t count_hosts(const std::vector<Row>& rows) {
  std::set<std::string> hosts;
  for (const auto& row : rows) hosts.insert(row.hosts.begin(), row.hosts.end());
  return hosts.size();
}

/// What is the same on several nodes is one row.
std::vector<Row> fold(const std::vector<Row>& rows) {
  std::vector<Row> out;
  std::map<std::tuple<std::string, Status, std::string, std::string, std::string>, std::size_t> places;
  for (const auto& row : rows) {
    const auto [place, is_new] =
        places.try_emplace({row.check, row.status, row.subject, row.value, row.expected}, out.size());
    if (is_new || row.hosts.empty()) {
      out.push_back(row);
    } else {
      auto& hosts = out[place->second].hosts;
      hosts.insert(hosts.end(), row.hosts.begin(), row.hosts.end());
    }
  }
  return out;
}

std::string row_line(const Row& row, std::size_t nodes, const Paint& paint) {
  auto out = fmt::format("{} {}{}{}", status_text(row.status, paint), row.check,
                         row.subject.empty() ? "" : " ", row.subject);
  // A rank's name has its node in it.
  const auto hosts = hosts_text(row.hosts, nodes);
  const bool said =
      row.subject.find(hosts) != std::string::npos || row.value.find(hosts) != std::string::npos;
  if (!said) out += fmt::format(" on {}{}", hosts, hosts.starts_with("all ") ? " nodes" : "");
  if (!row.value.empty()) out += ": " + row.value;
  if (!row.expected.empty() && row.status != Status::pass) out += fmt::format(" (expected {})", row.expected);
  if (!row.fix.empty()) out += fmt::format("\n     fix ({}): {}", preflight::name_of(row.who), row.fix);
  return out + "\n";
}

}  // namespace

std::string preflight_reason(const Report& report) {
  const auto worst = [&](const Row& row) { return row.status == report.verdict; };
  const auto first = std::ranges::find_if(report.rows, worst);
  if (report.verdict == Status::pass || first == report.rows.end()) return "";
  auto row = *first;
  row.fix.clear();
  const auto others = std::ranges::count_if(report.rows, worst) - 1;
  const auto more = others > 0 ? fmt::format(", and {} more", others) : "";
  const auto line = text::printable(text::trim(row_line(row, 0, Paint(false))));
  constexpr std::size_t kLongest = 200;
  std::string shown;
  for (const auto c : text::characters(line)) {
    if (shown.size() + c.size() + more.size() > kLongest) break;
    shown += c;
  }
  return shown + more;
}

std::string preflight_table(const Report& report, const Paint& paint) {
  const auto nodes = count_hosts(report.rows);
  Table table({"", "check", "node", "subject", "value", "expected"});
  for (const auto& row : fold(report.rows)) {
    table.add({status_text(row.status, paint), row.check, hosts_text(row.hosts, nodes), row.subject,
               row.value, row.expected});
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
  const auto nodes = count_hosts(report.rows);
  for (const auto& row : fold(report.rows)) {
    if (row.status != Status::pass && row.status != Status::skip) out += row_line(row, nodes, paint);
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
