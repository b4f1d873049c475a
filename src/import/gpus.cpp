#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "import/job.h"
#include "shell/srun.h"

namespace nlaunch::import {
namespace {

class Gpus {
 public:
  explicit Gpus(Job& job) : job_(job) {}

  void share() {
    const auto all = job_.allocation.gpus_per_node;
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < job_.kept.size(); ++i) {
      auto& kept = job_.kept[i];
      const auto& part = job_.part_of(kept);
      if (is_ray(kept) || (job_.ray && kept.main)) continue;
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
      std::uint32_t taken = 0;
      for (const auto node : nodes_of(job_.part_of(kept))) taken = std::max(taken, taken_beside(i, node));
      const auto sharing = static_cast<std::uint32_t>(std::ranges::count_if(open, [&](auto other) {
        return other > i && runs_beside(job_.kept[other], kept) && job_.meets(job_.kept[other], kept);
      }));
      kept.gpus = (all - std::min(all, taken)) / (most_on_a_node(job_.part_of(kept)) * (sharing + 1));
    }
  }

  /// What is alone on its nodes sees all of their GPUs in the script, however many it says that it uses: it
  /// may start what takes the others.
  void give_all() {
    const auto all = job_.allocation.gpus_per_node;
    for (auto& kept : job_.kept) {
      const auto& part = job_.part_of(kept);
      const bool alone = std::ranges::none_of(job_.kept, [&](const Kept& other) {
        return &other != &kept && other.gpus > 0 && runs_beside(kept, other) && job_.meets(kept, other);
      });
      const bool one = most_on_a_node(part) == 1 && kept.work.work != Work::engine;
      if (!job_.ray && alone && one && kept.gpus > 0 && kept.gpus < all && !visible_of(part) &&
          !is_given_gpus(part))
        kept.gpus = all;
    }
  }

  /// A GPU has one owner in a plan.
  void refuse_shared() {
    const auto all = job_.allocation.gpus_per_node;
    for (auto& kept : job_.kept) {
      auto& part = job_.out.parts[kept.part];
      const bool learns = !job_.ray && job_.is_in_place_of_training(kept);
      const bool needs = learns || kept.work.work == Work::training || kept.work.work == Work::engine;
      const auto visible = visible_of(part);
      if (needs && all > 0 && kept.gpus == 0 && !visible && !(job_.ray && kept.main))
        part.problem = "it shares its GPUs with what runs beside it, and a GPU of a plan has one owner";
      for (const auto& other : job_.kept) {
        if (&other == &kept || !visible || !runs_beside(kept, other) || !job_.meets(kept, other)) continue;
        const auto others = visible_of(job_.part_of(other));
        const bool shared = others && std::ranges::any_of(*others, [&](const auto& gpu) {
                              return !gpu.empty() && std::ranges::find(*visible, gpu) != visible->end();
                            });
        if (shared)
          part.problem = fmt::format(
              "it shares GPUs with {} (CUDA_VISIBLE_DEVICES), and a GPU of a plan has one owner", other.name);
      }
    }
  }

 private:
  /// What the script itself says of the GPUs of each of a part's processes.
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
      if (!text || (std::string_view(name) == "--gres" && text->find("gpu") == std::string::npos))
        return std::nullopt;
      if (*text == "none") return 0;
      return text::whole_number<std::uint32_t>(text->substr(text->rfind(':') + 1));
    };
    if (part.in_step) {
      if (const auto found = step("", "--gpus-per-task")) return found;
      for (const auto* name : {"--gpus-per-node", "--gres"})
        if (const auto found = step("", name)) return *found / std::max(1U, each);
      if (const auto found = step("-G", "--gpus"))
        return *found / std::max<std::uint32_t>(1, static_cast<std::uint32_t>(part.tasks.size()));
    }
    return gpus_said_by(part.program, static_cast<std::uint32_t>(nodes_of(part).size()));
  }

  /// Tasks that all see the same GPUs pick one each by their rank.
  static std::uint32_t shared_by(std::uint32_t tasks, std::uint32_t gpus) {
    return tasks > 1 && gpus % tasks == 0 ? gpus / tasks : gpus;
  }

  /// It may use GPUs, though nothing says how many.
  static bool may_use_gpus(const Kept& kept, const Part& part) {
    if (kept.main || kept.work.work == Work::training || kept.work.work == Work::engine) return true;
    return kept.exits && !works_on_files(part.program);
  }

  /// Its step says which GPUs of the node it has.
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

  Job& job_;
};

}  // namespace

void share_gpus(Job& job) {
  Gpus gpus(job);
  gpus.share();
  gpus.give_all();
}

void refuse_shared_gpus(Job& job) {
  Gpus(job).refuse_shared();
}

}  // namespace nlaunch::import
