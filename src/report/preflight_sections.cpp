#include "report/preflight_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "preflight/checks.h"
#include "report/fold.h"
#include "report/html.h"

namespace nlaunch::report {

using preflight::NodeSummary;
using preflight::Report;
using preflight::Row;
using preflight::Status;

namespace {

/// Visible immediately; the others open on a click.
constexpr std::size_t kMostFindings = 12;
/// A page with this many rows is still fast; preflight.json has the others.
constexpr std::size_t kMostRows = 12000;

/// The worst first.
int gravity(Status status) {
  switch (status) {
    case Status::fail:
      return 0;
    case Status::unknown:
      return 1;
    case Status::warn:
      return 2;
    case Status::pass:
      return 3;
    case Status::skip:
      return 4;
  }
  return 5;
}

bool is_finding(const Row& row) {
  return gravity(row.status) < gravity(Status::pass);
}

/// "on all 16 nodes", "on nid[001-003]"; empty for a single machine.
std::string where(const Row& row, std::size_t nodes) {
  if (row.hosts.empty()) return "";
  if (nodes > 1 && row.hosts.size() == nodes) return fmt::format("all {} nodes", thousands(nodes));
  return html(host_list(row.hosts));
}

std::string finding_html(const Row& row, std::size_t nodes) {
  auto out = fmt::format("<li class={}>{} <b>{}</b> {}", preflight::name_of(row.status),
                         status_html(row.status), html(row.check), html(row.subject));
  const bool named = row.hosts.size() == 1 && row.subject.contains(row.hosts.front());
  if (const auto on = where(row, nodes); !on.empty() && !named)
    out += fmt::format(" <span class=where>{}</span>", on);
  out += fmt::format("<p>{}</p>", html(row.value));
  if (!row.expected.empty()) out += fmt::format("<p class=expected>Expected: {}</p>", html(row.expected));
  if (!row.fix.empty()) {
    out += fmt::format("<p class=fix><b>Fix</b> <small>({})</small> {}</p>",
                       preflight::name_of(row.responsible), html(row.fix));
  }
  return out + "</li>\n";
}

/// Positions of nodes in the list of names, as ranges: "0-511,513"; "*" for all nodes, and for rows without
/// nodes.
std::string places(const Row& row, const std::map<std::string, std::size_t>& index) {
  if (row.hosts.empty() || row.hosts.size() >= index.size()) return "*";
  std::vector<std::size_t> at;
  for (const auto& host : row.hosts) {
    if (const auto found = index.find(host); found != index.end()) at.push_back(found->second);
  }
  std::ranges::sort(at);
  std::string out;
  for (std::size_t from = 0; from < at.size();) {
    auto to = from;
    while (to + 1 < at.size() && at[to + 1] == at[to] + 1) ++to;
    out += fmt::format("{}{}-{}", out.empty() ? "" : ",", at[from], at[to]);
    from = to + 1;
  }
  return out;
}

class Checks {
 public:
  explicit Checks(const Report& report) : rows_(fold(report.rows)), nodes_(count_hosts(report.rows)) {
    for (std::size_t i = 0; i < report.nodes.size(); ++i) index_[report.nodes[i].host] = i;
    std::ranges::stable_sort(rows_, {}, [](const Row& row) { return gravity(row.status); });
    for (const auto* check : preflight::node_checks()) what_[std::string(check->name)] = check->what;
    for (const auto* check : preflight::checks()) what_[std::string(check->name)] = check->what;
    if (rows_.size() <= kMostRows) return;
    left_out_ = rows_.size() - kMostRows;
    rows_.resize(kMostRows);
  }

  [[nodiscard]] std::string draw() const {
    std::vector<std::string> order;  // by their worst row, in order of appearance
    std::map<std::string, std::vector<const Row*>> of;
    for (const auto& row : rows_) {
      auto& rows = of[row.check];
      if (rows.empty()) order.push_back(row.check);
      rows.push_back(&row);
    }
    std::string out;
    for (const auto& check : order) out += draw(check, of.at(check));
    if (left_out_ > 0) {
      out += fmt::format("<p class=note>{} more passing rows are in preflight.json.</p>\n",
                         thousands(left_out_));
    }
    return out;
  }

 private:
  [[nodiscard]] std::string draw(const std::string& check, const std::vector<const Row*>& rows) const {
    std::map<Status, std::size_t> counts;
    for (const auto* row : rows) ++counts[row->status];
    std::string tally;
    for (const auto status : {Status::fail, Status::unknown, Status::warn, Status::pass, Status::skip}) {
      if (counts[status] > 0)
        tally += fmt::format(" <span class={0}>{1} {0}</span>", preflight::name_of(status),
                             thousands(counts[status]));
    }
    const auto what = what_.find(check);
    auto out = fmt::format(
        "<details class=check><summary>{} <b>{}</b> <span class=what>{}</span><span class=tally>{}</span>"
        "</summary>\n<div class=scroll><table class=rows><tbody>\n",
        status_html(rows.front()->status), html(check), what == what_.end() ? "" : html(what->second), tally);
    for (const auto* row : rows) out += draw(*row);
    return out + "</tbody></table></div></details>\n";
  }

  [[nodiscard]] std::string draw(const Row& row) const {
    auto value = html(row.value);
    if (!row.expected.empty() && row.status != Status::pass)
      value += fmt::format(" <small>expected {}</small>", html(row.expected));
    return fmt::format("<tr data-at=\"{}\"><td>{}<td>{}<td>{}<td>{}\n", places(row, index_),
                       status_html(row.status), where(row, nodes_), html(row.subject), value);
  }

  std::vector<Row> rows_;
  std::size_t nodes_;
  std::size_t left_out_ = 0;
  std::map<std::string, std::size_t> index_;
  std::map<std::string, std::string_view> what_;
};

/// What is equal on nodes without findings.
using Likeness = std::tuple<std::string, std::uint32_t, std::string, std::string, std::string>;

Likeness likeness(const NodeSummary& node) {
  return {node.gpu, node.gpus, node.arch, node.driver, node.nccl};
}

std::string node_cells(const NodeSummary& node) {
  const auto gpus = node.gpus == 0 ? std::string("none") : fmt::format("{} × {}", node.gpus, node.gpu);
  return fmt::format("<td>{}<td>{}<td>{}<td>{}", html(gpus), html(node.driver), html(node.nccl),
                     html(node.arch));
}

/// "gpu-health, peers".
std::string trouble_of(const std::vector<const Row*>& rows) {
  std::vector<std::string> checks;
  for (const auto* row : rows) {
    if (std::ranges::find(checks, row->check) == checks.end()) checks.push_back(row->check);
  }
  return html(text::join(checks, ", "));
}

std::string node_line(const NodeSummary& node, const std::vector<const Row*>& rows) {
  const auto worst = *std::ranges::min_element(rows, {}, [](const Row* row) { return gravity(row->status); });
  return fmt::format("<tr class=bad><td>{}<td><a href=\"#checks\" data-node=\"{}\">{}</a>{}<td>{}\n",
                     status_html(worst->status), html(node.host), html(node.host), node_cells(node),
                     trouble_of(rows));
}

}  // namespace

std::string status_html(Status status) {
  return fmt::format("<span class=\"status {0}\">{0}</span>", preflight::name_of(status));
}

std::string findings_html(const Report& report) {
  auto rows = fold(report.rows);
  std::erase_if(rows, [](const Row& row) { return !is_finding(row); });
  std::ranges::stable_sort(rows, {}, [](const Row& row) { return gravity(row.status); });
  if (rows.empty()) return "";
  const auto nodes = count_hosts(report.rows);
  std::string out = "<section id=findings>\n<h2>What to do</h2>\n<ol class=findings>\n";
  for (std::size_t i = 0; i < std::min(rows.size(), kMostFindings); ++i) out += finding_html(rows[i], nodes);
  out += "</ol>\n";
  if (rows.size() > kMostFindings) {
    out += fmt::format("<details><summary>{} more</summary>\n<ol class=findings>\n",
                       thousands(rows.size() - kMostFindings));
    for (std::size_t i = kMostFindings; i < std::min(rows.size(), kMostRows); ++i)
      out += finding_html(rows[i], nodes);
    out += "</ol></details>\n";
  }
  return out + "</section>\n";
}

std::string nodes_html(const Report& report) {
  if (report.nodes.size() < 2) return "";
  std::map<std::string, std::vector<const Row*>> findings;
  const auto all = count_hosts(report.rows);
  for (const auto& row : report.rows) {
    if (!is_finding(row) || row.hosts.size() == all) continue;
    for (const auto& host : row.hosts) findings[host].push_back(&row);
  }
  std::string bad;
  std::map<Likeness, std::vector<const NodeSummary*>> well;
  for (const auto& node : report.nodes) {
    const auto found = findings.find(node.host);
    if (found == findings.end()) {
      well[likeness(node)].push_back(&node);
    } else {
      bad += node_line(node, found->second);
    }
  }
  std::string out =
      "<section id=nodes>\n<h2>Nodes</h2>\n<div "
      "class=scroll><table><thead><tr><th><th>node<th>GPUs<th>driver<th>NCCL<th>machine<th>findings</"
      "thead><tbody>\n" +
      bad;
  for (const auto& [like, nodes] : well) {
    std::vector<std::string> names;
    for (const auto* node : nodes) names.push_back(node->host);
    out += fmt::format("<tr><td><span class=\"status pass\">ok</span><td>{}{}<td>{}\n",
                       html(host_list(std::move(names))), node_cells(*nodes.front()),
                       nodes.size() > 1 ? fmt::format("{} identical nodes", thousands(nodes.size())) : "");
  }
  return out + "</tbody></table></div>\n</section>\n";
}

std::string checks_html(const Report& report) {
  return report.rows.empty() ? "" : Checks(report).draw();
}

}  // namespace nlaunch::report
