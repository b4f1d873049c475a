#include "report/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "preflight/report/figures.h"
#include "report/html.h"

namespace nlaunch::report {
namespace {

/// Up to this many nodes get one square each; with more nodes, the median and this many of the worst.
constexpr std::size_t kMostSquares = 4;
/// A larger square does not fit on a screen: then its slowest pairs are listed.
constexpr std::size_t kMostNames = 16;
constexpr std::size_t kMostPairs = 20;
/// A node whose slowest pair is below this share of the median is shown separately.
constexpr double kWorthShowing = 0.85;

/// "GPU 10" after "GPU 9".
bool by_number(const std::string& a, const std::string& b) {
  return a.size() == b.size() ? a < b : a.size() < b.size();
}

/// The length of the prefix that all names share: "GPU 3" is "3" at the head of a column, "nid000012" is
/// "12".
std::size_t shared_prefix(const std::vector<std::string>& names) {
  auto length = names.front().size();
  for (const auto& name : names) {
    const auto [a, b] = std::ranges::mismatch(name, names.front());
    length = std::min(length, static_cast<std::size_t>(a - name.begin()));
  }
  const auto as_long = [&](const std::string& name) { return name.size() == names.front().size(); };
  const bool counted = std::ranges::all_of(names, as_long);
  constexpr std::string_view kDigits = "0123456789";
  while (!counted && length > 0 && kDigits.contains(names.front()[length - 1])) --length;
  return length;
}

/// Factor and unit for the values of a matrix.
std::pair<double, std::string_view> scale(const std::string& unit) {
  if (unit == "B/s") return {1e-9, "GB/s"};
  if (unit == "FLOP/s") return {1e-12, "TFLOP/s"};
  return {1, unit};
}

std::string number(double value) {
  return value < 10 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

std::string title(const std::string& what) {
  if (what == "p2p") return "Copies between GPUs";
  if (what == "pair") return "All-reduce of pairs";
  return html(what);
}

std::string cell(const PairMatrix& matrix, const std::string& from, const std::string& to, double factor) {
  const auto* value = matrix.at(from, to);
  if (from == to) return "<td class=self></td>";
  if (value == nullptr) return "<td class=none>·</td>";
  return fmt::format("<td class={}>{}</td>", heat_class(*value / matrix.median()), number(*value * factor));
}

std::string square(const PairMatrix& matrix, const std::string& caption) {
  const auto [factor, unit] = scale(matrix.unit);
  auto out = fmt::format(
      "<figure class=heat><table><caption>{} <small>{}</small></caption><thead><tr><td></td>", caption, unit);
  const auto shared = shared_prefix(matrix.names);
  for (const auto& name : matrix.names)
    out += fmt::format("<th scope=col title=\"{}\">{}</th>", html(name), html(name.substr(shared)));
  out += "</tr></thead><tbody>";
  for (const auto& from : matrix.names) {
    out += fmt::format("<tr><th scope=row>{}</th>", html(from));
    for (const auto& to : matrix.names) out += cell(matrix, from, to, factor);
    out += "</tr>";
  }
  return out + "</tbody></table></figure>\n";
}

std::string slowest_pairs(const PairMatrix& matrix) {
  std::vector<std::pair<double, std::string>> pairs;
  for (const auto& [key, value] : matrix.values) pairs.emplace_back(value, key.first + " → " + key.second);
  std::ranges::sort(pairs);
  const auto median = matrix.median();
  auto out = fmt::format(
      "<figure class=heat><table><caption>The slowest of {} pairs <small>median {}</small></caption><tbody>",
      thousands(pairs.size()), html(preflight::figure_text(median, matrix.unit)));
  for (std::size_t i = 0; i < std::min(kMostPairs, pairs.size()); ++i) {
    out += fmt::format("<tr><th scope=row>{}</th><td class={}>{}</td></tr>", html(pairs[i].second),
                       heat_class(pairs[i].first / median),
                       html(preflight::figure_text(pairs[i].first, matrix.unit)));
  }
  return out + "</tbody></table></figure>\n";
}

std::string caption_of(const PairMatrix& matrix) {
  if (!matrix.host.empty()) return html(matrix.host);
  return matrix.names.front().starts_with("GPU ") ? "this machine" : "nodes";
}

std::string draw(const PairMatrix& matrix) {
  return matrix.names.size() > kMostNames ? slowest_pairs(matrix) : square(matrix, caption_of(matrix));
}

std::string section(const std::string& what, std::vector<const PairMatrix*> matrices) {
  auto out = fmt::format("<h3>{}</h3>\n<div class=squares>\n", title(what));
  if (matrices.size() <= kMostSquares) {
    for (const auto* matrix : matrices) out += draw(*matrix);
    return out + "</div>\n";
  }
  const auto whole = median_of(matrices);
  out += square(whole, fmt::format("median of {} nodes", thousands(matrices.size())));
  std::ranges::stable_sort(matrices, {}, [](const PairMatrix* matrix) { return matrix->worst(); });
  for (std::size_t i = 0; i < kMostSquares && matrices[i]->worst() < kWorthShowing; ++i)
    out += draw(*matrices[i]);
  return out + "</div>\n";
}

constexpr std::string_view kLegend =
    "<p class=legend>Against the median: <span class=h0>&lt; 50 %</span> <span class=h1>&lt; 70 %</span> "
    "<span class=h2>&lt; 85 %</span> <span class=h3>&lt; 95 %</span> <span class=h4>95 to 105 %</span> "
    "<span class=h5>more</span></p>\n";

}  // namespace

const double* PairMatrix::at(const std::string& from, const std::string& to) const {
  auto found = values.find({from, to});
  if (found == values.end() && what == "pair") found = values.find({to, from});  // it has no direction
  return found == values.end() ? nullptr : &found->second;
}

double PairMatrix::median() const {
  std::vector<double> all;
  for (const auto& [key, value] : values) all.push_back(value);
  return all.empty() ? 0 : preflight::spread_of(std::move(all)).median;
}

double PairMatrix::worst() const {
  const auto least = std::ranges::min_element(values, {}, [](const auto& entry) { return entry.second; });
  return least == values.end() ? 1 : least->second / median();
}

std::vector<PairMatrix> pair_matrices(const std::vector<preflight::Figure>& figures) {
  std::map<std::pair<std::string, std::string>, PairMatrix> matrices;
  for (const auto& figure : figures) {
    if (figure.to.empty() || figure.unit == "s") continue;  // clocks are not links
    auto& matrix = matrices[{figure.what, figure.host}];
    matrix.what = figure.what;
    matrix.host = figure.host;
    matrix.unit = figure.unit;
    matrix.values[{figure.from, figure.to}] = figure.value;
  }
  std::vector<PairMatrix> out;
  for (auto& [key, matrix] : matrices) {
    std::set<std::string> names;
    for (const auto& [pair, value] : matrix.values) names.insert({pair.first, pair.second});
    matrix.names.assign(names.begin(), names.end());
    std::ranges::sort(matrix.names, by_number);
    out.push_back(std::move(matrix));
  }
  return out;
}

PairMatrix median_of(const std::vector<const PairMatrix*>& matrices) {
  PairMatrix out{matrices.front()->what, "", matrices.front()->unit, matrices.front()->names, {}};
  std::map<std::pair<std::string, std::string>, std::vector<double>> all;
  for (const auto* matrix : matrices) {
    for (const auto& [pair, value] : matrix->values) all[pair].push_back(value);
    if (matrix->names.size() > out.names.size()) out.names = matrix->names;
  }
  for (auto& [pair, values] : all) out.values[pair] = preflight::spread_of(std::move(values)).median;
  return out;
}

std::string heat_class(double share) {
  constexpr double kSteps[] = {0.5, 0.7, 0.85, 0.95, 1.05};
  return fmt::format("h{}", std::ranges::upper_bound(kSteps, share) - std::begin(kSteps));
}

std::string heat_maps_html(const std::vector<preflight::Figure>& figures) {
  const auto matrices = pair_matrices(figures);
  std::map<std::string, std::vector<const PairMatrix*>> by_what;
  for (const auto& matrix : matrices) by_what[matrix.what].push_back(&matrix);
  if (by_what.empty()) return "";
  std::string out = "<section id=pairs>\n<h2>Pairs</h2>\n";
  for (const auto& [what, of] : by_what) out += section(what, of);
  return out + std::string(kLegend) + "</section>\n";
}

}  // namespace nlaunch::report
