#include "report/preflight_html.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "emit/template.h"
#include "report/fold.h"
#include "report/heat_map.h"
#include "report/html.h"
#include "report/pages.h"
#include "report/preflight_sections.h"

namespace nlaunch::report {
namespace {

using preflight::Report;
using preflight::Status;

/// "grpo on isambard"; a report of an earlier nlaunch has no names.
std::string title_of(const Report& report) {
  if (report.plan.empty()) return "Preflight";
  return report.site.empty() ? report.plan : fmt::format("{} on {}", report.plan, report.site);
}

/// The verdict in a sentence.
std::string sentence_of(const Report& report) {
  const auto with = [&](Status status) {
    std::vector<std::string> hosts;
    for (const auto& row : report.rows) {
      if (row.status == status) hosts.insert(hosts.end(), row.hosts.begin(), row.hosts.end());
    }
    return host_list(std::move(hosts));
  };
  const auto on = [&](Status status) {
    const auto hosts = with(status);
    return hosts.empty() ? "." : fmt::format(", on {}.", hosts);
  };
  if (report.cancelled) return "The preflight was stopped before it finished.";
  switch (report.verdict) {
    case Status::fail:
      return "A run would fail here or produce wrong results" + on(Status::fail);
    case Status::unknown:
      return "Some checks could not be carried out" + on(Status::unknown);
    case Status::warn:
      return "A run would work, but at a cost" + on(Status::warn);
    case Status::pass:
    case Status::skip:
      break;
  }
  return "Everything that was checked is fine.";
}

std::string counts_html(const Report& report) {
  std::string out;
  for (const auto status : {Status::fail, Status::unknown, Status::warn, Status::pass, Status::skip}) {
    const auto number =
        static_cast<std::size_t>(std::ranges::count(report.rows, status, &preflight::Row::status));
    if (number == 0) continue;
    out += fmt::format("<li class={0}><b>{1}</b> {0}</li>", preflight::name_of(status), thousands(number));
  }
  return out;
}

std::string facts_html(const Report& report) {
  std::string out;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", name, html(value));
  };
  if (report.time > 0)
    add("when", fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time_t{report.time})));
  add("took", fmt::format("{:.1f} s", std::chrono::duration<double>(report.elapsed).count()));
  add("level", std::string(name_of(report.level)));
  if (report.nodes.empty()) return out;
  const auto& first = report.nodes.front();
  const bool alike = std::ranges::all_of(report.nodes, [&](const preflight::NodeSummary& node) {
    return node.gpu == first.gpu && node.gpus == first.gpus;
  });
  add("nodes", thousands(report.nodes.size()));
  if (first.gpus == 0 && alike) return out;
  add("GPUs", alike ? fmt::format("{} × {}{}", first.gpus, first.gpu, report.nodes.size() > 1 ? " each" : "")
                    : "of different kinds");
  return out;
}

/// Node names, which the filter uses to find rows of several nodes.
std::string node_names(const Report& report) {
  auto names = nlohmann::json::array();
  for (const auto& node : report.nodes) names.push_back(node.host);
  std::string out;
  for (const char c : json_text(names)) {  // inside <script>, where a "<" could start its end tag
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

const std::vector<emit::TemplateName> kPreflightPageNames{
    {"TITLE", true},    {"VERDICT", true},      {"SENTENCE", true}, {"COUNTS", true}, {"FACTS", true},
    {"FINDINGS", true}, {"PAIRS", true},        {"CURVES", true},   {"NODES", true},  {"FIGURES", true},
    {"CHECKS", true},   {"MEASUREMENTS", true}, {"NAMES", true},
};

}  // namespace

std::string preflight_html(const Report& report) {
  // The template is compiled in and covered by a test, so it is valid.
  static const auto page = emit::Template::parse(preflight_page(), kPreflightPageNames).value();
  return page.fill({{"TITLE", html(title_of(report))},
                    {"VERDICT", std::string(preflight::name_of(report.verdict))},
                    {"SENTENCE", html(sentence_of(report))},
                    {"COUNTS", counts_html(report)},
                    {"FACTS", facts_html(report)},
                    {"FINDINGS", findings_html(report)},
                    {"PAIRS", heat_maps_html(report.figures)},
                    {"CURVES", curves_section(report)},
                    {"NODES", nodes_html(report)},
                    {"FIGURES", figures_html(report)},
                    {"CHECKS", checks_html(report)},
                    {"MEASUREMENTS", measurements_html(report)},
                    {"NAMES", node_names(report)}});
}

}  // namespace nlaunch::report
