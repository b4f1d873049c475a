#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/units.h"
#include "preflight/report/figures.h"
#include "report/curve.h"
#include "report/html.h"
#include "report/preflight_sections.h"

namespace nlaunch::report {

using preflight::Figure;
using preflight::Measurement;
using preflight::Report;

namespace {

/// With more groups of a kind, they share one line or one curve.
constexpr std::size_t kMostGroups = 4;

std::string name_of_figure(const std::string& what) {
  static const std::map<std::string, std::string> kNames{
      {"p2p", "copy from GPU to GPU"},       {"host_to_device", "copy to a GPU"},
      {"device_to_host", "copy from a GPU"}, {"gemm", "matrix multiplication, bf16"},
      {"pair", "all-reduce of two"},         {"clock", "clock offset from the first node"}};
  const auto name = kNames.find(what);
  return name == kNames.end() ? html(what) : name->second;
}

std::string figure_line(const std::string& what, const std::vector<const Figure*>& figures) {
  std::vector<double> values;
  for (const auto* figure : figures) values.push_back(figure->value);
  const auto least =
      *std::ranges::min_element(figures, {}, [](const Figure* figure) { return figure->value; });
  const auto spread = preflight::spread_of(std::move(values));
  const auto& unit = least->unit;
  return fmt::format("<tr><td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td>{}\n",
                     name_of_figure(what), thousands(figures.size()),
                     preflight::figure_text(spread.median, unit), preflight::figure_text(spread.most, unit),
                     preflight::figure_text(spread.least, unit), html(preflight::place_of(*least)));
}

/// Measurements that are drawn together: those of a group, or of a kind that has many groups.
struct Family {
  std::string name;
  std::string op;
  std::map<std::uint64_t, std::vector<const Measurement*>> sizes;
};

std::vector<Family> families_of(const Report& report) {
  std::map<std::string, std::map<std::string, int>> groups;  // by kind
  for (const auto& one : report.measurements) ++groups[one.kind][one.group];
  std::vector<Family> out;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> places;
  for (const auto& one : report.measurements) {
    const auto count = groups[one.kind].size();
    const bool many = !one.kind.empty() && count > kMostGroups;
    auto name = many ? fmt::format("{}: {} groups", one.kind, thousands(count)) : one.group;
    const auto [place, is_new] = places.try_emplace({name, one.op, one.backend}, out.size());
    if (one.backend != "nccl") name += ", " + one.backend;
    if (is_new) out.push_back({std::move(name), one.op, {}});
    out[place->second].sizes[one.bytes].push_back(&one);
  }
  return out;
}

Curve curve_of(const Family& family) {
  Curve curve{family.op == "all_reduce" ? family.name : fmt::format("{} ({})", family.name, family.op), {}};
  for (const auto& [bytes, all] : family.sizes) {
    std::vector<double> rates;
    for (const auto* one : all) rates.push_back(one->busbw);
    const auto spread = preflight::spread_of(std::move(rates));
    curve.points.push_back({bytes, spread.median, spread.least, spread.most});
  }
  return curve;
}

void add_marks(const Family& family, std::vector<CurveMark>& marks) {
  const auto add = [&](const CurveMark& mark) {
    const auto same = [&](const CurveMark& other) {
      return other.bytes == mark.bytes && other.rate == mark.rate;
    };
    if (mark.rate > 0 && std::ranges::none_of(marks, same)) marks.push_back(mark);
  };
  for (const auto& [bytes, all] : family.sizes) {
    for (const auto* one : all) {
      add({bytes, one->floor, family.name});
      add({0, one->limit, family.name});
    }
  }
}

std::string measurement_line(const Family& family, std::uint64_t bytes,
                             const std::vector<const Measurement*>& all) {
  const auto slowest = *std::ranges::min_element(all, {}, [](const Measurement* one) { return one->busbw; });
  std::vector<double> rates;
  for (const auto* one : all) rates.push_back(one->busbw);
  const auto median = all.size() > 1 ? rate_text(preflight::spread_of(std::move(rates)).median) : "";
  auto name = html(family.name);
  if (all.size() > 1) name += fmt::format(" <small>slowest: {}</small>", html(slowest->group));
  return fmt::format(
      "<tr><td>{}<td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td "
      "class=n>{}\n",
      name, html(family.op), slowest->ranks, format_size(bytes),
      preflight::figure_text(slowest->seconds, "s"), rate_text(slowest->busbw), median,
      slowest->floor > 0 ? rate_text(slowest->floor) : "");
}

}  // namespace

std::string curves_section(const Report& report) {
  std::vector<Curve> curves;
  std::vector<CurveMark> marks;
  for (const auto& family : families_of(report)) {
    curves.push_back(curve_of(family));
    add_marks(family, marks);
  }
  const auto chart = curves_html(curves, marks);
  return chart.empty() ? "" : "<section id=curves>\n<h2>Collectives</h2>\n" + chart + "</section>\n";
}

std::string figures_html(const Report& report) {
  if (report.figures.empty()) return "";
  std::map<std::string, std::vector<const Figure*>> by_what;
  for (const auto& figure : report.figures) by_what[figure.what].push_back(&figure);
  std::string out =
      "<section id=figures>\n<h2>Figures</h2>\n<div class=scroll><table><thead><tr><th>what<th "
      "class=n>count<th class=n>median<th class=n>max<th class=n>min<th>where the minimum "
      "is</thead><tbody>\n";
  for (const auto& [what, figures] : by_what) out += figure_line(what, figures);
  return out + "</tbody></table></div>\n</section>\n";
}

std::string measurements_html(const Report& report) {
  if (report.measurements.empty()) return "";
  std::string out =
      "<section id=measurements>\n<h2>Measurements</h2>\n<div class=scroll><table><thead><tr><th>group"
      "<th>operation<th class=n>ranks<th class=n>size<th class=n>time<th class=n>bus bandwidth"
      "<th class=n>median<th class=n>expected</thead><tbody>\n";
  for (const auto& family : families_of(report)) {
    for (const auto& [bytes, all] : family.sizes) out += measurement_line(family, bytes, all);
  }
  return out + "</tbody></table></div>\n</section>\n";
}

}  // namespace nlaunch::report
