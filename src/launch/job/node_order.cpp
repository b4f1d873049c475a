#include "launch/job/node_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/text.h"
#include "plan/together.h"

namespace nlaunch::launch {
namespace {

/// Limit of placements tried: some tenths of a second. The problem is bin packing, where an exhaustive search
/// can take forever.
constexpr std::size_t kMostLooks = 2'000'000;
/// Sets that are placed recursively; with more there is no backtracking.
constexpr std::size_t kDeepest = 10'000;

/// Nodes of the plan in one component of the job, and the allocation's nodes for them.
struct Part {
  std::uint32_t first = 0;
  std::uint32_t nodes = 0;
  std::vector<std::string> names;
};

/// A single part if the job is not heterogeneous.
std::vector<Part> parts_of(const plan::Plan& plan, const Allocation& allocation,
                           const std::set<std::string>& out) {
  std::vector<Part> parts;
  const bool by_component =
      !plan.slurm.components.empty() && plan.slurm.components.size() == allocation.components.size();
  std::uint32_t first = 0;
  std::size_t from = 0;
  for (std::size_t i = 0; i < (by_component ? allocation.components.size() : 1); ++i) {
    const auto wanted = by_component ? plan.slurm.components[i].nodes : plan.node.count;
    const auto there = by_component ? allocation.components[i].nodes : allocation.nodes.size();
    auto& part = parts.emplace_back(Part{first, wanted, {}});
    for (std::size_t at = from; at < from + there; ++at)
      if (!out.contains(allocation.nodes[at])) part.names.push_back(allocation.nodes[at]);
    first += wanted;
    from += there;
  }
  return parts;
}

/// A node of the allocation.
struct Candidate {
  std::string name;
  std::size_t part = 0;
  std::string domain, at_switch;
  bool taken = false;
};

const std::string& name_of_place(const Candidate& candidate, Closeness within) {
  return within == Closeness::domain ? candidate.domain : candidate.at_switch;
}

/// Nodes of one domain next to each other, and domains in the order of their first switches.
std::vector<Candidate> in_order_of_place(const std::vector<Part>& parts, const Places& places) {
  std::vector<Candidate> candidates;
  std::map<std::string, std::string> first_switch;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const auto& name : parts[i].names) {
      const auto place = places.find(name);
      candidates.push_back({name, i, "", ""});
      if (place == places.end()) continue;
      candidates.back().domain = place->second.domain;
      candidates.back().at_switch = place->second.at_switch;
      const auto [first, is_new] = first_switch.try_emplace(place->second.domain, place->second.at_switch);
      if (!is_new) first->second = std::min(first->second, place->second.at_switch);
    }
  }
  std::ranges::stable_sort(candidates, {}, [&](const Candidate& candidate) {
    const auto first = first_switch.find(candidate.domain);
    const bool alone = candidate.domain.empty() || first == first_switch.end();
    return std::tuple(candidate.part, alone ? candidate.at_switch : first->second, candidate.domain,
                      candidate.at_switch);
  });
  return candidates;
}

/// Assigns the nodes of a plan to those of an allocation.
class Packer {
 public:
  Packer(const plan::Plan& plan, const std::vector<Part>& parts, const Places& places)
      : parts_(parts),
        candidates_(in_order_of_place(parts, places)),
        chosen_(plan.node.count),
        bins_of_(candidates_.size()) {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      for (const auto within : {Closeness::domain, Closeness::switch_}) {
        const auto& name = name_of_place(candidates_[i], within);
        if (name.empty()) continue;
        auto& bin = bins_[within][name];
        bin.left.resize(parts.size());
        ++bin.left[candidates_[i].part];
        bin.candidates.push_back(i);
        bins_of_[i].push_back(&bin);
      }
    }
  }

  /// Null: all sets have a place. Else the first that could not be placed.
  const plan::Together* pack(const std::vector<plan::Together>& sets) {
    const auto order = in_order(sets);
    if (order.size() <= kDeepest) return place(order, 0) ? nullptr : order[deepest_];
    for (std::size_t k = 0; k < order.size(); ++k) {
      auto fit = fitting(*order[k]);
      if (fit.placed) continue;
      if (fit.bins.empty()) return note_failure(fit, k), order[k];
      fill(fit.nodes, *std::get<2>(fit.bins.front()));
    }
    return nullptr;
  }

  /// Not all placements were tried.
  [[nodiscard]] bool gave_up() const { return looks_ > kMostLooks; }
  /// The most nodes that a place had for the set that could not be placed.
  [[nodiscard]] std::size_t most_room() const { return most_room_; }
  [[nodiscard]] std::size_t places(Closeness within) const {
    const auto found = bins_.find(within);
    return found == bins_.end() ? 0 : found->second.size();
  }

  /// Including the nodes that belong to no set. Only if there are enough in each part.
  std::vector<std::string> names() {
    std::vector<std::string> names;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      auto free = candidates_.begin();
      for (auto node = parts_[part].first; node < parts_[part].first + parts_[part].nodes; ++node) {
        if (!chosen_[node]) {
          free = std::find_if(free, candidates_.end(), [&](const Candidate& candidate) {
            return candidate.part == part && !candidate.taken;
          });
          take(node, static_cast<std::size_t>(free - candidates_.begin()));
        }
        names.push_back(candidates_[*chosen_[node]].name);
      }
    }
    return names;
  }

 private:
  /// A domain or a switch.
  struct Bin {
    std::vector<std::size_t> candidates{};
    std::vector<std::size_t> left{};  ///< free nodes, by part
  };

  void take(std::uint32_t node, std::size_t candidate) {
    candidates_[candidate].taken = true;
    for (auto* bin : bins_of_[candidate]) --bin->left[candidates_[candidate].part];
    chosen_[node] = candidate;
  }
  void give_back(std::uint32_t node) {
    const auto candidate = *chosen_[node];
    candidates_[candidate].taken = false;
    for (auto* bin : bins_of_[candidate]) ++bin->left[candidates_[candidate].part];
    chosen_[node].reset();
  }

  [[nodiscard]] std::size_t part_of(std::uint32_t node) const {
    std::size_t part = 0;
    while (node >= parts_[part].first + parts_[part].nodes) ++part;
    return part;
  }

  /// Sets that are enclosed by others come after those, whose place then determines theirs; else the largest
  /// first.
  std::vector<const plan::Together*> in_order(const std::vector<plan::Together>& sets) {
    std::vector<const plan::Together*> order;
    std::vector<std::size_t> largest(chosen_.size(), 0);  // size of the largest set that contains a node
    std::vector<unsigned> sets_of(chosen_.size(), 0);
    for (const auto& set : sets) {
      order.push_back(&set);
      for (const auto node : set.nodes) {
        largest[node] = std::max(largest[node], set.nodes.size());
        overlap_ = overlap_ || ++sets_of[node] > 1;
      }
    }
    const auto key = [&](const plan::Together* set) {
      return std::tuple(set->nodes.size() == largest[set->nodes.front()], set->within,
                        -std::ssize(set->nodes));
    };
    std::ranges::stable_sort(order, {}, key);
    return order;
  }

  /// The places where a set can go.
  struct Fit {
    std::vector<std::uint32_t> nodes;  ///< its nodes without a place
    bool placed = false;               ///< all have one, and it is the same
    std::size_t most = 0;              ///< the most nodes that one place has for it
    std::vector<std::tuple<std::size_t, std::size_t, const Bin*>>
        bins;  ///< the smallest place with enough room first
  };

  Fit fitting(const plan::Together& set) {
    Fit fit;
    const std::string* fixed = nullptr;      // the place of its nodes that have one already
    std::map<std::string, std::size_t> own;  // number of those nodes, by place
    std::vector<std::size_t> needed(parts_.size(), 0);
    bool torn = false;
    for (const auto node : set.nodes) {
      if (!chosen_[node]) {
        fit.nodes.push_back(node);
        ++needed[part_of(node)];
        continue;
      }
      const auto& name = name_of_place(candidates_[*chosen_[node]], set.within);
      torn = torn || name.empty() || (fixed != nullptr && *fixed != name);
      fixed = &name;
      ++own[name];
    }
    fit.placed = !torn && fit.nodes.empty();
    if (fit.placed) return fit;
    if (failed_) looks_ += bins_[set.within].size();
    for (const auto& [name, bin] : bins_[set.within]) {
      const auto all = std::accumulate(bin.left.begin(), bin.left.end(), std::size_t{0});
      const auto here = own.find(name);
      fit.most = std::max(fit.most, all + (here == own.end() ? 0 : here->second));
      const bool enough = std::ranges::equal(needed, bin.left, std::less_equal<>());
      if (enough && !torn && (fixed == nullptr || *fixed == name))
        fit.bins.emplace_back(all, bin.candidates.front(), &bin);
    }
    std::ranges::sort(fit.bins);
    return fit;
  }

  void note_failure(const Fit& fit, std::size_t k) {
    if (failed_ && k < deepest_) return;
    failed_ = true;
    deepest_ = k;
    most_room_ = fit.most;
  }

  bool place(const std::vector<const plan::Together*>& order, std::size_t k) {
    if (k == order.size()) return true;
    if (gave_up()) return false;
    const auto fit = fitting(*order[k]);
    if (fit.placed) return place(order, k + 1);
    if (fit.bins.empty()) note_failure(fit, k);
    std::optional<std::size_t> failed;  // places of the same size are equivalent if only their size matters
    for (const auto& [all, first, bin] : fit.bins) {
      if (failed == all && !overlap_ && bins_.size() == 1 && parts_.size() == 1) continue;
      fill(fit.nodes, *bin);
      if (place(order, k + 1)) return true;
      for (const auto node : fit.nodes) give_back(node);
      failed = all;
    }
    return false;
  }

  void fill(const std::vector<std::uint32_t>& nodes, const Bin& bin) {
    for (const auto node : nodes) {
      const auto part = part_of(node);
      const auto free = std::ranges::find_if(bin.candidates, [&](std::size_t i) {
        return !candidates_[i].taken && candidates_[i].part == part;
      });
      take(node, *free);
    }
  }

  const std::vector<Part>& parts_;
  std::vector<Candidate> candidates_;
  std::vector<std::optional<std::size_t>> chosen_;  ///< candidate, by node of the plan
  std::map<Closeness, std::map<std::string, Bin>> bins_;
  std::vector<std::vector<Bin*>> bins_of_;  ///< by candidate
  std::size_t looks_ = 0;                   ///< placements tried since the first failure
  bool overlap_ = false;                    ///< some sets have common nodes
  bool failed_ = false;
  std::size_t deepest_ = 0;    ///< the set that failed with the most others placed
  std::size_t most_room_ = 0;  ///< the room it found there
};

std::string why_not_together(const plan::Together& set, const Packer& packer, const Allocation& allocation) {
  const auto title = plan::title_of(set.within);
  const auto head =
      fmt::format("'{}' must be within one {} (keep_together, {})", set.name, title, set.origin);
  if (packer.places(set.within) == 0) {
    return fmt::format("{}, but no node of job {} reports which one it is in", head, allocation.job_id);
  }
  return fmt::format("{} and needs {}: in job {} no {} has more than {} for it{}", head,
                     text::count(set.nodes.size(), "node"), allocation.job_id, title, packer.most_room(),
                     packer.gave_up() ? "; not all placements were tried" : "");
}

}  // namespace

std::expected<std::vector<std::string>, std::string> choose_nodes(const plan::Plan& plan,
                                                                  const Allocation& allocation,
                                                                  const std::set<std::string>& out,
                                                                  const Places& places) {
  const auto parts = parts_of(plan, allocation, out);
  for (const auto& part : parts) {
    if (part.names.size() < part.nodes) {
      return std::unexpected(fmt::format("job {} has {} left, but the plan uses {}", allocation.job_id,
                                         text::count(part.names.size(), "node"), part.nodes));
    }
  }
  auto sets = plan::kept_together(plan);
  const auto nobody_asked = [](const plan::Together& set) { return set.origin.empty(); };
  const bool domains =
      std::ranges::any_of(places, [](const auto& one) { return !one.second.domain.empty(); });
  for (auto& set : sets)
    if (nobody_asked(set) && !domains) set.within = Closeness::switch_;
  // Sets that nobody requested are dropped, one after the other.
  constexpr int kMostTries = 100;
  for (int tries = 0;; ++tries) {
    Packer packer(plan, parts, places);
    const auto* unplaced = packer.pack(sets);
    if (unplaced == nullptr) return packer.names();
    if (std::ranges::none_of(sets, nobody_asked))
      return std::unexpected(why_not_together(*unplaced, packer, allocation));
    if (nobody_asked(*unplaced) && tries < kMostTries)
      sets.erase(sets.begin() + (unplaced - sets.data()));
    else
      std::erase_if(sets, nobody_asked);
  }
}

std::vector<std::string> hosts_for(const plan::Plan& plan, const Allocation& allocation,
                                   const std::set<std::string>& out, const Places& places, std::uint32_t node,
                                   const std::string& host) {
  const auto parts = parts_of(plan, allocation, out);
  const auto part = std::ranges::find_if(
      parts, [&](const auto& one) { return node >= one.first && node < one.first + one.nodes; });
  if (part == parts.end()) return {};
  auto hosts = part->names;
  for (const auto& set : plan::kept_together(plan)) {
    if (set.origin.empty() || std::ranges::find(set.nodes, node) == set.nodes.end()) continue;
    std::erase_if(hosts, [&](const std::string& other) {
      const auto here = places.find(host);
      const auto there = places.find(other);
      if (other == host) return false;
      if (here == places.end() || there == places.end()) return true;
      return set.within == Closeness::domain ? here->second.domain != there->second.domain
                                             : here->second.at_switch != there->second.at_switch;
    });
  }
  return hosts;
}

}  // namespace nlaunch::launch
