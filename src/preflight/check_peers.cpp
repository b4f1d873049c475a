#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "preflight/checks.h"
#include "preflight/figures.h"

namespace nlaunch::preflight {
namespace {

/// Shares of the median. Links and GPUs of one kind lie within a few per cent of each other.
constexpr double kWarn = 0.85;
constexpr double kFail = 0.7;
/// Of fewer nothing can be said.
constexpr std::size_t kFewest = 3;
/// Of three, which is the odd one is a guess: it is said, and is no fault.
constexpr std::size_t kEnough = 4;
/// Where so many nodes have the same GPU or pair, these are its peers: then it does not matter how the links
/// of a node are laid out.
constexpr std::size_t kNodes = 4;
/// Where more than one in three are slow they are no odd ones: there are two kinds of links, or of sockets.
constexpr std::size_t kRare = 3;

/// A GPU or a pair, and those that it is held against.
struct Entry {
  std::string host, from, to;
  double value = 0;
  double median = 0;  ///< of its peers, itself among them
  std::size_t peers = 0;

  [[nodiscard]] double share() const { return value / median; }
  [[nodiscard]] bool slow() const { return share() < kWarn; }
  [[nodiscard]] std::string place() const { return to.empty() ? from : from + " → " + to; }
};

/// Everything of one `what` on nodes of one GPU model.
struct Kind {
  std::string what, unit;
  std::vector<Entry> entries;
};

void set_medians(std::vector<Entry>& entries) {
  std::map<std::string, std::vector<double>> by_place;
  for (const auto& entry : entries) by_place[entry.place()].push_back(entry.value);
  std::vector<double> rest;
  for (const auto& entry : entries) {
    if (by_place[entry.place()].size() < kNodes) rest.push_back(entry.value);
  }
  std::map<std::string, double> medians;
  for (const auto& [place, values] : by_place)
    medians[place] = spread_of(values.size() < kNodes ? rest : values).median;
  for (auto& entry : entries) {
    const auto own = by_place[entry.place()].size();
    entry.median = medians[entry.place()];
    entry.peers = own < kNodes ? rest.size() : own;
  }
}

/// A GPU is as good as the best of its pairs: a slow link is not the fault of the GPU at its end, and a slow
/// GPU has no fast pair.
std::vector<Entry> best_of_gpus(const std::vector<Entry>& pairs) {
  std::map<std::pair<std::string, std::string>, Entry> best;
  for (const auto& pair : pairs) {
    for (const auto& gpu : {pair.from, pair.to}) {
      auto& entry = best[{pair.host, gpu}];
      if (entry.peers > 0 && entry.share() >= pair.share()) continue;
      entry = pair;
      entry.from = gpu;
      entry.to.clear();
    }
  }
  std::vector<Entry> out;
  for (auto& [place, entry] : best) out.push_back(std::move(entry));
  return out;
}

std::vector<Entry> slow_ones(const std::vector<Entry>& entries) {
  std::vector<Entry> out;
  std::ranges::copy_if(entries, std::back_inserter(out), &Entry::slow);
  return out;
}

bool rare(const std::vector<Entry>& slow, const std::vector<Entry>& all) {
  return slow.size() * kRare <= all.size();
}

Remedy remedy_of(const Kind& kind) {
  if (kind.what == "gemm")
    return {"nvidia-smi -q -d PERFORMANCE,POWER says what holds its clock; report the node",
            Responsible::admin};
  return {"nvidia-smi topo -m and nvidia-smi nvlink -s show its links; report the node", Responsible::admin};
}

Row odd_row(const Kind& kind, const Entry& entry, std::string_view of) {
  const bool bad = entry.share() < kFail && entry.peers >= kEnough;
  auto row = (bad ? failed : warned)(
      "peers", fmt::format("{} {}{}", kind.what, of, entry.place()),
      fmt::format("{}{}, {:.0f} % of the median", figure_text(entry.value, kind.unit),
                  of.empty() ? "" : " at best", 100 * entry.share()),
      fmt::format("{:.0f} % of the median of {}{} ({}) and more", 100 * (bad ? kFail : kWarn),
                  entry.peers < kEnough ? "only " : "", entry.peers, figure_text(entry.median, kind.unit)),
      remedy_of(kind));
  if (!entry.host.empty()) row.hosts = {entry.host};
  return row;
}

std::string range_text(const Kind& kind) {
  std::vector<double> values;
  for (const auto& entry : kind.entries) values.push_back(entry.value);
  const auto spread = spread_of(std::move(values));
  return fmt::format("{} to {}, median {}", figure_text(spread.least, kind.unit),
                     figure_text(spread.most, kind.unit), figure_text(spread.median, kind.unit));
}

std::vector<Row> judge_kind(const Kind& kind) {
  std::vector<Row> rows;
  std::set<std::pair<std::string, std::string>> named;
  auto rest = kind.entries;
  if (!kind.entries.front().to.empty()) {
    const auto gpus = best_of_gpus(kind.entries);
    const auto slow = slow_ones(gpus);
    for (const auto& gpu : rare(slow, gpus) ? slow : std::vector<Entry>()) {
      rows.push_back(odd_row(kind, gpu, "of "));
      named.emplace(gpu.host, gpu.from);
    }
    std::erase_if(rest, [&](const Entry& pair) {
      return named.contains({pair.host, pair.from}) || named.contains({pair.host, pair.to});
    });
  }
  const auto slow = slow_ones(rest);
  if (!rare(slow, rest)) {
    rows.push_back(skipped("peers", kind.what,
                           fmt::format("not judged: {} of {} are far below the median, so they are not all "
                                       "of one kind ({})",
                                       slow.size(), rest.size(), range_text(kind))));
    return rows;
  }
  for (const auto& entry : slow) rows.push_back(odd_row(kind, entry, ""));
  if (rows.empty())
    rows.push_back(passed("peers", kind.what, fmt::format("{}: {}", kind.entries.size(), range_text(kind))));
  return rows;
}

bool has_peers(const Figure& figure) {
  return figure.what == "p2p" || figure.what == "gemm" || figure.what == "host_to_device" ||
         figure.what == "device_to_host";
}

std::string model_of(const Observations& observations, const std::string& host) {
  const auto node = std::ranges::find(observations.nodes, host, &NodeSummary::host);
  return host.empty() || node == observations.nodes.end() ? "" : node->gpu;
}

std::vector<Kind> kinds_of(const Observations& observations) {
  std::map<std::pair<std::string, std::string>, Kind> kinds;
  for (const auto& figure : observations.figures) {
    if (!has_peers(figure)) continue;
    auto& kind = kinds[{figure.what, model_of(observations, figure.host)}];
    kind.what = figure.what;
    kind.unit = figure.unit;
    kind.entries.push_back({figure.host, figure.from, figure.to, figure.value});
  }
  std::vector<Kind> out;
  for (auto& [key, kind] : kinds) {
    if (kind.entries.size() >= kFewest) out.push_back(std::move(kind));
  }
  return out;
}

}  // namespace

std::vector<Row> check_peers(const Observations& observations) {
  std::vector<Row> rows;
  for (auto& kind : kinds_of(observations)) {
    set_medians(kind.entries);
    const auto found = judge_kind(kind);
    rows.insert(rows.end(), found.begin(), found.end());
  }
  return rows;
}

}  // namespace nlaunch::preflight
