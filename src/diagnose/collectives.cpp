#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "diagnose/analysis.h"

/// Watchdog reports of all ranks together.
namespace nlaunch::diagnose {
namespace {

constexpr std::string_view kCollectives = "collectives";
constexpr std::string_view kDesync = "collective-desync";
constexpr std::string_view kTimeout = "collective-timeout";
constexpr int kProven = 65;    // the reports contradict each other
constexpr int kTimedOut = 40;  // they agree: whatever blocked the others is elsewhere
constexpr int kAbsent = 45;    // they agree, and another rank has not reported
constexpr std::size_t kMostReports = 65536;

constexpr std::string_view kSameOrder =
    "make every rank run the same collectives in the same order, with the same sizes: check what these ranks "
    "do that the others do not (evaluation, generation, saving, an early exit of a loop, uneven batches)";
constexpr std::string_view kLookThere =
    "check what these ranks did at that time: their own logs, stacks (py-spy dump), their nodes";

std::int64_t number_or(std::string_view digits, std::int64_t fallback = -1) {
  std::int64_t value = fallback;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

/// What one rank reported about the collective that it waited in.
struct Report {
  std::int64_t seq = -1;  ///< -1: unknown
  std::string op;
  std::string size;
  double seconds = 0;
  Finding at;

  [[nodiscard]] std::string collective() const {
    return fmt::format("{}{}{}", op, seq < 0 ? "" : fmt::format(" {}", seq),
                       size.empty() ? "" : fmt::format(" of {} elements", size));
  }
  [[nodiscard]] auto key() const { return std::tie(seq, op, size); }
};
using Reports = std::map<unsigned, Report>;  // by rank

std::string ranks_text(const std::vector<unsigned>& ranks) {
  std::vector<std::string> parts;
  for (const auto rank : ranks) parts.push_back(std::to_string(rank));
  return fmt::format("{} {}", parts.size() == 1 ? "rank" : "ranks", listed(parts));
}

/// Ranks that wait in the same collective, the largest such group first; of equally large ones, the one that
/// is ahead.
std::vector<std::vector<unsigned>> groups_of(const Reports& reports) {
  std::vector<std::vector<unsigned>> groups;
  for (const auto& [rank, report] : reports) {
    const auto same = std::ranges::find_if(
        groups, [&](const auto& group) { return reports.at(group[0]).key() == report.key(); });
    if (same == groups.end()) {
      groups.push_back({rank});
    } else {
      same->push_back(rank);
    }
  }
  std::ranges::stable_sort(groups, [&](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() > b.size() : reports.at(a[0]).seq > reports.at(b[0]).seq;
  });
  return groups;
}

class Collectives : public Analysis {
 public:
  void on_match(const Match& match) override {
    const auto& id = match.signature->id;
    if (id == "torch.watchdog-timeout") return report(match);
    if (id == "torch.last-enqueued") {
      const auto rank = number_or(match.origin.rank);
      if (rank >= 0) enqueued_.try_emplace(static_cast<unsigned>(rank), number_or(match["enqueued"]));
    }
  }

  [[nodiscard]] std::vector<Finding> findings(const World& world) const override {
    std::vector<Finding> all;
    for (const auto& [group, reports] : groups_) all.push_back(judge(reports, world));
    if (all.empty() && nameless_) all.push_back(unsure(*nameless_, 1));
    if (all.size() < 2) return all;
    std::ranges::stable_sort(all, [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
    all.resize(1);
    return all;
  }

 private:
  void report(const Match& match) {
    Report report;
    report.seq = number_or(match["seq"]);
    report.op = match["op"];
    report.size = match["numel"];
    constexpr double kMilli = 1000;
    report.seconds = static_cast<double>(number_or(match["ms"], 0)) / kMilli;
    report.at = finding_at(match, kTimeout, kCollectives, kTimedOut);
    const auto rank = number_or(match.origin.rank);
    if (rank < 0) {
      if (!nameless_) nameless_ = report;
      return;
    }
    auto group = std::string(match["guid"].empty() ? match["pg"] : match["guid"]);
    auto& reports = groups_[group];
    if (reports.size() < kMostReports) reports.try_emplace(static_cast<unsigned>(rank), std::move(report));
  }

  static Finding unsure(const Report& report, std::size_t reporters) {
    auto finding = report.at;
    finding.culprits.clear();
    finding.count = reporters;
    finding.confidence = Confidence::unsure;
    finding.why = fmt::format(
        "a collective ({}) did not complete in {:.0f} s. The rank that reports this waited for another one: "
        "the report alone does not name the culprit",
        report.collective(), report.seconds);
    finding.fix =
        "find the rank that did not enter it: check the logs of the other ranks, or run nlaunch diagnose "
        "over all of them together; TORCH_FR_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1 record which "
        "rank it was";
    finding.source = "pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp";
    return finding;
  }

  [[nodiscard]] Finding judge(const Reports& reports, const World& world) const {
    const auto groups = groups_of(reports);
    if (groups.size() > 1) return differing(reports, groups, world);
    if (const auto behind = lowest(reports); !behind.empty())
      return blame(reports, world, {behind, "enqueued fewer collectives than the others"});
    const auto absent = silent(reports, world);
    if (absent.empty()) return unsure(first(reports), reports.size());
    const bool elsewhere =
        std::ranges::all_of(absent, [&](unsigned rank) { return world.blocked_elsewhere.contains(rank); });
    if (elsewhere) {
      return blame(
          reports, world,
          {.ranks = absent, .what = "in another operation at that time", .confidence = Confidence::likely});
    }
    return blame(reports, world,
                 {.ranks = absent,
                  .what = "no report: never entered it, or had exited",
                  .desync = false,
                  .confidence = Confidence::likely});
  }

  static const Report& first(const Reports& reports) {
    const auto* best = &reports.begin()->second;
    for (const auto& [rank, report] : reports) {
      if (earlier(report.at, best->at)) best = &report;
    }
    return *best;
  }

  [[nodiscard]] Finding differing(const Reports& reports, const std::vector<std::vector<unsigned>>& groups,
                                  const World& world) const {
    std::vector<unsigned> odd;
    for (std::size_t i = 1; i < groups.size(); ++i) odd.insert(odd.end(), groups[i].begin(), groups[i].end());
    std::ranges::sort(odd);
    const auto what = fmt::format("in {} while {} waited in {}", reports.at(groups[1][0]).collective(),
                                  ranks_text(groups[0]), reports.at(groups[0][0]).collective());
    const bool minority = groups[0].size() > odd.size();
    return blame(
        reports, world,
        {.ranks = odd, .what = what, .confidence = minority ? Confidence::sure : Confidence::likely});
  }

  /// The ranks whose last enqueued work is behind that of the others.
  [[nodiscard]] std::vector<unsigned> lowest(const Reports& reports) const {
    std::int64_t low = 0;
    std::int64_t high = -1;
    for (const auto& [rank, work] : enqueued_) {
      if (!reports.contains(rank) || work < 0) continue;
      low = high < 0 ? work : std::min(low, work);
      high = std::max(high, work);
    }
    std::vector<unsigned> behind;
    if (low == high || high < 0) return behind;
    for (const auto& [rank, work] : enqueued_) {
      if (reports.contains(rank) && work == low) behind.push_back(rank);
    }
    return behind.size() * 2 <= reports.size() ? behind : std::vector<unsigned>{};
  }

  /// Known ranks that have not reported.
  static std::vector<unsigned> silent(const Reports& reports, const World& world) {
    std::vector<unsigned> absent;
    const auto look = [&](unsigned rank) {
      if (!reports.contains(rank)) absent.push_back(rank);
    };
    if (world.size && *world.size <= kMostReports) {
      for (unsigned rank = 0; rank < *world.size; ++rank) look(rank);
    } else {
      for (const auto rank : world.ranks) look(rank);
    }
    return absent.size() < reports.size() || absent.size() == 1 ? absent : std::vector<unsigned>{};
  }

  /// Which ranks blocked the others, and how that is known.
  struct Verdict {
    std::vector<unsigned> ranks;
    std::string what;
    bool desync = true;  ///< they ran other collectives; else they did not arrive at all
    Confidence confidence = Confidence::sure;
  };

  static Finding blame(const Reports& reports, const World& world, const Verdict& verdict) {
    auto finding = line_of(verdict.ranks.front(), reports, world);
    finding.category = verdict.desync ? kDesync : kTimeout;
    finding.signature = kCollectives;
    finding.weight = verdict.desync ? kProven : kAbsent;
    finding.confidence = verdict.confidence;
    finding.count = reports.size();
    finding.culprits.clear();
    for (const auto rank : verdict.ranks) {
      Origin origin;
      origin.rank = std::to_string(rank);
      if (const auto known = world.origin.find(rank); known != world.origin.end())
        origin.host = known->second.host;
      finding.culprits.push_back(std::move(origin));
    }
    const auto& report = first(reports);
    finding.why = fmt::format("{} waited {:.0f} s for the others, the first in {}; {}: {}",
                              text::count(reports.size(), "rank"), report.seconds, report.collective(),
                              ranks_text(verdict.ranks), verdict.what);
    finding.fix = verdict.desync ? kSameOrder : kLookThere;
    finding.source = "pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp";
    return finding;
  }

  /// The most informative line about a rank: its own report, else where it was meanwhile, else that of a
  /// victim.
  static Finding line_of(unsigned rank, const Reports& reports, const World& world) {
    if (const auto own = reports.find(rank); own != reports.end()) return own->second.at;
    const auto elsewhere = world.blocked_elsewhere.find(rank);
    return elsewhere == world.blocked_elsewhere.end() ? first(reports).at : elsewhere->second;
  }

  std::map<std::string, Reports> groups_;
  std::map<unsigned, std::int64_t> enqueued_;
  std::optional<Report> nameless_;
};

const Registered<AnalysisEntry> collectives_analysis{{
    .order = 10,
    .name = "collectives",
    .title = "watchdog reports of all ranks together: which rank is behind, differs, or is silent",
    .make = make_analysis<Collectives>,
}};

}  // namespace
}  // namespace nlaunch::diagnose
