#include "report/preflight_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "preflight/report/figures.h"
#include "report/fold.h"
#include "report/heat_map.h"

namespace nlaunch::report {

using preflight::Report;
using preflight::Row;
using preflight::Status;

namespace {

/// A pair below this share of the median is highlighted.
constexpr double kSlow = 0.85;

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

std::string row_line(const Row& row, std::size_t nodes, const Paint& paint) {
  auto out = fmt::format("{} {}{}{}", status_text(row.status, paint), row.check,
                         row.subject.empty() ? "" : " ", row.subject);
  // The name of a rank contains its node.
  const auto hosts = hosts_text(row.hosts, nodes);
  const bool said =
      row.subject.find(hosts) != std::string::npos || row.value.find(hosts) != std::string::npos;
  if (!said) out += fmt::format(" on {}{}", hosts, hosts.starts_with("all ") ? " nodes" : "");
  if (!row.value.empty()) out += ": " + row.value;
  if (!row.expected.empty() && row.status != Status::pass) out += fmt::format(" (expected {})", row.expected);
  if (!row.fix.empty())
    out += fmt::format("\n     fix ({}): {}", preflight::name_of(row.responsible), row.fix);
  return out + "\n";
}

/// Measurements of GPUs and links, one line for each kind of figure.
std::string figures_table(const Report& report, const Paint& paint) {
  std::map<std::string, std::vector<const preflight::Figure*>> by_what;
  for (const auto& figure : report.figures) by_what[figure.what].push_back(&figure);
  Table table({"figure", "count", "median", "min", "max", "where the minimum is"});
  for (const auto& [what, figures] : by_what) {
    std::vector<double> values;
    for (const auto* figure : figures) values.push_back(figure->value);
    const auto* least =
        *std::ranges::min_element(figures, {}, [](const auto* figure) { return figure->value; });
    const auto spread = preflight::spread_of(std::move(values));
    const auto said = [&](double value) { return preflight::figure_text(value, least->unit); };
    table.add({what, std::to_string(figures.size()), said(spread.median), said(spread.least),
               said(spread.most), preflight::place_of(*least)});
  }
  return table.str(paint);
}

/// The pairs of GPUs of one machine; of several nodes, the one with the slowest pair.
std::string matrix_table(const Report& report, const Paint& paint) {
  constexpr std::size_t kMostGpus = 8;
  auto matrices = pair_matrices(report.figures);
  std::erase_if(matrices, [](const PairMatrix& matrix) {
    return matrix.what != "p2p" || matrix.unit != "B/s" || matrix.names.size() > kMostGpus;
  });
  const auto worst = std::ranges::min_element(matrices, {}, &PairMatrix::worst);
  if (worst == matrices.end()) return "";
  std::vector<std::string> head{
      fmt::format("{}{}, GB/s", worst->host.empty() ? "" : worst->host + " ", worst->what)};
  for (const auto& name : worst->names) head.push_back(name.substr(name.find(' ') + 1));
  Table table(std::move(head));
  for (const auto& from : worst->names) {
    std::vector<std::string> cells{from};
    for (const auto& to : worst->names) {
      const auto* value = worst->at(from, to);
      const auto text = value == nullptr ? "" : fmt::format("{:.0f}", *value / 1e9);
      const bool slow = value != nullptr && *value < kSlow * worst->median();
      cells.push_back(slow ? paint.red(text) : text);
    }
    table.add(std::move(cells));
  }
  return fmt::format("\n{}", table.str(paint));
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
  if (!report.figures.empty())
    out += fmt::format("\n{}{}", figures_table(report, paint), matrix_table(report, paint));
  if (report.measurements.empty()) return out;
  Table times({"group", "operation", "ranks", "size", "time", "bus bandwidth"});
  for (const auto& m : report.measurements) {
    times.add({m.group, fmt::format("{} ({})", m.op, m.backend), std::to_string(m.ranks),
               format_size(m.bytes), fmt::format("{:.1f} µs", m.seconds * 1e6), format_rate(m.busbw)});
  }
  return fmt::format("{}\n{}", out, times.str(paint));
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
  constexpr std::pair<Status, std::string_view> kOthers[] = {{Status::warn, "warned"},
                                                             {Status::fail, "failed"},
                                                             {Status::unknown, "unknown"},
                                                             {Status::skip, "skipped"}};
  for (const auto& [status, word] : kOthers) {
    if (const auto n = number(status); n > 0) out += fmt::format(", {} {}", n, word);
  }
  return out + ")\n";
}

}  // namespace nlaunch::report
