#include "preflight/search/search.h"

#include <algorithm>
#include <limits>
#include <map>

namespace nlaunch::preflight {
namespace {

constexpr std::size_t kSearchRounds = 4;
/// The number of good partners with which a unit must fail before it is blamed; one more is tried if there is
/// time.
constexpr std::size_t kToBlame = 2;
constexpr std::size_t kToConfirm = 3;

UnitPair ordered(UnitPair pair) {
  return {std::min(pair.first, pair.second), std::max(pair.first, pair.second)};
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Everything that the rounds so far have shown.
class Knowledge {
 public:
  Knowledge(std::size_t units, const std::vector<Round>& rounds, const SearchRules& rules)
      : rules_(rules), good_(units), trials_(units) {
    for (const auto& round : rounds) {
      for (const auto& trial : round) take(trial);
    }
    find_usual(units);
    for (const auto& [pair, tried] : pairs_) {
      if (std::ranges::any_of(tried, [this](const auto* trial) { return is_good(*trial); }))
        good_[pair.first] = good_[pair.second] = true;
    }
  }

  [[nodiscard]] bool is_good(const PairTrial& trial) const {
    if (!trial.trouble.empty()) return false;
    return !rules_.slower || trial.seconds <= *rules_.slower * usual_.at(trial.ranks);
  }
  [[nodiscard]] bool good(std::size_t unit) const { return good_[unit]; }
  [[nodiscard]] bool tried(std::size_t a, std::size_t b) const { return pairs_.contains(ordered({a, b})); }
  [[nodiscard]] const auto& pairs() const { return pairs_; }

  /// The good units with which this one was tried, and the results.
  [[nodiscard]] std::map<std::size_t, const PairTrial*> with_good_partners(std::size_t unit) const {
    std::map<std::size_t, const PairTrial*> out;
    for (const auto* trial : trials_[unit]) {
      const auto other = trial->units.first == unit ? trial->units.second : trial->units.first;
      if (good_[other]) out[other] = trial;
    }
    return out;
  }
  /// Of pairs of the most common size.
  [[nodiscard]] double usual() const {
    std::map<std::size_t, std::size_t> count;
    for (const auto& [pair, tried] : pairs_) ++count[tried.front()->ranks];
    const auto most = std::ranges::max_element(count, {}, [](const auto& entry) { return entry.second; });
    return most == count.end() ? 0 : usual_.at(most->first);
  }

 private:
  void take(const PairTrial& trial) {
    pairs_[ordered(trial.units)].push_back(&trial);
    trials_[trial.units.first].push_back(&trial);
    trials_[trial.units.second].push_back(&trial);
    usual_[trial.ranks] = 0;
  }

  /// Each unit's best pair counts, and not each pair: a slow unit makes two pairs slow, which would be the
  /// majority among three.
  void find_usual(std::size_t units) {
    for (auto& [ranks, seconds] : usual_) {
      std::vector<double> best;
      for (std::size_t unit = 0; unit < units; ++unit) {
        double least = std::numeric_limits<double>::infinity();
        for (const auto* trial : trials_[unit]) {
          if (trial->ranks == ranks && trial->trouble.empty()) least = std::min(least, trial->seconds);
        }
        if (least < std::numeric_limits<double>::infinity()) best.push_back(least);
      }
      seconds = median(std::move(best));
    }
  }

  const SearchRules& rules_;
  std::vector<bool> good_;
  std::vector<std::vector<const PairTrial*>> trials_;        ///< by unit
  std::map<UnitPair, std::vector<const PairTrial*>> pairs_;  ///< each time that a pair was tried
  std::map<std::size_t, double> usual_;                      ///< seconds, by number of ranks
};

/// Neighbours in the ring, starting with this one.
std::vector<UnitPair> neighbours(std::size_t units, std::size_t first) {
  std::vector<UnitPair> out;
  for (auto unit = first; unit + 1 < units; unit += 2) out.emplace_back(unit, unit + 1);
  if (first == 1 && units % 2 == 0 && units > 2) out.emplace_back(units - 1, 0);
  return out;
}

/// Chooses pairs that have no unit in common.
class Matching {
 public:
  Matching(std::size_t units, const Knowledge& knowledge) : knowledge_(knowledge), busy_(units) {}

  bool add(std::size_t a, std::size_t b) {
    if (a == b || busy_[a] || busy_[b]) return false;
    busy_[a] = busy_[b] = true;
    pairs_.emplace_back(a, b);
    return true;
  }
  /// With an untried partner that is good, or not known to be good; distant ones first.
  void add_new(std::size_t unit, bool good) {
    const auto units = busy_.size();
    for (std::size_t i = 0; i < units && !busy_[unit]; ++i) {
      const auto partner = (unit + units / 2 + i) % units;
      if (knowledge_.good(partner) == good && !knowledge_.tried(unit, partner)) add(unit, partner);
    }
  }
  [[nodiscard]] std::vector<UnitPair> take() { return std::move(pairs_); }

 private:
  const Knowledge& knowledge_;
  std::vector<bool> busy_;
  std::vector<UnitPair> pairs_;
};

/// Each suspect with another good partner, and an apparent bad link once more.
std::vector<UnitPair> follow_up(std::size_t units, const Knowledge& knowledge) {
  Matching matching(units, knowledge);
  bool any_good = false;
  for (std::size_t unit = 0; unit < units; ++unit) any_good = any_good || knowledge.good(unit);
  for (std::size_t unit = 0; unit < units; ++unit) {
    if (knowledge.good(unit) || knowledge.with_good_partners(unit).size() >= kToConfirm) continue;
    matching.add_new(unit, any_good);
  }
  for (const auto& [pair, tried] : knowledge.pairs()) {
    const bool bad = tried.size() == 1 && !knowledge.is_good(*tried.front());
    if (bad && knowledge.good(pair.first) && knowledge.good(pair.second))
      matching.add(pair.first, pair.second);
  }
  // The link that closes a ring of an odd number.
  if (units % 2 == 1 && units > 2 && !knowledge.tried(units - 1, 0)) matching.add(units - 1, 0);
  return matching.take();
}

/// The one that failed, or took the longest.
const PairTrial& worst_of(const std::vector<const PairTrial*>& trials) {
  return **std::ranges::max_element(
      trials, {}, [](const PairTrial* trial) { return std::pair(!trial->trouble.empty(), trial->seconds); });
}

}  // namespace

std::vector<UnitPair> next_round(std::size_t units, const std::vector<Round>& rounds,
                                 const SearchRules& rules) {
  if (rounds.size() < 2) return neighbours(units, rounds.size());
  if (rounds.size() >= kSearchRounds) return {};
  return follow_up(units, Knowledge(units, rounds, rules));
}

Verdicts conclude(std::size_t units, const std::vector<Round>& rounds, const SearchRules& rules) {
  const Knowledge knowledge(units, rounds, rules);
  Verdicts out;
  out.usual = knowledge.usual();
  out.all_slow = rules.most_seconds > 0 && out.usual > rules.most_seconds;
  std::vector<bool> blamed(units);
  for (std::size_t unit = 0; unit < units; ++unit) {
    if (knowledge.good(unit)) ++out.good;
    const auto trials = knowledge.with_good_partners(unit);
    if (knowledge.good(unit) || trials.size() < kToBlame) continue;
    std::vector<const PairTrial*> shown;
    for (const auto& [partner, trial] : trials) shown.push_back(trial);
    out.culprits.push_back({unit, trials.size(), worst_of(shown)});
    blamed[unit] = true;
  }
  for (const auto& [pair, tried] : knowledge.pairs()) {
    if (std::ranges::any_of(tried, [&](const auto* trial) { return knowledge.is_good(*trial); })) continue;
    if (blamed[pair.first] || blamed[pair.second]) continue;
    auto worst = worst_of(tried);
    worst.units = pair;
    if (knowledge.good(pair.first) && knowledge.good(pair.second)) {
      out.links.push_back({std::move(worst), tried.size()});
    } else {
      out.undecided.push_back(std::move(worst));
    }
  }
  return out;
}

}  // namespace nlaunch::preflight
