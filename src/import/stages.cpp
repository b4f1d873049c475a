#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "import/job.h"
#include "shell/srun.h"

namespace nlaunch::import {
namespace {

/// In which order the programs start.
class Stages {
 public:
  explicit Stages(Job& job) : job_(job) {}

  /// Stages: a program that starts after another one has exited or is ready is in a later stage. Tasks of one
  /// step run in parallel, so each has its own clock.
  void order() {
    std::uint32_t script = 0;
    std::optional<std::size_t> step;
    std::map<std::uint32_t, std::uint32_t> clocks;  // of a step, by rank
    std::map<std::uint32_t, std::size_t> come_to;   // the last command of each
    std::size_t seen = 0;
    std::uint32_t most = 0;
    bool any = false;
    for (std::size_t i = 0; i < job_.kept.size(); ++i) {
      auto& kept = job_.kept[i];
      const auto& part = job_.part_of(kept);
      const auto launcher = part.in_step ? job_.step_of(part.commands[0]) : std::nullopt;
      if (!launcher || launcher != step) {
        for (const auto& [rank, clock] : clocks) script = std::max(script, clock);
        clocks.clear();
        come_to.clear();
        step = launcher;
      }
      for (; seen < part.commands[0]; ++seen) {
        const bool own = step && job_.recording.commands[seen].task && job_.step_of(seen) == step;
        const auto& asks = job_.recording.commands[seen];
        if (any && !own && (waits(asks) || watches_a_log(asks))) script = std::max(script, most + 1);
      }
      const auto waited = behind_what_had_ended(i);
      if (!step) script = std::max(script, waited);
      kept.stage = std::max(script, waited);
      if (step) {
        for (std::size_t k = 0; k < part.commands.size(); ++k) {
          const auto rank = part.tasks[part.recorded[k]].rank;
          auto& begin = come_to.try_emplace(rank, *step).first->second;
          auto& clock = clocks.try_emplace(rank, kept.stage).first->second;
          clock = std::max(clock, waited);
          if (waits_between(rank, begin, part.commands[k])) {
            kept.waited = true;
            ++clock;
          }
          begin = part.commands[k];
        }
        for (const auto& task : part.tasks)
          kept.stage = std::max(kept.stage, clocks.try_emplace(task.rank, kept.stage).first->second);
      }
      const bool blocks = is_ray(kept) && shell::has(part.program, "--block");
      const bool holds_up = !part.background || part.first_of_step;
      const bool ends = !kept.main && !is_ray(kept) && kept.work.work != Work::engine;
      kept.exits = ends && (holds_up || ends_before_others(job_, i));
      const bool goes_on = holds_up && (kept.exits || (is_ray(kept) && !part.background && !blocks));
      if (goes_on) {
        if (!part.in_step) script = kept.stage + 1;
        for (const auto& task : part.tasks) clocks[task.rank] = kept.stage + 1;
      }
      most = std::max(most, kept.stage);
      any = true;
    }
    for (auto& kept : job_.kept) {
      if (kept.work.work == Work::ray_worker) kept.stage = std::max(kept.stage, stage_of_head() + 1);
    }
    start_servers_together();
    for (auto& kept : job_.kept) {
      if (!kept.main) continue;
      for (const auto& other : job_.kept) {
        if (other.main || !begins_before(other, kept)) continue;
        if (other.stage >= kept.stage && &other > &kept && !kept.exits)
          job_.remark(job_.part_of(kept).line,
                      fmt::format("{} (line {}) starts before {}, which ends the run: the script starts it "
                                  "after that, and waits for neither",
                                  role_name_of(job_.part_of(other).program), job_.part_of(other).line,
                                  role_name_of(job_.part_of(kept).program)));
        kept.stage = std::max(kept.stage, other.stage + 1);
      }
    }
  }

  /// Of two steps at once on some of the nodes, Slurm puts the one that names none onto nodes that no other
  /// step holds, if there are any: which those are is not recorded.
  void refuse_steps_without_nodes() {
    const auto is_partial = [&](const Part& part) {
      return part.in_step && shell::program_name(part.step[0]) == "srun" &&
             nodes_of(part).size() < job_.allocation.component_of(part.tasks[0].node).nodes;
    };
    for (std::size_t i = 0; i < job_.kept.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        auto& part = job_.out.parts[job_.kept[i].part];
        const auto& other = job_.part_of(job_.kept[j]);
        if (!is_partial(part) || !is_partial(other) || job_.in_one_step(part, other) || overlaps(part) ||
            overlaps(other) || (names_nodes(part) && names_nodes(other)) ||
            !runs_beside(job_.kept[i], job_.kept[j]) || !job_.meets(job_.kept[i], job_.kept[j]))
          continue;
        part.problem = fmt::format(
            "it runs at the same time as {} (line {}), and not both name their nodes: Slurm gives a step "
            "nodes that no other one holds. Name the nodes of both (srun --nodelist), or let them share "
            "nodes (srun --overlap)",
            role_name_of(other.program), other.line);
      }
    }
  }

  /// The stages of the roles, in order, with what prepares for them.
  void write() {
    std::map<std::pair<std::uint32_t, Before>, std::vector<std::string>> stages;
    for (const auto& kept : job_.kept) stages[{kept.stage, Before::nothing}].push_back(kept.name);
    for (const auto& one : job_.preparing) stages[{one.stage, one.what}].push_back(one.name);
    if (stages.size() < 2) return;
    for (auto& [stage, names] : stages) job_.out.start.push_back(std::move(names));
  }

 private:
  /// True if a task of a step waited for something between two of its commands.
  [[nodiscard]] bool waits_between(std::uint32_t rank, std::size_t begin, std::size_t end) const {
    for (auto i = begin + 1; i < end; ++i) {
      const auto& command = job_.recording.commands[i];
      if (waits(command) && command.task && command.task->rank == rank) return true;
    }
    return false;
  }

  /// The first node of a server answers once the others have joined it: whatever the script does between
  /// them, they start at once.
  void start_servers_together() {
    const auto is = [&](const Kept& kept, ServerNode node) {
      return kept.work.work == Work::engine && node_of_server(job_.part_of(kept).program) == node;
    };
    for (auto& first : job_.kept) {
      if (!is(first, ServerNode::first)) continue;
      for (auto& rest : job_.kept) {
        if (!is(rest, ServerNode::other) || rest.stage <= first.stage ||
            !are_one_server(job_.part_of(first).program, job_.part_of(rest).program))
          continue;
        rest.stage = first.stage;
        rest.waited = false;
        job_.remark(
            job_.part_of(rest).line,
            fmt::format("it starts together with the server of line {}, which answers only once all of "
                        "its nodes are there: what the script waits for between them is not imported",
                        job_.part_of(first).line));
      }
    }
  }

  static bool are_one_server(const shell::Words& one, const shell::Words& other) {
    return role_name_of(one) == role_name_of(other) &&
           std::ranges::all_of(
               std::array{"--nnodes", "--dist-init-addr", "--nccl-init-addr", "--master-addr",
                          "--master-port", "--data-parallel-address"},
               [&](const char* name) { return option_of(one, name) == option_of(other, name); });
  }

  static bool names_nodes(const Part& part) {
    const auto words = words_of_step(part);
    return shell::option(part.step, words, "-w", "--nodelist") ||
           shell::option(part.step, words, "-r", "--relative") ||
           shell::option(part.step, words, "-F", "--nodefile");
  }

  static bool overlaps(const Part& part) {
    const auto set = part.changes.find("SLURM_OVERLAP");
    return (set != part.changes.end() && set->second) ||
           std::ranges::find(part.step, "--overlap") != part.step.end() ||
           std::ranges::find(part.step, "-s") != part.step.end() ||
           std::ranges::find(part.step, "--oversubscribe") != part.step.end();
  }

  /// `grep -q ready server.log` of a program in the background.
  [[nodiscard]] bool watches_a_log(const shell::RecordedCommand& asks) const {
    if (asks.fate != shell::Fate::answered || !shell::program_name(asks.argv[0]).ends_with("grep"))
      return false;
    return std::ranges::any_of(job_.kept, [&](const Kept& kept) {
      const auto& part = job_.part_of(kept);
      const auto& first = job_.recording.commands[part.commands[0]];
      const auto file = first.files.find(1);
      return part.background && &first < &asks && file != first.files.end() &&
             std::ranges::any_of(asks.argv, [&](const auto& word) {
               return (std::filesystem::path(asks.folder) / word).lexically_normal() == file->second;
             });
    });
  }

  /// The stage after those that the script has waited for when this one starts.
  [[nodiscard]] std::uint32_t behind_what_had_ended(std::size_t index) {
    const auto& next = job_.part_of(job_.kept[index]);
    std::uint32_t stage = 0;
    for (std::size_t i = 0; i < index; ++i) {
      const auto& before = job_.kept[i];
      auto& part = job_.out.parts[before.part];
      if (!had_ended(job_.recording, part, next) || changes_files(next)) continue;
      const bool is_killed = was_ended(job_.recording, part, next);
      // `ray start` without --block exits, and Ray goes on.
      if (is_ray(before) && !is_killed && !shell::has(part.program, "--block")) continue;
      const bool serves = before.work.work == Work::engine || is_ray(before);
      if (serves || (is_killed && before.work.work == Work::training))
        part.problem = fmt::format(
            "the script stops it, or waits for it to exit, before it starts {} at line {}. In a plan, a "
            "server runs until the run ends: split the script there",
            role_name_of(next.program), next.line);
      else if (is_killed)
        job_.remark(part.line, fmt::format("the script stops `{}` before it starts {} at line {}: here it "
                                           "runs until the run ends",
                                           text::printable(text::shell_join(part.argv)),
                                           role_name_of(next.program), next.line));
      else
        stage = std::max(stage, before.stage + 1);
    }
    return stage;
  }

  /// The program that ends the job starts last, except for others in its own step, which are ordered by the
  /// clocks. Two servers may be one server on two nodes.
  [[nodiscard]] bool begins_before(const Kept& other, const Kept& main) const {
    if (is_ray(other)) return true;
    if (other.work.work == Work::engine && main.work.work == Work::engine) return false;
    return !job_.side_by_side(job_.part_of(other), job_.part_of(main));
  }

  [[nodiscard]] std::uint32_t stage_of_head() const {
    for (const auto& kept : job_.kept)
      if (kept.work.work == Work::ray_head) return kept.stage;
    return 0;
  }

  Job& job_;
};

}  // namespace

void order(Job& job) {
  Stages(job).order();
}

void refuse_steps_without_nodes(Job& job) {
  Stages(job).refuse_steps_without_nodes();
}

void stage_roles(Job& job) {
  Stages(job).write();
}

}  // namespace nlaunch::import
