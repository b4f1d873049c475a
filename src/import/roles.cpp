#include "import/roles.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/text.h"
#include "import/ray.h"
#include "import/work.h"
#include "shell/answers.h"
#include "shell/srun.h"

namespace nlaunch::import {
namespace {

using shell::Fate;

constexpr const char* kServerTimeout = "60m";  // no script says how long a model of any size takes
constexpr const char* kOtherTimeout = "10m";

/// A part that becomes a role.
struct Kept {
  std::size_t part = 0;
  WorkOf work;
  std::uint32_t stage = 0;
  std::uint32_t gpus = 0;  ///< of each process
  bool exits = false;      ///< the next begins when it has ended
  bool main = false;       ///< the job ends with it
  bool beside = false;     ///< and it is not the first of those
  bool waited = false;     ///< its own task has waited for something before it
  std::string name;
};

/// A role of its own that is there for those of a stage, and comes before them, in this order.
enum class Before { waits, writes, nothing };
struct Preparing {
  std::uint32_t stage = 0;
  Before what = Before::waits;
  std::string name;
};

bool waits(const shell::RecordedCommand& command) {
  constexpr std::array<std::string_view, 7> kNames{"sleep", "curl", "wget", "nc", "ncat", "ray", "squeue"};
  return command.fate == Fate::answered &&
         std::ranges::find(kNames, shell::program_name(command.argv[0])) != kNames.end();
}

/// The port that an argument of a server names: "--port 8000", "--bind=0.0.0.0:8000".
bool names_port(const shell::Words& argv, const std::string& port) {
  return std::ranges::any_of(argv, [&](const auto& word) {
    return word == port || word.ends_with("=" + port) || word.ends_with(":" + port);
  });
}

std::set<std::uint32_t> nodes_of(const Part& part) {
  std::set<std::uint32_t> nodes;
  for (const auto& task : part.tasks) nodes.insert(task.node);
  return nodes;
}

std::uint32_t most_on_a_node(const Part& part) {
  std::map<std::uint32_t, std::uint32_t> counts;
  std::uint32_t most = 0;
  for (const auto& task : part.tasks) most = std::max(most, ++counts[task.node]);
  return most;
}

bool same_on_each_node(const Part& part) {
  return part.tasks.size() == nodes_of(part).size() * most_on_a_node(part);
}

bool shares_a_rank(const Part& a, const Part& b) {
  return std::ranges::any_of(a.tasks, [&](const auto& task) {
    return std::ranges::find(b.tasks, task.rank, &shell::Task::rank) != b.tasks.end();
  });
}

/// `'''Usage: ...'''`: what a shell looks for, and finds nowhere.
bool is_no_name_of_a_program(const std::string& word) {
  return word.find_first_of(" \t\n'\"") != std::string::npos && !word.starts_with('/') &&
         !word.starts_with("./") && !word.starts_with("../");
}

/// A curl that sends something: it is no wait, and acts once.
bool sends(const shell::Words& argv) {
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const auto& word = argv[i];
    const bool method = word == "-X" || word == "--request";
    if (method && i + 1 < argv.size() && argv[i + 1] != "GET" && argv[i + 1] != "HEAD") return true;
    if (word == "-d" || word == "-F" || word == "-T" || word.starts_with("-XP") ||
        word.starts_with("--data") || word.starts_with("--json") || word.starts_with("--form") ||
        word.starts_with("--post-"))
      return true;
  }
  return false;
}

/// "node:8000" of "http://node:8000/health".
std::string host_of_url(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  return std::string(url.substr(0, url.find_first_of("/?")));
}

/// Of a server on several nodes the first alone answers.
enum class ServerNode { first, other, differs_by_task };
ServerNode node_of_server(const shell::Words& program) {
  if (shell::has(program, "--headless")) return ServerNode::other;
  const auto rank = option_of(program, "--node-rank").value_or("0");
  if (rank.find("${self.") != std::string::npos) return ServerNode::differs_by_task;
  return rank == "0" ? ServerNode::first : ServerNode::other;
}

std::size_t words_of_step(const Part& part) {
  return part.in_step ? shell::words_of_srun(part.step) : 0;
}

class Roles {
 public:
  Roles(const shell::Recording& recording, const shell::Allocation& allocation, Imported& out)
      : recording_(recording), allocation_(allocation), out_(out) {}

  void make() {
    out_.parts = parts_of(recording_, allocation_);
    out_.became.resize(recording_.commands.size());
    sort();
    choose_main();
    order();
    share_gpus();
    give_all_gpus();
    name();
    refuse_shared_gpus();
    for (const auto& kept : kept_) add(kept);
    actors();
    readiness();
    writers();
    stages();
    sizes();
    tell_of_the_others();
  }

 private:
  const Part& part_of(const Kept& kept) const { return out_.parts[kept.part]; }

  static std::vector<std::size_t> all_of(const Part& part) {
    auto all = part.commands;
    all.insert(all.end(), part.inner.begin(), part.inner.end());
    return all;
  }

  void remark(std::uint32_t line, std::string text) {
    out_.remarks[Destination::roles].push_back({line, std::move(text)});
  }

  void sort() {
    for (std::size_t i = 0; i < out_.parts.size(); ++i) {
      auto& part = out_.parts[i];
      const auto work = work_of(part.program);
      if (work.work == Work::nothing || work.work == Work::submission) {
        for (const auto command : all_of(part))
          out_.became[command] = fmt::format("left out: {}", work.reason);
        if (work.work == Work::submission)
          out_.remarks[Destination::walltime].push_back(
              {part.line, fmt::format("{}: {}", text::shell_join(part.argv), work.reason)});
        continue;
      }
      if (is_no_name_of_a_program(part.argv[0])) {
        leave_out_what_is_no_program(part);
        continue;
      }
      if (!has_tasks_before_servers(i)) continue;
      if (i > last_program() && changes_files(part)) {
        for (const auto command : all_of(part)) out_.became[command] = "left out: nothing comes after it";
        remark(part.line, fmt::format("`{}` is not taken over: nothing comes after it",
                                      text::printable(text::shell_join(part.argv))));
        continue;
      }
      ray_ = ray_ || work.work == Work::ray_head;
      kept_.push_back({.part = i, .work = work, .name = ""});
    }
  }

  void leave_out_what_is_no_program(const Part& part) {
    for (const auto command : all_of(part)) out_.became[command] = "left out: no program has such a name";
    const auto name = text::trim(part.argv[0]);
    const auto word = text::printable(name.substr(0, name.find('\n')));
    static const RE2 kErrexit(R"(^set (-o \w+ )*(-[a-zA-Z]*e|-[a-zA-Z]*o errexit))");
    const bool ends = std::ranges::any_of(recording_.traced, [&](const auto& one) {
      return one.script == part.script && one.line < part.line && RE2::PartialMatch(one.text, kErrexit);
    });
    if (ends)
      out_.not_said.push_back(
          {part.line,
           fmt::format("no program has the name `{}`, and the script ends there (`set -e`)", word)});
    else
      remark(part.line, fmt::format("`{}` is not taken over: no program has such a name. It fails, and the "
                                    "script goes on",
                                    word));
  }

  /// The launcher that stands in front of all of a command, and starts the tasks of its step; nothing: the
  /// script itself starts it.
  [[nodiscard]] std::optional<std::size_t> step_of(std::size_t command) const {
    auto step = recording_.commands[command].launcher;
    while (step && recording_.commands[*step].launcher) step = recording_.commands[*step].launcher;
    return step;
  }

  [[nodiscard]] bool in_one_step(const Part& a, const Part& b) const {
    return a.in_step && b.in_step && step_of(a.commands[0]) == step_of(b.commands[0]);
  }

  /// Of one step, and never in the same task: nothing but a wait puts them in order.
  [[nodiscard]] bool side_by_side(const Part& a, const Part& b) const {
    return in_one_step(a, b) && !shares_a_rank(a, b);
  }

  /// A server in the foreground: what stands behind it runs when it has ended, which is when the job is over.
  [[nodiscard]] bool never_ends(const Part& part) const {
    const bool others =
        part.inner.size() > 1 || (!part.inner.empty() && recording_.commands[part.inner[0]].background);
    const bool limited = std::ranges::any_of(
        part.wrapper, [](const auto& word) { return shell::program_name(word) == "timeout"; });
    // Under job control it is not seen what is in the background.
    static const RE2 kJobControl(R"(^set (-o monitor|-[a-zA-Z]*m))");
    const bool jobs = std::ranges::any_of(
        recording_.traced, [](const auto& one) { return RE2::PartialMatch(one.text, kJobControl); });
    if (part.background || others || limited || jobs) return false;
    const auto work = work_of(part.program).work;
    if (work == Work::ray_head || work == Work::ray_worker) return shell::has(part.program, "--block");
    const auto name = shell::program_name(part.program[0]);
    const bool own_script =
        std::ranges::any_of(part.program, [](const auto& word) { return word.ends_with(".py"); });
    const bool other_verb = (name == "lmdeploy" || name == "sglang") && !shell::has(part.program, "serve");
    return work == Work::engine && !own_script && !other_verb;
  }

  /// What a task runs of a part, or the task that stands for it.
  static std::size_t command_of(const Part& part, std::uint32_t rank) {
    for (std::size_t i = 0; i < part.commands.size(); ++i)
      if (part.tasks[part.recorded[i]].rank == rank) return part.commands[i];
    return part.commands.back();
  }

  /// Takes out those tasks of a part that come to it when a server before it has ended.
  bool has_tasks_before_servers(std::size_t index) {
    auto& part = out_.parts[index];
    for (std::size_t i = 0; i < out_.parts.size() && !part.tasks.empty(); ++i) {
      const auto& server = out_.parts[i];
      if (i == index || server.tasks.empty() || !never_ends(server)) continue;
      if (i > index && !in_one_step(part, server)) continue;
      const auto is_behind = [&](const shell::Task& task) {
        return !in_one_step(part, server) ||
               (std::ranges::find(server.tasks, task.rank, &shell::Task::rank) != server.tasks.end() &&
                command_of(server, task.rank) < command_of(part, task.rank));
      };
      if (std::ranges::none_of(part.tasks, is_behind)) continue;
      const bool all = std::ranges::all_of(part.tasks, is_behind);
      remark(
          part.line,
          fmt::format("`{}` is not taken over{}: it stands behind `{}` (line {}), which does not end before "
                      "the job",
                      text::printable(text::shell_join(part.argv)), all ? "" : " on all nodes",
                      text::printable(text::shell_join(server.argv)), server.line));
      part = without_tasks(part, is_behind);
    }
    return !part.tasks.empty();
  }

  template <class IsLeftOut>
  Part without_tasks(const Part& part, const IsLeftOut& is_left_out) {
    Part rest = part;
    rest.commands.clear();
    rest.recorded.clear();
    rest.lines.clear();
    rest.tasks.clear();
    std::vector<std::size_t> places;
    for (const auto& task : part.tasks) {
      places.push_back(rest.tasks.size());
      if (!is_left_out(task)) rest.tasks.push_back(task);
    }
    for (std::size_t i = 0; i < part.commands.size(); ++i) {
      const auto task = part.recorded[i];
      if (is_left_out(part.tasks[task])) {
        out_.became[part.commands[i]] = "left out: a server is before it";
        continue;
      }
      rest.commands.push_back(part.commands[i]);
      rest.recorded.push_back(places[task]);
      rest.lines.push_back(part.lines[i]);
    }
    if (!rest.commands.empty()) return rest;
    for (const auto command : all_of(part)) out_.became[command] = "left out: a server is before it";
    rest = part;
    rest.tasks.clear();
    return rest;
  }

  static bool changes_files(const Part& part) {
    return shell::changes_files(shell::program_name(part.program[0]));
  }

  /// What follows it does something with files alone: it clears up.
  [[nodiscard]] std::size_t last_program() const {
    std::size_t last = 0;
    for (std::size_t i = 0; i < out_.parts.size(); ++i) {
      const auto work = work_of(out_.parts[i].program).work;
      if (work != Work::nothing && work != Work::submission && !changes_files(out_.parts[i])) last = i;
    }
    return last;
  }

  [[nodiscard]] bool any_trains() const {
    return std::ranges::any_of(kept_, [](const auto& kept) { return kept.work.work == Work::training; });
  }

  /// What a job ends with that trains nothing, and has engines beside it on all GPUs of its node.
  [[nodiscard]] bool is_client(const Kept& kept) const {
    return kept.main && kept.gpus == 0 && allocation_.gpus_per_node > 0 && kept.work.work == Work::other &&
           std::ranges::any_of(kept_, [&](const auto& other) {
             return other.work.work == Work::engine && runs_beside(other, kept) && meets(other, kept);
           });
  }

  static bool is_ray(const Kept& kept) {
    return kept.work.work == Work::ray_head || kept.work.work == Work::ray_worker;
  }

  /// The job's main program under Ray, whose GPUs are Ray's.
  [[nodiscard]] bool is_of_ray(const Kept& kept) const { return ray_ && kept.main; }

  /// What the script ends with: its last program in the foreground, or those that it waits for after that.
  void choose_main() {
    std::optional<std::size_t> last;
    for (std::size_t i = 0; i < kept_.size(); ++i)
      if (!part_of(kept_[i]).background && !is_ray(kept_[i])) last = i;
    std::vector<std::size_t> behind;
    for (auto i = last ? *last + 1 : 0; i < kept_.size(); ++i) {
      if (part_of(kept_[i]).background && !is_ray(kept_[i]) && kept_[i].work.work != Work::engine)
        behind.push_back(i);
    }
    const bool any_trains =
        std::ranges::any_of(behind, [&](auto i) { return kept_[i].work.work == Work::training; });
    if (behind.empty()) {
      if (last) ends_with(*last);
    } else {
      for (const auto i : behind)
        kept_[i].main = any_trains ? kept_[i].work.work == Work::training
                                   : part_of(kept_[i]).line == part_of(kept_[behind.back()]).line;
      for (const auto i : behind)
        if (!kept_[i].main)
          remark(part_of(kept_[i]).line,
                 fmt::format("{} ends with the run, and the run with {}: the script may wait for both. "
                             "`ends_run` says which ends it",
                             role_name_of(part_of(kept_[i]).program),
                             role_name_of(part_of(kept_[behind.back()]).program)));
    }
  }

  /// A step ends when all of its tasks have ended: the job ends with the last program of each, but for
  /// servers beside others.
  void ends_with(std::size_t last) {
    kept_[last].main = true;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      const auto& part = part_of(kept_[i]);
      const bool serves = is_ray(kept_[i]) || kept_[i].work.work == Work::engine;
      if (i == last || part.background || serves || !in_one_step(part, part_of(kept_[last]))) continue;
      const auto goes_on = [&](const Kept& other) {
        return in_one_step(part, part_of(other)) && shares_a_rank(part, part_of(other));
      };
      if (std::any_of(kept_.begin() + static_cast<std::ptrdiff_t>(i) + 1, kept_.end(), goes_on)) continue;
      kept_[i].main = true;
      if (kept_[last].work.work == Work::engine) kept_[last].main = false;
    }
    bool is_first = true;
    for (auto& kept : kept_)
      if (kept.main) kept.beside = !std::exchange(is_first, false);
  }

  /// Where nothing trains by its name, it is what the job ends with.
  [[nodiscard]] bool is_in_place_of_training(const Kept& kept) const {
    return kept.main && !kept.beside && !any_trains() && !is_client(kept);
  }

  /// A task of a step has waited for something between two of its commands.
  [[nodiscard]] bool waits_between(std::uint32_t rank, std::size_t begin, std::size_t end) const {
    for (auto i = begin + 1; i < end; ++i) {
      const auto& command = recording_.commands[i];
      if (waits(command) && command.task && command.task->rank == rank) return true;
    }
    return false;
  }

  /// Stages: what begins when something has ended, or is ready, is in a later one. Tasks of one step run side
  /// by side: each has a clock of its own.
  void order() {
    std::uint32_t script = 0;
    std::optional<std::size_t> step;
    std::map<std::uint32_t, std::uint32_t> clocks;  // of a step, by rank
    std::map<std::uint32_t, std::size_t> come_to;   // the last command of each
    std::size_t seen = 0;
    std::uint32_t most = 0;
    bool any = false;
    for (auto& kept : kept_) {
      const auto& part = part_of(kept);
      const auto launcher = part.in_step ? step_of(part.commands[0]) : std::nullopt;
      if (!launcher || launcher != step) {
        for (const auto& [rank, clock] : clocks) script = std::max(script, clock);
        clocks.clear();
        come_to.clear();
        step = launcher;
      }
      for (; seen < part.commands[0]; ++seen) {
        const bool own = step && recording_.commands[seen].task && step_of(seen) == step;
        if (any && !own && waits(recording_.commands[seen])) script = std::max(script, most + 1);
      }
      kept.stage = script;
      if (step) {
        for (std::size_t i = 0; i < part.commands.size(); ++i) {
          const auto rank = part.tasks[part.recorded[i]].rank;
          auto& begin = come_to.try_emplace(rank, *step).first->second;
          auto& clock = clocks.try_emplace(rank, script).first->second;
          if (waits_between(rank, begin, part.commands[i])) {
            kept.waited = true;
            ++clock;
          }
          begin = part.commands[i];
        }
        for (const auto& task : part.tasks)
          kept.stage = std::max(kept.stage, clocks.try_emplace(task.rank, script).first->second);
      }
      const bool blocks = is_ray(kept) && shell::has(part.program, "--block");
      kept.exits = (!part.background || part.first_of_step) && !kept.main && !is_ray(kept) &&
                   kept.work.work != Work::engine;
      const bool goes_on = kept.exits || (is_ray(kept) && !part.background && !blocks);
      if (goes_on) {
        if (!part.in_step) script = kept.stage + 1;
        for (const auto& task : part.tasks) clocks[task.rank] = kept.stage + 1;
      }
      most = std::max(most, kept.stage);
      any = true;
    }
    for (auto& kept : kept_) {
      if (kept.work.work == Work::ray_worker) kept.stage = std::max(kept.stage, stage_of_head() + 1);
    }
    for (auto& kept : kept_) {
      if (!kept.main) continue;
      for (const auto& other : kept_)
        if (!other.main && begins_before(other, kept)) kept.stage = std::max(kept.stage, other.stage + 1);
    }
  }

  /// What the job ends with begins last, but for what runs beside it in its own step: there the clocks say
  /// it. Two servers may be one, on two nodes.
  [[nodiscard]] bool begins_before(const Kept& other, const Kept& main) const {
    if (is_ray(other)) return true;
    if (other.work.work == Work::engine && main.work.work == Work::engine) return false;
    return !side_by_side(part_of(other), part_of(main));
  }

  [[nodiscard]] std::uint32_t stage_of_head() const {
    for (const auto& kept : kept_)
      if (kept.work.work == Work::ray_head) return kept.stage;
    return 0;
  }

  void name() {
    std::set<std::string> names;
    for (auto& kept : kept_) {
      const auto& part = part_of(kept);
      auto wanted = role_name_of(part.program);
      if (kept.work.work == Work::engine) wanted = is_of_ray(kept) ? "server" : "engine";
      if (kept.work.work == Work::ray_head) wanted = "ray-head";
      if (kept.work.work == Work::ray_worker) wanted = "ray-worker";
      const bool trains = kept.work.work == Work::training || is_in_place_of_training(kept);
      if (trains && kept.work.work != Work::engine) wanted = ray_ ? "trainer" : "learner";
      if (wanted.empty()) wanted = "service";
      kept.name = wanted;
      for (unsigned more = 2; !names.insert(kept.name).second; ++more)
        kept.name = fmt::format("{}-{}", wanted, more);
      for (const auto command : all_of(part)) out_.became[command] = kept.name;
    }
  }

  // --- GPUs ---

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
    const auto name = shell::program_name(part.program[0]);
    return kept.exits && (name.starts_with("python") || makes_ranks(part.program));
  }

  void share_gpus() {
    const auto all = allocation_.gpus_per_node;
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      auto& kept = kept_[i];
      const auto& part = part_of(kept);
      if (is_ray(kept) || (ray_ && kept.main)) continue;
      const auto said = said_gpus(part);
      if (said && all > 0)
        kept.gpus = std::min(*said, all);
      else if (said)
        kept.gpus = *said;
      else if (may_use_gpus(kept, part))
        open.push_back(i);
    }
    for (const auto i : open) {
      auto& kept = kept_[i];
      std::uint32_t taken = 0;
      for (const auto node : nodes_of(part_of(kept))) taken = std::max(taken, taken_beside(i, node));
      const auto sharing = static_cast<std::uint32_t>(std::ranges::count_if(open, [&](auto other) {
        return other != i && runs_beside(kept_[other], kept) && meets(kept_[other], kept);
      }));
      kept.gpus = (all - std::min(all, taken)) / (most_on_a_node(part_of(kept)) * (sharing + 1));
    }
  }

  /// What is alone on its nodes sees all of their GPUs in the script, however many it says that it uses: it
  /// may start what takes the others.
  void give_all_gpus() {
    const auto all = allocation_.gpus_per_node;
    for (auto& kept : kept_) {
      const auto& part = part_of(kept);
      const bool alone = std::ranges::none_of(kept_, [&](const Kept& other) {
        return &other != &kept && other.gpus > 0 && runs_beside(kept, other) && meets(kept, other);
      });
      const bool one = most_on_a_node(part) == 1 && kept.work.work != Work::engine;
      if (!ray_ && alone && one && kept.gpus > 0 && kept.gpus < all && !visible_of(part) &&
          !is_given_gpus(part))
        kept.gpus = all;
    }
  }

  /// Its step says which GPUs of the node it has.
  static bool is_given_gpus(const Part& part) {
    if (!part.in_step || shell::program_name(part.step[0]) != "srun") return false;
    const auto options = shell::options_of_srun(part.step);
    return std::ranges::any_of(std::array{"gpus", "gpus-per-task", "gpus-per-node", "gres", "gpu-bind"},
                               [&](const char* name) { return shell::value_of(options, name).has_value(); });
  }

  /// A GPU has one owner in a plan.
  void refuse_shared_gpus() {
    const auto all = allocation_.gpus_per_node;
    for (auto& kept : kept_) {
      auto& part = out_.parts[kept.part];
      const bool learns = !ray_ && is_in_place_of_training(kept);
      const bool needs = learns || kept.work.work == Work::training || kept.work.work == Work::engine;
      const auto visible = visible_of(part);
      if (needs && all > 0 && kept.gpus == 0 && !visible && !(ray_ && kept.main))
        part.problem = "it shares its GPUs with what runs beside it, and a GPU of a plan has one owner";
      for (const auto& other : kept_) {
        if (&other == &kept || !visible || !runs_beside(kept, other) || !meets(kept, other)) continue;
        const auto others = visible_of(part_of(other));
        const bool shared = others && std::ranges::any_of(*others, [&](const auto& gpu) {
                              return !gpu.empty() && std::ranges::find(*visible, gpu) != visible->end();
                            });
        if (shared)
          part.problem = fmt::format(
              "it shares GPUs with {} (CUDA_VISIBLE_DEVICES), and a GPU of a plan has one owner", other.name);
      }
    }
  }

  static std::optional<std::vector<std::string>> visible_of(const Part& part) {
    const auto found = part.changes.find("CUDA_VISIBLE_DEVICES");
    if (found == part.changes.end() || !found->second) return std::nullopt;
    return text::split(*found->second, ',');
  }

  static bool runs_beside(const Kept& a, const Kept& b) {
    const auto until = [](const Kept& kept) { return kept.exits ? kept.stage : UINT32_MAX; };
    return a.stage <= until(b) && b.stage <= until(a);
  }

  [[nodiscard]] bool meets(const Kept& a, const Kept& b) const {
    const auto nodes = nodes_of(part_of(b));
    return std::ranges::any_of(nodes_of(part_of(a)), [&](auto node) { return nodes.contains(node); });
  }

  [[nodiscard]] std::uint32_t taken_beside(std::size_t index, std::uint32_t node) const {
    std::uint32_t taken = 0;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (i == index || !runs_beside(kept_[i], kept_[index])) continue;
      taken += kept_[i].gpus * static_cast<std::uint32_t>(
                                   std::ranges::count(part_of(kept_[i]).tasks, node, &shell::Task::node));
    }
    return taken;
  }

  // --- Roles ---

  void add(const Kept& kept) {
    const auto& part = part_of(kept);
    ImportedRole role;
    role.name = kept.name;
    role.part = kept.part;
    role.line = part.line;
    role.gpus = kept.gpus;
    role.command = with_input(part.argv, part.input ? std::optional(escaped(*part.input)) : std::nullopt);
    role.wrapper = part.wrapper;
    role.kind = kept.work.work == Work::engine && !is_of_ray(kept) ? RoleKind::engine
                : !ray_ && (kept.work.work == Work::training || is_in_place_of_training(kept))
                    ? RoleKind::learner
                    : RoleKind::service;
    if (kept.main && role.kind == RoleKind::service) role.ends_run = true;
    if (!kept.main && role.kind == RoleKind::learner) role.ends_run = false;
    // The script goes on where a program in the background has ended.
    role.may_end =
        role.kind == RoleKind::service && part.background && !kept.exits && !kept.main && !is_ray(kept);
    if (is_of_ray(kept) && kept.work.work == Work::engine && allocation_.gpus_per_node > 0) {
      role.sees_gpus_of_ray = true;
      role.wrapper.insert(role.wrapper.begin(), kWithoutVisible.begin(), kWithoutVisible.end());
      role.remarks.push_back({part.line,
                              "env -u is new: the GPUs are Ray's, and this server refuses an empty "
                              "CUDA_VISIBLE_DEVICES"});
    }
    place(kept, part, role);
    rendezvous(part, role);
    if (kept.exits) role.ready = ImportedReady{.exited = true, .line = 0};
    const bool on_socket =
        std::ranges::any_of(part.program, [](const auto& word) { return word.starts_with("--uds"); });
    const auto server = node_of_server(part.program);
    if (kept.work.work == Work::engine && !on_socket && server != ServerNode::other && is_waited_for(kept)) {
      const auto port = option_of(part.program, "--port");
      const auto host =
          server == ServerNode::first ? "${self.host}" : fmt::format("${{role.{}.0.host}}", kept.name);
      role.ready = ImportedReady{
          .http = fmt::format("http://{}:{}/health", host, port.value_or(default_port(part.program))),
          .timeout = kServerTimeout};
    }
    if (is_ray(kept)) complete_ray(kept, part, role);
    if (!part.problem.empty()) role.remarks.push_back({part.line, part.problem});
    tell_of_gpus(kept, part, role);
    out_.roles.push_back(std::move(role));
  }

  /// Fewer GPUs than the script lets it see.
  void tell_of_gpus(const Kept& kept, const Part& part, const ImportedRole& role) {
    const auto all = allocation_.gpus_per_node;
    const auto sees = role.rendezvous && role.gpus == 1 ? most_on_a_node(part) : role.gpus;
    const bool prepares = kept.exits || !(part.background || kept.main);
    if ((sees == 0 && prepares) || sees >= all || visible_of(part) || is_ray(kept) || role.sees_gpus_of_ray)
      return;
    const bool bound = shell::option(part.step, words_of_step(part), "", "--gpus-per-task").has_value();
    if (!bound)
      out_.remarks[Destination::roles].push_back(
          {part.line,
           fmt::format(
               "{} sees {} of its node's {} GPUs (CUDA_VISIBLE_DEVICES), and all of them in the script",
               role.name, sees, all)});
  }

  /// The script waits for something, a while or a server, before it starts what comes after.
  [[nodiscard]] bool is_waited_for(const Kept& kept) const {
    return std::ranges::any_of(kept_, [&](const auto& other) {
      return other.stage > kept.stage && (other.waited || !side_by_side(part_of(kept), part_of(other)));
    });
  }

  static const char* default_port(const shell::Words& argv) {
    const bool sglang = std::ranges::any_of(argv, [](const auto& word) { return word.contains("sglang"); });
    return sglang ? "30000" : "8000";
  }

  void place(const Kept& kept, const Part& part, ImportedRole& role) const {
    const auto nodes = nodes_of(part);
    const auto each = most_on_a_node(part);
    const auto count = static_cast<std::uint32_t>(part.tasks.size());
    const bool everywhere = nodes.size() == allocation_.nodes && same_on_each_node(part);
    if (everywhere && (allocation_.nodes > 1 || each > 1 || role.gpus > 0)) {
      if (each == 1 && role.gpus == 0 && role.kind != RoleKind::learner)
        role.each_node = true;
      else
        role.per_node = each;
      return;
    }
    if (const auto* other = only_other_node(kept, part); other != nullptr && role.gpus == 0) {
      role.each_node = true;
      role.except = other->name;
      return;
    }
    if (count > 1) role.count = count;
  }

  /// The role on the one node that a part is not on, where it is placed before.
  [[nodiscard]] const Kept* only_other_node(const Kept& kept, const Part& part) const {
    const auto nodes = nodes_of(part);
    if (nodes.size() + 1 != allocation_.nodes || most_on_a_node(part) != 1 || nodes.contains(0))
      return nullptr;
    const Kept* found = nullptr;
    for (const auto& other : kept_) {
      if (&other == &kept) break;
      const auto& its = part_of(other);
      const bool fits = its.tasks.size() == 1 && !nodes.contains(its.tasks[0].node);
      if (fits && (found == nullptr || found->exits)) found = &other;
    }
    return found;
  }

  static void rendezvous(const Part& part, ImportedRole& role) {
    const bool sets =
        std::ranges::any_of(std::array{"MASTER_ADDR", "RANK", "WORLD_SIZE"}, [&](const char* name) {
          const auto found = part.changes.find(name);
          return found != part.changes.end() && found->second;
        });
    // Tasks that see all GPUs of their node pick one by their local rank.
    const bool bound = shell::option(part.step, words_of_step(part), "", "--gpus-per-task") ||
                       shell::option(part.step, words_of_step(part), "", "--gpu-bind");
    const bool picks = role.gpus == 1 && most_on_a_node(part) > 1 && !bound;
    role.rendezvous =
        role.kind == RoleKind::learner && role.gpus > 0 && (makes_ranks(part.program) || sets || picks);
  }

  void complete_ray(const Kept& kept, const Part& part, ImportedRole& role) {
    role.ray = true;
    if (!shell::has(part.program, "--block")) {
      role.command.emplace_back("--block");
      role.remarks.push_back({part.line, "--block is new: nlaunch supervises what it starts"});
    }
    if (kept.work.work == Work::ray_head) {
      role.ready = ImportedReady{.log = "Ray runtime started", .timeout = "3m"};
    } else {
      // The Python that is beside ray has it.
      const auto& ray = part.program[0];
      const auto folder = ray.substr(0, ray.rfind('/') + 1);
      role.ready = ray_is_whole(allocation_.nodes * allocation_.gpus_per_node, escaped(folder) + "python3");
    }
  }

  /// Ray's actors, which the trainer starts.
  void actors() {
    if (!ray_) return;
    for (const auto& kept : kept_) {
      if (!kept.main) continue;
      std::vector<std::string> spawners;
      for (const auto& one : kept_)
        if (is_ray(one)) spawners.push_back(one.name);
      const bool serves = kept.work.work == Work::engine;
      for (auto& role : serves ? ray_engines(allocation_) : ray_actors(part_of(kept).program, allocation_)) {
        role.line = part_of(kept).line;
        role.spawned_by = spawners;
        out_.roles.push_back(std::move(role));
      }
      return;
    }
  }

  // --- Files that the script writes ---

  /// A role before each that is told of such files; what another has written already is not written again.
  void writers() {
    std::vector<std::size_t> order(kept_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](auto i) { return kept_[i].stage; });
    struct Done {
      const Kept* kept;
      const Part* part;
      const PartFile* file;
    };
    std::vector<Done> done;
    for (const auto i : order) {
      auto& part = out_.parts[kept_[i].part];
      // What stands in a file is what was written last.
      const auto is_done = [&](const PartFile& file) {
        const auto last = std::find_if(done.rbegin(), done.rend(),
                                       [&](const auto& one) { return one.file->path == file.path; });
        return last != done.rend() && last->file->text == file.text &&
               (!file.in_task || std::ranges::includes(nodes_of(*last->part), nodes_of(part)));
      };
      if (std::ranges::all_of(part.files, is_done)) continue;
      for (const auto& file : part.files) {
        const auto earlier = std::ranges::find_if(done, [&](const auto& one) {
          return one.file->path == file.path && one.file->text != file.text &&
                 runs_beside(*one.kept, kept_[i]);
        });
        if (earlier != done.end())
          part.problem = fmt::format(
              "it is given {}, which the script writes anew while {}, which was given it "
              "before, may still read it: write two files",
              text::printable(file.path), earlier->kept->name);
        done.push_back({&kept_[i], &part, &file});
      }
      ImportedRole role;
      role.name = free_name("write-files");
      role.writes = kept_[i].part;
      role.line = part.line;
      role.command = command_of_files(part.files);
      role.ready = ImportedReady{.exited = true, .line = 0};
      if (std::ranges::any_of(part.files, &PartFile::in_task)) {
        place(kept_[i], part, role);
        role.per_node = 0;
        role.each_node =
            role.each_node || (nodes_of(part).size() == allocation_.nodes && allocation_.nodes > 1);
        role.count = role.each_node ? 0 : static_cast<std::uint32_t>(nodes_of(part).size());
      }
      role.remarks.push_back(
          {0, fmt::format("what the script itself writes, or makes, for {}", kept_[i].name)});
      preparing_.push_back({kept_[i].stage, Before::writes, role.name});
      out_.roles.push_back(std::move(role));
    }
  }

  [[nodiscard]] std::string free_name(const std::string& wanted) const {
    auto name = wanted;
    for (unsigned more = 2; std::ranges::find(out_.roles, name, &ImportedRole::name) != out_.roles.end();
         ++more)
      name = fmt::format("{}-{}", wanted, more);
    return name;
  }

  // --- What the script waits for ---

  void readiness() {
    for (std::size_t i = 0; i < recording_.commands.size(); ++i) {
      const auto& command = recording_.commands[i];
      if (command.fate != Fate::answered) continue;
      const auto name = shell::program_name(command.argv[0]);
      if (name == "curl" || name == "wget") {
        for (const auto& word : command.argv) asks_by_http(i, word);
      } else if ((name == "nc" || name == "ncat") && command.argv.size() > 2) {
        const auto& host = command.argv[command.argv.size() - 2];
        if (ready_at(i, command.argv.back(), "")) continue;
        is_of_job(host) ? waits_for_nobody(i) : asks_elsewhere(i, host);
      }
    }
  }

  void asks_by_http(std::size_t command, const std::string& word) {
    const auto port = port_of_url(word);
    const auto& asks = recording_.commands[command];
    const bool is_url = port || word.starts_with("http://") || word.starts_with("https://");
    if (!is_url) return;
    if (!is_of_job(word)) return asks_elsewhere(command, host_of_url(word));
    if (sends(asks.argv)) {
      sends_once(command, word);
    } else if (port && !ready_at(command, *port, word)) {
      waits_for_nobody(command);
    }
  }

  /// A question to a server that generates leaves nothing behind; what another request does is not known.
  void sends_once(std::size_t command, const std::string& url) {
    const auto& asks = recording_.commands[command];
    const auto what = fmt::format("this {} sends a request to {} once", shell::program_name(asks.argv[0]),
                                  text::printable(host_of_url(url)));
    if (url.find("/v1/") == std::string::npos && !url.ends_with("/generate"))
      return out_.not_said.push_back(
          {asks.line, what + ", which no role does: let a program of the job send it"});
    out_.became[command] = "left out: it asks once";
    remark(asks.line, what + ": it is not taken over");
  }

  void asks_elsewhere(std::size_t command, const std::string& host) {
    const auto& asks = recording_.commands[command];
    auto text = fmt::format("this {} asks {}, which is no host of the job: it is not taken over",
                            shell::program_name(asks.argv[0]), text::printable(host));
    out_.became[command] = "left out: it asks a host outside of the job";
    auto& notes = out_.remarks[Destination::roles];
    if (std::ranges::find(notes, text, &Remark::text) == notes.end())
      notes.push_back({asks.line, std::move(text)});
  }

  /// "8000" of "http://node:8000/health", and of "localhost:8000/health".
  static std::optional<std::string> port_of_url(std::string_view url) {
    if (url.starts_with("https:") || url.starts_with('-')) return std::nullopt;
    const auto scheme = url.find("://");
    if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
    const auto host = url.substr(0, url.find('/'));
    const auto colon = host.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto port = host.substr(colon + 1);
    return text::whole_number<std::uint16_t>(port) ? std::optional(std::string(port)) : std::nullopt;
  }

  /// Of a host of the job, or of the script's own.
  static bool is_of_job(std::string_view url) {
    constexpr std::array<std::string_view, 5> kHosts{"localhost", "127.0.0.1", "0.0.0.0", "rec-node-",
                                                     "10.77."};
    return std::ranges::any_of(kHosts, [&](auto host) { return url.find(host) != std::string_view::npos; });
  }

  /// What no role is known to answer is asked by a role of its own, before what comes after.
  void waits_for_nobody(std::size_t command) {
    const auto& asks = recording_.commands[command];
    const auto next =
        std::ranges::find_if(kept_, [&](const Kept& kept) { return part_of(kept).commands[0] > command; });
    if (next == kept_.end()) return;  // it holds up nothing
    if (asks.task)
      return out_.not_said.push_back(
          {asks.line, fmt::format("a task of a step waits for an answer to `{}`, where no program that the "
                                  "script starts is known to answer: start that program by a command that "
                                  "names its port (--port N)",
                                  text::printable(text::shell_join(asks.argv)))});
    const auto known = std::ranges::find_if(out_.roles, [&](const auto& role) {
      return role.asks && recording_.commands[*role.asks].argv == asks.argv;
    });
    if (known != out_.roles.end()) return;
    ImportedRole role;
    role.name = free_name("wait");
    role.asks = command;
    role.line = asks.line;
    const bool compares = std::ranges::any_of(
        asks.argv, [](const auto& word) { return word.find("http_code") != std::string::npos; });
    role.command = {
        "bash", "-c",
        compares ? "until \"$@\" | grep -q '200$'; do sleep 5; done" : "until \"$@\"; do sleep 5; done",
        "wait"};
    for (const auto& word : asks.argv) role.command.push_back(escaped(word));
    role.ready = ImportedReady{.exited = true, .line = 0};
    role.remarks.push_back({asks.line, "it waits as the script does, until this ends with 0"});
    out_.became[command] = role.name;
    preparing_.push_back({next->stage, Before::waits, role.name});
    out_.roles.push_back(std::move(role));
  }

  /// Ray's own ports, which its workers' readiness stands for.
  [[nodiscard]] bool is_port_of_ray(const std::string& port) const {
    return std::ranges::any_of(kept_, [&](const auto& kept) {
      return is_ray(kept) && (port == "8265" || port == "6379" || names_port(part_of(kept).program, port));
    });
  }

  /// False: nobody is known to be there.
  bool ready_at(std::size_t command, const std::string& port, const std::string& url) {
    if (is_port_of_ray(port)) return true;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      auto& role = out_.roles[i];
      const auto& part = part_of(kept_[i]);
      const bool beside = part.in_step && step_of(part.commands[0]) == step_of(command);
      const auto server = node_of_server(part.program);
      if ((part.commands[0] > command && !beside) || kept_[i].exits || kept_[i].main || is_ray(kept_[i]) ||
          server == ServerNode::other)
        continue;
      const bool own = role.ready && role.ready->http.contains(":" + port + "/");
      const bool by_default = kept_[i].work.work == Work::engine && !option_of(part.program, "--port") &&
                              port == default_port(part.program);
      if (!own && !by_default && !names_port(part.program, port)) continue;
      const auto path = url.find('/', url.find("://") == std::string::npos ? 0 : url.find("://") + 3);
      const bool is_local =
          url.find("localhost") != std::string::npos || url.find("127.0.0.1") != std::string::npos;
      const auto host = server == ServerNode::differs_by_task ? fmt::format("${{role.{}.0.host}}", role.name)
                        : is_local                            ? "127.0.0.1"
                                                              : "${self.host}";
      const auto* timeout = role.kind == RoleKind::engine ? kServerTimeout : kOtherTimeout;
      role.ready = ImportedReady{.timeout = timeout, .line = recording_.commands[command].line};
      if (url.empty())
        role.ready->tcp = fmt::format("{}:{}", host, port);
      else
        role.ready->http = fmt::format("http://{}:{}{}", host, port,
                                       path == std::string::npos ? "/" : escaped(url.substr(path)));
      out_.became[command] = fmt::format("`ready` of {}", role.name);
      return true;
    }
    return false;
  }

  // --- All of them ---

  void stages() {
    std::map<std::pair<std::uint32_t, Before>, std::vector<std::string>> stages;
    for (const auto& kept : kept_) stages[{kept.stage, Before::nothing}].push_back(kept.name);
    for (const auto& one : preparing_) stages[{one.stage, one.what}].push_back(one.name);
    if (stages.size() < 2) return;
    for (auto& [stage, names] : stages) out_.start.push_back(std::move(names));
  }

  void sizes() {
    out_.gpus = allocation_.gpus_per_node;
    if (out_.gpus > 0) return;
    for (const auto& kept : kept_) out_.gpus = std::max(out_.gpus, kept.gpus * most_on_a_node(part_of(kept)));
    if (out_.gpus > 0)
      out_.remarks[Destination::node].push_back(
          {0, "no directive says how many GPUs a node has: so many are asked for (--gpus says it)"});
  }

  void tell_of_the_others() {
    for (std::size_t i = 0; i < recording_.commands.size(); ++i) {
      const auto& command = recording_.commands[i];
      auto& became = out_.became[i];
      if (!became.empty()) continue;
      const bool starts =
          std::ranges::any_of(recording_.commands, [&](const auto& one) { return one.launcher == i; });
      const auto name = shell::program_name(command.argv[0]);
      if (name == "sbatch" || name == "scancel") {
        const auto reason = work_of(command.argv).reason;
        became = fmt::format("left out: {}", reason);
        if (name == "sbatch")
          out_.remarks[Destination::walltime].push_back(
              {command.line, fmt::format("{}: {}", text::shell_join(command.argv), reason)});
      } else if (command.fate == Fate::answered)
        became = waits(command) ? "waits: `start` and `ready` do" : "only asks";
      else if (command.fate == Fate::launcher)
        became = starts ? "places what follows" : "left out: it starts nothing";
    }
  }

  const shell::Recording& recording_;
  const shell::Allocation& allocation_;
  Imported& out_;
  std::vector<Kept> kept_;
  std::vector<Preparing> preparing_;
  bool ray_ = false;
};

}  // namespace

void import_roles(const shell::Recording& recording, const shell::Allocation& allocation, Imported& out) {
  Roles(recording, allocation, out).make();
}

}  // namespace nlaunch::import
