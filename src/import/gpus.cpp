#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "import/job.h"
#include "shell/srun.h"
#include "shell/stand_ins.h"

namespace nlaunch::import {
namespace {

class Gpus {
 public:
  explicit Gpus(Job& job) : job_(job) {}

  void divide() {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < job_.kept.size(); ++i) {
      auto& kept = job_.kept[i];
      const auto& part = job_.part_of(kept);
      const auto all = job_.where(part).gpus_per_node;
      // A cluster for which the script starts no driver has the GPUs itself.
      if (is_ray(kept) && std::ranges::all_of(job_.kept, is_ray)) kept.gpus = all;
      if (is_ray(kept) || job_.is_of_ray(kept)) continue;
      const auto said = said_gpus(part);
      if (said && all > 0)
        kept.gpus = std::min(*said, all);
      else if (said)
        kept.gpus = *said;
      else if (may_use_gpus(kept, part))
        open.push_back(i);
    }
    for (const auto i : open) {
      auto& kept = job_.kept[i];
      const auto all = job_.where(job_.part_of(kept)).gpus_per_node;
      std::uint32_t taken = 0;
      for (const auto node : nodes_of(job_.part_of(kept))) taken = std::max(taken, taken_beside(i, node));
      const auto sharing = static_cast<std::uint32_t>(std::ranges::count_if(open, [&](auto other) {
        return other > i && runs_beside(job_.kept[other], kept) && job_.meets(job_.kept[other], kept);
      }));
      kept.gpus = (all - std::min(all, taken)) / (most_on_a_node(job_.part_of(kept)) * (sharing + 1));
    }
  }

  /// A program alone on its nodes sees all of their GPUs in the script, however many it says it uses: it may
  /// start programs that use the others.
  void give_all() {
    for (auto& kept : job_.kept) {
      const auto& part = job_.part_of(kept);
      const auto all = job_.where(part).gpus_per_node;
      const bool alone = std::ranges::none_of(job_.kept, [&](const Kept& other) {
        return &other != &kept && other.gpus > 0 && runs_beside(kept, other) && job_.meets(kept, other);
      });
      const bool one = most_on_a_node(part) == 1 && kept.work.work != Work::engine;
      const bool uses = kept.gpus > 0 || (computes(part) && !kept.exits);
      if (!job_.ray && alone && one && uses && kept.gpus < all && !visible_of(part) && !is_given_gpus(part))
        kept.gpus = all;
    }
  }

  /// Programs that the script puts on the GPUs of others at the same time: their roles share them.
  void let_share() {
    std::vector<std::size_t> largest_first(job_.kept.size());
    std::iota(largest_first.begin(), largest_first.end(), std::size_t{0});
    std::ranges::stable_sort(largest_first, std::greater{}, [&](std::size_t i) {
      const auto visible = visible_of(job_.part_of(job_.kept[i]));
      return std::pair(visible ? visible->size() : on_a_node(i), job_.kept[i].work.work == Work::training);
    });
    std::vector<std::size_t> placed;
    for (const auto i : largest_first) {
      const auto& kept = job_.kept[i];
      if (is_ray(kept) || job_.is_of_ray(kept)) continue;
      if (visible_of(job_.part_of(kept)))
        share_visible(i, placed);
      else if (kept.gpus == 0)
        share_all(i);
      else
        share_where_too_many(i, placed);
      placed.push_back(i);
    }
  }

 private:
  /// The number of GPUs that the script itself sets for each process of a part.
  [[nodiscard]] std::optional<std::uint32_t> said_gpus(const Part& part) const {
    const auto visible = part.changes.find("CUDA_VISIBLE_DEVICES");
    if (visible != part.changes.end() && visible->second && visible->second->find('/') == std::string::npos)
      return visible->second->empty() || *visible->second == "-1"
                 ? 0
                 : shared_by(most_on_a_node(part),
                             static_cast<std::uint32_t>(text::split(*visible->second, ',').size()));
    const auto each = most_on_a_node(part);
    const auto end = words_of_step(part);
    const auto step = [&](std::string_view letter, const char* name) -> std::optional<std::uint32_t> {
      const auto text = shell::option(part.step, end, letter, name);
      if (text == "none") return 0;
      if (!text || (std::string_view(name) == "--gres" && text->find("gpu") == std::string::npos))
        return std::nullopt;
      return text::whole_number<std::uint32_t>(text->substr(text->rfind(':') + 1));
    };
    if (part.in_step) {
      if (const auto found = step("", "--gpus-per-task")) return found;
      for (const auto* name : {"--gpus-per-node", "--gres"})
        if (const auto found = step("", name)) return *found / std::max(1U, each);
      if (const auto found = step("-G", "--gpus"))  // several steps, one on each node, may be one part
        return *found / std::max(1U, static_cast<std::uint32_t>(part.tasks_of_step));
    }
    return gpus_said_by(part.program, static_cast<std::uint32_t>(nodes_of(part).size()));
  }

  /// Tasks that all see the same GPUs pick one each by their rank.
  static std::uint32_t shared_by(std::uint32_t tasks, std::uint32_t gpus) {
    return tasks > 1 && gpus % tasks == 0 ? gpus / tasks : gpus;
  }

  /// True if it may use GPUs although nothing sets how many.
  static bool may_use_gpus(const Kept& kept, const Part& part) {
    if (kept.main || kept.work.work == Work::training || kept.work.work == Work::engine) return true;
    return kept.exits && !works_on_files(part.program);
  }

  /// True for a program of which nothing is known but that it may use a GPU.
  static bool computes(const Part& part) {
    const auto name = shell::program_name(part.program[0]);
    return (name.starts_with("python") || name == "uv") && part.program.size() > 1 &&
           !works_on_files(part.program);
  }

  /// True if its step sets which GPUs of the node it gets.
  static bool is_given_gpus(const Part& part) {
    if (!part.in_step || shell::program_name(part.step[0]) != "srun") return false;
    const auto options = shell::options_of_srun(part.step);
    return std::ranges::any_of(std::array{"gpus", "gpus-per-task", "gpus-per-node", "gres", "gpu-bind"},
                               [&](const char* name) { return shell::value_of(options, name).has_value(); });
  }

  [[nodiscard]] std::uint32_t taken_beside(std::size_t index, std::uint32_t node) const {
    std::uint32_t taken = 0;
    for (std::size_t i = 0; i < job_.kept.size(); ++i) {
      if (i == index || !runs_beside(job_.kept[i], job_.kept[index])) continue;
      taken += job_.kept[i].gpus * static_cast<std::uint32_t>(std::ranges::count(
                                       job_.part_of(job_.kept[i]).tasks, node, &shell::Task::node));
    }
    return taken;
  }

  [[nodiscard]] std::uint32_t on_a_node(std::size_t i) const {
    return job_.kept[i].gpus * most_on_a_node(job_.part_of(job_.kept[i]));
  }
  [[nodiscard]] bool are_at_once(std::size_t a, std::size_t b) const {
    return a != b && runs_beside(job_.kept[a], job_.kept[b]) && job_.meets(job_.kept[a], job_.kept[b]);
  }

  /// Shares GPUs according to CUDA_VISIBLE_DEVICES of both.
  void share_visible(std::size_t i, const std::vector<std::size_t>& placed) {
    const auto own = visible_of(job_.part_of(job_.kept[i])).value();
    const auto has = [](const std::vector<std::string>& all, const std::string& gpu) {
      return !gpu.empty() && std::ranges::find(all, gpu) != all.end();
    };
    for (const auto other : placed) {
      const auto visible = visible_of(job_.part_of(job_.kept[other]));
      if (!visible || !are_at_once(i, other) || !job_.kept[other].shares_with.empty()) continue;
      const auto common = std::ranges::count_if(own, [&](const auto& gpu) { return has(*visible, gpu); });
      if (common == 0) continue;
      if (common == std::ranges::ssize(own) && job_.kept[i].shares_with.empty()) {
        job_.kept[i].shares_with = {other};
      } else {
        job_.out.parts[job_.kept[i].part].problem = fmt::format(
            "it uses some of the GPUs of {} (CUDA_VISIBLE_DEVICES) and others as well: in a "
            "plan, a process shares either all of its GPUs or none",
            job_.kept[other].name);
      }
    }
  }

  /// For a program that sees all GPUs of its nodes while others use them.
  void share_all(std::size_t i) {
    auto& kept = job_.kept[i];
    const bool learns = !job_.ray && job_.is_in_place_of_training(kept);
    const bool needs = learns || kept.work.work == Work::training || kept.work.work == Work::engine ||
                       (!job_.ray && computes(job_.part_of(kept)) && !kept.exits && !kept.main);
    const auto all = job_.where(job_.part_of(kept)).gpus_per_node;
    const auto each = all / most_on_a_node(job_.part_of(kept));
    const bool has_none = job_.part_of(kept).in_step && said_gpus(job_.part_of(kept)) == 0U;
    if (!needs || all == 0 || has_none) return;
    if (each == 0) {
      job_.out.parts[kept.part].problem =
          fmt::format("{} of its processes use the {} of a node, which other roles also use",
                      most_on_a_node(job_.part_of(kept)), text::count(all, "GPU"));
      return;
    }
    for (std::size_t other = 0; other < job_.kept.size(); ++other) {
      const auto& partner = job_.kept[other];
      if (are_at_once(i, other) && partner.gpus > 0 && partner.shares_with.empty())
        kept.shares_with.push_back(other);
    }
    kept.gpus = each;
  }

  /// More GPUs are requested than available, so only those of others are left.
  void share_where_too_many(std::size_t i, const std::vector<std::size_t>& placed) {
    auto& kept = job_.kept[i];
    std::uint32_t taken = 0;  // by it and those that run beside it and beside each other
    std::optional<std::size_t> partner;
    const auto counts = [&](std::size_t other) {
      return are_at_once(i, other) && job_.kept[other].shares_with.empty();
    };
    for (const auto other : placed) {
      if (!counts(other)) continue;
      auto together = on_a_node(i) + on_a_node(other);
      for (const auto third : placed)
        if (third != other && counts(third) && are_at_once(other, third)) together += on_a_node(third);
      taken = std::max(taken, together);
      if (!partner && on_a_node(other) >= on_a_node(i)) partner = other;
    }
    const auto all = job_.where(job_.part_of(kept)).gpus_per_node;
    if (!partner || all == 0 || taken <= all) return;
    kept.shares_with = {*partner};
    const auto& part = job_.part_of(kept);
    const bool queues = part.in_step && said_gpus(part).value_or(0) > 0 &&
                        !shell::has(part.step, "--overlap") && !visible_of(part);
    if (queues)
      job_.out.parts[kept.part].problem =
          "Slurm starts this step when steps before it have freed their GPUs; a plan starts all of a stage "
          "at once. "
          "Start only as many at a time as there are GPUs, with `wait` between";
  }

  Job& job_;
};

}  // namespace

shell::Recording with_cuda_names(shell::Recording recording) {
  constexpr std::array<std::string_view, 3> kNames{
      "CUDA_VISIBLE_DEVICES=", "ROCR_VISIBLE_DEVICES=", "HIP_VISIBLE_DEVICES="};
  const auto visible = [&](shell::RecordedCommand& command) -> std::string* {
    std::vector<std::string*> found;
    for (auto& entry : command.environment)
      if (std::ranges::any_of(kNames, [&](auto name) { return entry.starts_with(name); }))
        found.push_back(&entry);
    const bool amd = found.size() == 1 && !found[0]->starts_with(kNames[0]);
    return amd && !found[0]->ends_with('=') ? found[0] : nullptr;
  };
  // Of each step: the values of its tasks.
  std::map<std::size_t, std::set<std::string>> values;
  std::map<std::size_t, std::size_t> tasks;
  for (auto& command : recording.commands) {
    const auto* entry = visible(command);
    if (entry == nullptr || !command.launcher) continue;
    values[*command.launcher].insert(*entry);
    ++tasks[*command.launcher];
  }
  for (auto& command : recording.commands) {
    auto* entry = visible(command);
    if (entry == nullptr) continue;
    const auto step = command.launcher;
    const bool same = step && tasks[*step] > 1 && values[*step].size() == 1 && !entry->contains(',');
    if (!same) *entry = std::string(kNames[0]) + entry->substr(entry->find('=') + 1);
  }
  return recording;
}

void divide_gpus(Job& job) {
  Gpus gpus(job);
  gpus.divide();
  gpus.give_all();
}

void let_share_gpus(Job& job) {
  Gpus(job).let_share();
}

void tell_of_other_gpus(Job& job) {
  struct Named {
    const Kept* kept;
    std::uint32_t node;
    std::uint32_t first;
  };
  std::vector<Named> in_order;
  std::set<std::uint32_t> all;
  std::uint32_t line = 0;
  for (const auto& one : job.recording.assignments) {
    if (one.name != "ROCR_VISIBLE_DEVICES" && one.name != "HIP_VISIBLE_DEVICES") continue;
    const bool kept =
        std::ranges::any_of(job.out.parts, [&](const Part& part) { return part.changes.contains(one.name); });
    if (!kept)
      job.remark(one.line, fmt::format("{} becomes CUDA_VISIBLE_DEVICES, by which nlaunch gives a process "
                                       "its GPUs and which HIP reads too",
                                       one.name));
    break;
  }
  for (const auto& kept : job.kept) {
    for (const auto index : job.part_of(kept).commands) {
      const auto& command = job.recording.commands[index];
      std::vector<std::uint32_t> gpus;
      for (const auto& one :
           text::split(shell::value_of(command.environment, "CUDA_VISIBLE_DEVICES").value_or(""), ','))
        if (const auto gpu = text::whole_number<std::uint32_t>(one)) gpus.push_back(*gpu);
      if (gpus.empty()) continue;
      if (line == 0) line = command.line;
      all.insert(gpus.begin(), gpus.end());
      in_order.push_back({&kept, command.task ? command.task->node : 0, gpus.front()});
    }
  }
  const auto falls = std::ranges::adjacent_find(in_order, [](const Named& one, const Named& next) {
    return one.node == next.node && next.first < one.first &&
           (one.kept == next.kept || runs_beside(*one.kept, *next.kept));
  });
  if (falls != in_order.end())
    job.remark(job.part_of(*falls->kept).line,
               fmt::format("{} has GPU {} of its node in the script, and what starts after it GPU {}: here "
                           "GPUs are given in the order of the start",
                           falls->kept->name, falls->first, std::next(falls)->first));
  // Programs one after the other get the same GPUs.
  const bool in_turn = std::ranges::any_of(in_order, [&](const Named& one) {
    return one.kept != in_order.front().kept && !runs_beside(*one.kept, *in_order.front().kept);
  });
  const auto count = static_cast<std::uint32_t>(all.size());
  const bool some_are_not_recorded = std::ranges::any_of(job.kept, [&](const Kept& kept) {
    return job.part_of(kept).tasks.size() > job.part_of(kept).commands.size();
  });
  if (in_turn && !some_are_not_recorded) {
    // Alone on its node: from the first one on.
    std::set<const Kept*> told;
    for (const auto& one : in_order) {
      const bool alone = one.first != 0 && std::ranges::none_of(in_order, [&](const Named& other) {
                           return other.node == one.node && other.first < one.first &&
                                  (other.kept == one.kept || runs_beside(*other.kept, *one.kept));
                         });
      if (alone && told.insert(one.kept).second)
        job.remark(
            job.part_of(*one.kept).line,
            fmt::format("{} has GPUs from {} on in the script: the plan gives it GPUs from the first on",
                        one.kept->name, one.first));
    }
  }
  if (all.empty() || in_turn || some_are_not_recorded || *all.rbegin() + 1 == count) return;
  std::vector<std::string> numbers;
  for (const auto gpu : all) numbers.push_back(std::to_string(gpu));
  job.remark(line, fmt::format("the script names the GPUs {} of a node: the plan uses {}, from the first on",
                               text::join(numbers, ", "), text::count(count, "GPU")));
}

}  // namespace nlaunch::import
