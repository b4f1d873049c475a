#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/registry.h"
#include "base/text.h"
#include "preflight/checks.h"
#include "preflight/report/figures.h"

namespace nlaunch::preflight {
namespace {

/// Shares of the median. Links and GPUs of one kind are within a few per cent of each other.
constexpr double kPeerWarn = 0.85;
constexpr double kPeerFail = 0.7;
/// With fewer, nothing can be concluded.
constexpr std::size_t kFewestPeers = 3;
/// With three, which one is the outlier is a guess: it is reported, but not as a fault.
constexpr std::size_t kEnoughPeers = 4;
/// If this many nodes have the same GPU or pair, these are its peers: then the layout of a node's links does
/// not matter.
constexpr std::size_t kPeerNodes = 4;
/// If more than one in three are slow, they are not outliers: there are two kinds of links, or of sockets.
constexpr std::size_t kRare = 3;

/// A GPU or a pair, and those that it is compared with.
struct PeerEntry {
  std::string host, from, to;
  double value = 0;
  double median = 0;  ///< of its peers, including itself
  std::size_t peers = 0;

  [[nodiscard]] double share() const { return value / median; }
  [[nodiscard]] bool slow() const { return share() < kPeerWarn; }
  [[nodiscard]] std::string place() const { return to.empty() ? from : from + " → " + to; }
};

/// Everything of one `what` on nodes of one GPU model.
struct PeerKind {
  std::string what, unit;
  std::vector<PeerEntry> entries;
};

void set_medians(std::vector<PeerEntry>& entries) {
  std::map<std::string, std::vector<double>> by_place;
  for (const auto& entry : entries) by_place[entry.place()].push_back(entry.value);
  std::vector<double> rest;
  for (const auto& entry : entries) {
    if (by_place[entry.place()].size() < kPeerNodes) rest.push_back(entry.value);
  }
  std::map<std::string, double> medians;
  for (const auto& [place, values] : by_place)
    medians[place] = spread_of(values.size() < kPeerNodes ? rest : values).median;
  for (auto& entry : entries) {
    const auto own = by_place[entry.place()].size();
    entry.median = medians[entry.place()];
    entry.peers = own < kPeerNodes ? rest.size() : own;
  }
}

/// A GPU is as good as the best of its pairs: a slow link is not the fault of the GPU at its end, and a slow
/// GPU has no fast pair.
std::vector<PeerEntry> best_of_gpus(const std::vector<PeerEntry>& pairs) {
  std::map<std::pair<std::string, std::string>, PeerEntry> best;
  for (const auto& pair : pairs) {
    for (const auto& gpu : {pair.from, pair.to}) {
      auto& entry = best[{pair.host, gpu}];
      if (entry.peers > 0 && entry.share() >= pair.share()) continue;
      entry = pair;
      entry.from = gpu;
      entry.to.clear();
    }
  }
  std::vector<PeerEntry> out;
  for (auto& [place, entry] : best) out.push_back(std::move(entry));
  return out;
}

std::vector<PeerEntry> slow_ones(const std::vector<PeerEntry>& entries) {
  std::vector<PeerEntry> out;
  std::ranges::copy_if(entries, std::back_inserter(out), &PeerEntry::slow);
  return out;
}

bool rare(const std::vector<PeerEntry>& slow, const std::vector<PeerEntry>& all) {
  return slow.size() * kRare <= all.size();
}

Remedy peer_remedy(const PeerKind& kind) {
  if (kind.what == "gemm")
    return {"nvidia-smi -q -d PERFORMANCE,POWER shows what limits its clock; report the node",
            Responsible::admin};
  return {"nvidia-smi topo -m and nvidia-smi nvlink -s show its links; report the node", Responsible::admin};
}

Row odd_row(const PeerKind& kind, const PeerEntry& entry, std::string_view of) {
  const bool bad = entry.share() < kPeerFail && entry.peers >= kEnoughPeers;
  auto row = (bad ? failed : warned)(
      "peers", fmt::format("{} {}{}", kind.what, of, entry.place()),
      fmt::format("{}{}, {:.0f} % of the median", figure_text(entry.value, kind.unit),
                  of.empty() ? "" : " at best", 100 * entry.share()),
      fmt::format("at least {:.0f} % of the median of {}{} ({})", 100 * (bad ? kPeerFail : kPeerWarn),
                  entry.peers < kEnoughPeers ? "only " : "", entry.peers,
                  figure_text(entry.median, kind.unit)),
      peer_remedy(kind));
  if (!entry.host.empty()) row.hosts = {entry.host};
  return row;
}

std::string peer_range(const PeerKind& kind) {
  std::vector<double> values;
  for (const auto& entry : kind.entries) values.push_back(entry.value);
  const auto spread = spread_of(std::move(values));
  return fmt::format("{} to {}, median {}", figure_text(spread.least, kind.unit),
                     figure_text(spread.most, kind.unit), figure_text(spread.median, kind.unit));
}

std::vector<Row> judge_kind(const PeerKind& kind) {
  std::vector<Row> rows;
  std::set<std::pair<std::string, std::string>> named;
  auto rest = kind.entries;
  if (!kind.entries.front().to.empty()) {
    const auto gpus = best_of_gpus(kind.entries);
    const auto slow = slow_ones(gpus);
    for (const auto& gpu : rare(slow, gpus) ? slow : std::vector<PeerEntry>()) {
      rows.push_back(odd_row(kind, gpu, "of "));
      named.emplace(gpu.host, gpu.from);
    }
    std::erase_if(rest, [&](const PeerEntry& pair) {
      return named.contains({pair.host, pair.from}) || named.contains({pair.host, pair.to});
    });
  }
  const auto slow = slow_ones(rest);
  if (!rare(slow, rest)) {
    rows.push_back(skipped(
        "peers", kind.what,
        fmt::format(
            "not judged: {} of {} are far below the median, so they are not all of the same kind ({})",
            slow.size(), rest.size(), peer_range(kind))));
    return rows;
  }
  for (const auto& entry : slow) rows.push_back(odd_row(kind, entry, ""));
  if (rows.empty())
    rows.push_back(passed("peers", kind.what, fmt::format("{}: {}", kind.entries.size(), peer_range(kind))));
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

std::vector<PeerKind> kinds_of(const Observations& observations) {
  std::map<std::pair<std::string, std::string>, PeerKind> kinds;
  for (const auto& figure : observations.figures) {
    if (!has_peers(figure)) continue;
    auto& kind = kinds[{figure.what, model_of(observations, figure.host)}];
    kind.what = figure.what;
    kind.unit = figure.unit;
    kind.entries.push_back({figure.host, figure.from, figure.to, figure.value});
  }
  std::vector<PeerKind> out;
  for (auto& [key, kind] : kinds) {
    if (kind.entries.size() >= kFewestPeers) out.push_back(std::move(kind));
  }
  return out;
}

std::vector<Row> check_peers(const Observations& observations) {
  std::vector<Row> rows;
  for (auto& kind : kinds_of(observations)) {
    set_medians(kind.entries);
    const auto found = judge_kind(kind);
    rows.insert(rows.end(), found.begin(), found.end());
  }
  return rows;
}

const Registered<Check> peers_check{{
    .order = 100,
    .name = "peers",
    .what = "no GPU or link is far slower than the others of its kind",
    .stage = Stage::measured,
    .judge = check_peers,
}};

}  // namespace
}  // namespace nlaunch::preflight
