#include "preflight/report/baseline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "preflight/report/figures.h"
#include "sys/files.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

/// SuperBench's rule: a metric that is more than 5 % worse than its baseline is a defect
/// (docs/user-tutorial/data-diagnosis.md, "variance"). One run of a preflight is short, so here it warns; a
/// run is refused at four times as much.
constexpr double kWarn = 0.05;
constexpr double kFail = 0.20;
/// For shorter messages the time is latency, which varies by more than that from run to run.
constexpr std::uint64_t kSmallest = 16U << 20U;

/// One figure of a report, for comparison.
struct Metric {
  std::string name;  ///< Baseline::Value::name
  std::string unit;
  double value = 0;
  std::string subject;
  std::vector<std::string> hosts{};
};

/// Times of a node's clock, and of pairs that were only tried in the search, are left out.
bool compared(const Figure& figure) {
  return figure.what != "pair" && figure.unit != "s";
}

std::vector<Metric> metrics_of(const Report& report) {
  std::vector<Metric> out;
  for (const auto& one : report.measurements) {
    if (one.bytes < kSmallest) continue;
    const auto size = format_size(one.bytes);
    out.push_back({fmt::format("{} of {} ({}, {} ranks) at {}", one.op,
                               one.kind.empty() ? one.group : one.kind, one.backend, one.ranks, size),
                   "B/s", one.busbw, fmt::format("{} of {} at {}", one.op, one.group, size)});
  }
  std::map<std::pair<std::string, std::string>, std::vector<double>> figures;
  std::map<std::string, std::string> units;
  for (const auto& figure : report.figures) {
    if (!compared(figure)) continue;
    figures[{figure.what, figure.host}].push_back(figure.value);
    units[figure.what] = figure.unit;
  }
  for (auto& [key, values] : figures) {
    const auto& [what, host] = key;
    Metric metric{what, units[what], spread_of(std::move(values)).median, what};
    if (!host.empty()) metric.hosts = {host};
    out.push_back(std::move(metric));
  }
  return out;
}

/// Without duplicates, joined by ", ".
std::string distinct(const Report& report, std::string (*of)(const NodeSummary&)) {
  std::set<std::string> words;
  for (const auto& node : report.nodes) words.insert(of(node));
  words.erase("");
  return text::join(std::vector(words.begin(), words.end()), ", ");
}

Baseline::Hardware hardware_of(const Report& report) {
  return {distinct(report, [](const NodeSummary& node) { return node.gpu; }),
          distinct(report, [](const NodeSummary& node) { return std::to_string(node.gpus); }),
          distinct(report, [](const NodeSummary& node) { return node.arch; }), report.nodes.size()};
}

std::string str(const Baseline::Hardware& hardware) {
  const auto gpus = hardware.gpu.empty() ? "no GPU" : fmt::format("{} × {}", hardware.gpus, hardware.gpu);
  return fmt::format("{} with {} ({})", text::count(hardware.nodes, "node"), gpus, hardware.arch);
}

/// "the driver was 570.1 and is now 580.2; ", or nothing.
std::string changed(std::string_view what, const std::string& before, const std::string& now) {
  return before == now ? "" : fmt::format("{} was {} and is now {}; ", what, before, now);
}

Row judge(const Metric& metric, double saved, const std::string& expected, const Remedy& remedy) {
  const auto change = metric.value / saved - 1;
  auto value = fmt::format("{}, {:.0f} % {} than in the baseline", figure_text(metric.value, metric.unit),
                           100 * std::abs(change), change < 0 ? "less" : "more");
  if (change > -0.005 && change < 0.005)
    value = fmt::format("{}, as in the baseline", figure_text(metric.value, metric.unit));
  auto row = change < -kFail   ? failed("baseline", metric.subject, std::move(value), expected, remedy)
             : change < -kWarn ? warned("baseline", metric.subject, std::move(value), expected, remedy)
                               : passed("baseline", metric.subject, std::move(value), expected);
  row.hosts = metric.hosts;
  return row;
}

Baseline from_json(const json& from) {
  const auto& hardware = from.at("hardware");
  Baseline out{{hardware.at("gpu"), hardware.at("gpus"), hardware.at("arch"), hardware.at("nodes")},
               from.at("driver"),
               from.at("nccl"),
               from.at("time"),
               {}};
  for (const auto& value : from.at("values"))
    out.values.push_back({value.at("name"), value.at("value"), value.at("unit")});
  return out;
}

std::unexpected<Diagnostics> no_baseline(const std::string& path, std::string message) {
  Diagnostics out;
  out.error("preflight.baseline", {}, std::move(message)).hint =
      fmt::format("create one with: nlaunch preflight --baseline save {}", text::shell_quote(path));
  return std::unexpected(std::move(out));
}

}  // namespace

Baseline baseline_of(const Report& report) {
  Baseline out{hardware_of(report),
               distinct(report, [](const NodeSummary& node) { return node.driver; }),
               distinct(report, [](const NodeSummary& node) { return node.nccl; }),
               report.time,
               {}};
  std::map<std::string, std::pair<std::string, std::vector<double>>> by_name;
  for (const auto& metric : metrics_of(report)) {
    auto& [unit, values] = by_name[metric.name];
    unit = metric.unit;
    values.push_back(metric.value);
  }
  for (auto& [name, of] : by_name)
    out.values.push_back({name, spread_of(std::move(of.second)).median, of.first});
  return out;
}

std::vector<Row> compare(const Baseline& baseline, const Report& report, const std::string& name) {
  const auto now = baseline_of(report);
  if (const auto was = str(baseline.hardware), is = str(now.hardware); was != is) {
    return {unknown("baseline", name,
                    fmt::format("not compared: the baseline is from {}, but this is {}", was, is))};
  }
  const Remedy remedy{fmt::format("{}{}if nothing was changed on purpose, report the node",
                                  changed("the driver", baseline.driver, now.driver),
                                  changed("NCCL", baseline.nccl, now.nccl)),
                      Responsible::admin};
  std::vector<Row> rows;
  std::set<std::string> found;
  for (const auto& metric : metrics_of(report)) {
    const auto saved = std::ranges::find(baseline.values, metric.name, &Baseline::Value::name);
    if (saved == baseline.values.end() || saved->value <= 0) continue;
    found.insert(saved->name);
    rows.push_back(judge(metric, saved->value,
                         fmt::format("{} ({})", figure_text(saved->value, saved->unit), name), remedy));
  }
  if (const auto missing = baseline.values.size() - found.size(); missing > 0) {
    rows.push_back(skipped("baseline", name,
                           fmt::format("{} of its {} were not measured this time", missing,
                                       text::count(baseline.values.size(), "value"))));
  }
  return rows;
}

json to_json(const Baseline& baseline) {
  auto out = stamped<json>(formats::kBaseline);
  out.update({{"time", baseline.time},
              {"hardware",
               {{"gpu", baseline.hardware.gpu},
                {"gpus", baseline.hardware.gpus},
                {"arch", baseline.hardware.arch},
                {"nodes", baseline.hardware.nodes}}},
              {"driver", baseline.driver},
              {"nccl", baseline.nccl},
              {"values", json::array()}});
  for (const auto& one : baseline.values)
    out["values"].push_back({{"name", one.name}, {"value", one.value}, {"unit", one.unit}});
  return out;
}

Result<Baseline> read_baseline(const std::string& path) {
  constexpr std::uint64_t kMost = 16U << 20U;
  const auto content = sys::read_regular_file(path, kMost);
  if (!content) return no_baseline(path, content.error().first_message());
  const auto from = parse_json(*content);
  if (!from.is_object() || from.value("format", json()) != formats::kBaseline.name)
    return no_baseline(path, fmt::format("'{}' is not a baseline", path));
  if (const auto known = check_format(from, formats::kBaseline, path); !known)
    return std::unexpected(known.error());
  try {
    return from_json(from);
  } catch (const json::exception& error) {
    return no_baseline(path, fmt::format("'{}' is a damaged baseline: {}", path, error.what()));
  }
}

}  // namespace nlaunch::preflight
