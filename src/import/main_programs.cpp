#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "import/job.h"
#include "import/kills.h"

namespace nlaunch::import {
namespace {

/// With which programs the job ends.
class MainPrograms {
 public:
  explicit MainPrograms(Job& job) : job_(job) {}

  /// The programs with which the script ends: its last foreground program, or those that it waits for after
  /// it.
  void choose() {
    std::optional<std::size_t> last;
    for (std::size_t i = 0; i < job_.kept.size(); ++i)
      if (!job_.part_of(job_.kept[i]).background && !is_ray(job_.kept[i])) last = i;
    std::vector<std::size_t> candidates;
    for (std::size_t i = 0; i < job_.kept.size(); ++i) {
      if (job_.part_of(job_.kept[i]).background && !is_ray(job_.kept[i]) &&
          job_.kept[i].work.work != Work::engine && !ends_before_others(job_, i))
        candidates.push_back(i);
    }
    std::vector<std::size_t>
        behind;  // those that it waits for or, if it is not known for which, all after `last`
    const auto is_waited_for = [&](auto i) { return is_awaited(job_.recording, job_.part_of(job_.kept[i])); };
    const bool is_known = std::ranges::any_of(candidates, is_waited_for);
    std::ranges::copy_if(candidates, std::back_inserter(behind),
                         [&](auto i) { return is_known ? is_waited_for(i) : !last || i > *last; });
    const bool any_trains = !is_known && std::ranges::any_of(behind, [&](auto i) {
      return job_.kept[i].work.work == Work::training;
    });
    const bool ends_in_front = last && (behind.empty() || behind.back() < *last);
    if (ends_in_front) ends_with(*last);
    if (behind.empty()) return;
    // If none trains by its name, the one in front, the first one with GPUs, or the last one counts as the
    // training.
    const auto first = std::ranges::find_if(
        behind, [&](auto i) { return visible_of(job_.part_of(job_.kept[i])).has_value(); });
    const auto stands = ends_in_front ? *last : first == behind.end() ? behind.back() : *first;
    const auto& standing = job_.part_of(job_.kept[stands]);
    for (const auto i : behind) {
      auto& kept = job_.kept[i];
      const auto& part = job_.part_of(kept);
      kept.main = !any_trains || kept.work.work == Work::training;
      kept.beside = !any_trains && part.line != standing.line && !are_ranks_of_one(part, standing);
    }
    for (const auto i : behind)
      if (!job_.kept[i].main)
        job_.remark(job_.part_of(job_.kept[i]).line,
                    fmt::format("{} stops when the run ends, and the run ends with {}: the script may wait "
                                "for both. `ends_run` sets which role ends the run",
                                role_name_of(job_.part_of(job_.kept[i]).program),
                                role_name_of(job_.part_of(job_.kept[behind.back()]).program)));
  }

  /// `wait`, `sleep infinity` or an endless loop behind the last program in front keeps the job, and with it
  /// the servers that still run.
  void keep_servers() {
    const bool holds = holds_at_its_end(job_.recording);
    const auto serves = [&](const Kept& kept) {
      return job_.part_of(kept).background && kept.work.work == Work::engine && !is_ray(kept);
    };
    const auto in_front = std::ranges::find_if(
        job_.kept, [&](const Kept& kept) { return kept.main && !job_.part_of(kept).background; });
    if (in_front == job_.kept.end() || stops_others_behind(job_.recording, job_.part_of(*in_front))) return;
    for (std::size_t i = 0; i < job_.kept.size(); ++i) {
      auto& kept = job_.kept[i];
      const auto& part = job_.part_of(kept);
      kept.stays =
          serves(kept) && !ends_before_others(job_, i) && (holds || is_awaited(job_.recording, part));
      if (kept.stays)
        job_.remark(part.line,
                    fmt::format("the script waits for {} after {} has exited: so does the run. Without its "
                                "`ends_run`, the run ends before",
                                role_name_of(part.program), role_name_of(job_.part_of(*in_front).program)));
    }
  }

 private:
  /// A step ends when all of its tasks have exited: the job ends with the last program of each task, except
  /// servers that run next to others.
  void ends_with(std::size_t last) {
    job_.kept[last].main = true;
    const auto& end = job_.part_of(job_.kept[last]);
    for (std::size_t i = 0; i < last; ++i) {
      const auto& part = job_.part_of(job_.kept[i]);
      if (are_ranks_of_one(part, end) && is_awaited(job_.recording, part) &&
          !had_ended(job_.recording, part, end))
        job_.kept[i].main = true;
    }
    for (std::size_t i = 0; i < job_.kept.size(); ++i) {
      const auto& part = job_.part_of(job_.kept[i]);
      const bool serves = is_ray(job_.kept[i]) || job_.kept[i].work.work == Work::engine;
      if (i == last || part.background || serves || !job_.in_one_step(part, job_.part_of(job_.kept[last])))
        continue;
      const auto goes_on = [&](const Kept& other) {
        return job_.in_one_step(part, job_.part_of(other)) && shares_a_rank(part, job_.part_of(other));
      };
      if (std::any_of(job_.kept.begin() + static_cast<std::ptrdiff_t>(i) + 1, job_.kept.end(), goes_on))
        continue;
      job_.kept[i].main = true;
      if (job_.kept[last].work.work == Work::engine) job_.kept[last].main = false;
    }
    for (auto& kept : job_.kept)
      kept.beside = kept.main && !are_ranks_of_one(job_.part_of(kept), job_.part_of(first_main()));
  }

  [[nodiscard]] const Kept& first_main() const {
    return *std::ranges::find_if(job_.kept, [](const Kept& kept) { return kept.main; });
  }

  /// Programs that run at once and differ in numbers and hosts alone: `train.py --rank 1 &`, `train.py --rank
  /// 0`.
  static bool are_ranks_of_one(const Part& a, const Part& b) {
    if (&a == &b) return true;
    static const RE2 kOfRank(R"(rec-node-\d+|10\.77\.\d+\.\d+|\d+)");
    const auto without_ranks = [](std::string word) {
      RE2::GlobalReplace(&word, kOfRank, "#");
      return word;
    };
    return (a.background || b.background) && role_name_of(a.program) == role_name_of(b.program) &&
           std::ranges::equal(a.program, b.program, {}, without_ranks, without_ranks);
  }

  Job& job_;
};

}  // namespace

void choose_main(Job& job) {
  MainPrograms(job).choose();
}

void keep_servers(Job& job) {
  MainPrograms(job).keep_servers();
}

}  // namespace nlaunch::import
