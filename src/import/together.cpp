#include "import/together.h"
#include "import/kills.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "import/job.h"
#include "import/work.h"
#include "plan/environment.h"
#include "shell/answers.h"

namespace nlaunch::import {
namespace {

/// A role that represents programs of the script, and its place in the plan.
struct Pair {
  const ImportedRole* role;
  const Part* part;
  const plan::Role* planned;
  std::size_t stage = 0;
};

/// True if both run in some stage: one that exits runs only in its own stage.
bool run_at_once(const Pair& a, const Pair& b) {
  const auto last = [](const Pair& one) { return one.planned->ready.exited ? one.stage : SIZE_MAX; };
  return a.stage <= last(b) && b.stage <= last(a);
}

class Together {
 public:
  Together(const Imported& imported, const shell::Recording& recording, const plan::Plan& plan)
      : recording_(recording), plan_(plan) {
    for (const auto& role : imported.roles) {
      const auto planned = std::ranges::find(plan.roles, role.name, &plan::Role::name);
      if (!role.part || planned == plan.roles.end()) continue;
      const auto index = static_cast<std::uint32_t>(planned - plan.roles.begin());
      const auto stage = std::ranges::find_if(
          plan.stages, [&](const auto& roles) { return std::ranges::find(roles, index) != roles.end(); });
      pairs_.push_back({&role, &imported.parts[*role.part], &*planned,
                        static_cast<std::size_t>(stage - plan.stages.begin())});
    }
  }

  std::vector<Difference> find() {
    for (const auto& a : pairs_) {
      for (const auto& b : pairs_)
        if (&a != &b) order(a, b);
      end(a);
      gpus(a);
      for (const auto& b : pairs_)
        if (&a < &b) gpus_of_both(a, b);
    }
    meetings();
    return std::move(found_);
  }

 private:
  void tell(const Part& part, std::string what) { found_.push_back({part.line, std::move(what)}); }

  [[nodiscard]] const shell::RecordedCommand& first_of(const Part& part) const {
    return recording_.commands[part.commands[0]];
  }

  /// The outermost launcher of a program, or the program itself.
  [[nodiscard]] std::size_t started_by_script(std::size_t command) const {
    while (const auto launcher = recording_.commands[command].launcher) command = *launcher;
    return command;
  }

  [[nodiscard]] bool is_waited_for(const Part& part, const Part& next) const {
    return had_ended(recording_, part, next) && !was_ended(recording_, part, next);
  }

  /// Whether a program has exited when another one starts is the same in the script and in the plan.
  void order(const Pair& a, const Pair& b) {
    const bool in_one_step = started_by_script(a.part->commands[0]) == started_by_script(b.part->commands[0]);
    const bool on_files = shell::changes_files(shell::program_name(a.part->program[0]));
    const bool is_before = a.part->commands[0] < b.part->commands[0];
    const bool one_by_one = !a.part->background && !b.part->background;
    const bool in_script = is_before && !a.role->ray &&
                           (one_by_one           ? !in_one_step
                            : a.part->background ? is_waited_for(*a.part, *b.part)
                                                 : had_exited(recording_, *a.part, *b.part));
    const bool in_plan = a.planned->ready.exited && a.stage < b.stage;
    if (in_script && !in_plan && !(on_files && a.part->background))
      tell(*b.part, fmt::format("in the script {} starts after {} has exited; in the plan it does not wait "
                                "for that",
                                b.role->name, a.role->name));
    if (in_plan && !in_script && !in_one_step && !on_files)
      tell(*b.part,
           fmt::format("in the plan {} starts after {} has exited; the script does not wait for that",
                       b.role->name, a.role->name));
  }

  /// The script ends once what runs in the foreground, or is waited for, has exited; so does the run.
  void end(const Pair& a) {
    const bool serves = a.role->kind == RoleKind::engine || a.role->ray || a.planned->ready.exited;
    if (serves) return end_of_server(a);
    if (!recording_.whole() || recording_.waits) return;
    const bool in_script = !a.part->background || is_awaited(recording_, *a.part);
    if (in_script && !a.planned->ends_run)
      tell(*a.part,
           fmt::format("the script ends after {} has exited; the run does not wait for that", a.role->name));
    if (!in_script && a.planned->ends_run && any_is_awaited())
      tell(*a.part,
           fmt::format("the run ends after {} has exited; the script does not wait for that", a.role->name));
  }

  /// A server goes on after the last program in front only if the script waits for it.
  void end_of_server(const Pair& a) {
    const auto in_front = std::ranges::find_if(
        pairs_, [](const Pair& one) { return one.planned->ends_run && !one.part->background; });
    if (a.role->kind != RoleKind::engine || a.role->ray || !a.part->background || in_front == pairs_.end())
      return;
    const bool stays = (holds_at_its_end(recording_) || is_awaited(recording_, *a.part)) &&
                       !stops_others_behind(recording_, *in_front->part);
    if (stays && !a.planned->ends_run)
      tell(*a.part, fmt::format("the script waits for {} at its end; the run does not", a.role->name));
  }

  /// False: it is not known for what the script waits at its end.
  [[nodiscard]] bool any_is_awaited() const {
    return std::ranges::any_of(
        pairs_, [&](const Pair& one) { return !one.part->background || is_awaited(recording_, *one.part); });
  }

  /// A process must have as many GPUs as the script lets it see; tasks that see the same GPUs split them by
  /// rank.
  void gpus(const Pair& a) {
    const auto visible = a.part->changes.find("CUDA_VISIBLE_DEVICES");
    if (visible == a.part->changes.end() || !visible->second || a.role->sees_gpus_of_ray || a.role->ray)
      return;
    const auto& text = *visible->second;
    const std::size_t sees = text.empty() || text == "-1" ? 0 : text::split(text, ',').size();
    const std::size_t sharing = most_on_a_node(*a.part);
    for (const auto& process : plan_.processes) {
      if (&plan_.role_of(process) != a.planned) continue;
      const auto has = process.gpus.size();
      if (has != sees && has * sharing != sees)
        return tell(*a.part, fmt::format("{}: it sees {}, but {} in the script (CUDA_VISIBLE_DEVICES={})",
                                         plan_.name_of(process), text::count(has, "GPU"), sees,
                                         text::printable(text)));
    }
  }

  /// Two programs with GPU numbers in the script must have as many GPUs in common in the plan.
  void gpus_of_both(const Pair& a, const Pair& b) {
    const auto seen_by = [](const Pair& one) -> std::optional<std::vector<std::string>> {
      const auto visible = one.part->changes.find("CUDA_VISIBLE_DEVICES");
      if (visible == one.part->changes.end() || !visible->second || most_on_a_node(*one.part) > 1) return {};
      auto gpus = text::split(*visible->second, ',');
      std::erase_if(gpus, [](const auto& gpu) { return gpu.empty() || gpu == "-1"; });
      return gpus;
    };
    const auto of_a = seen_by(a);
    const auto of_b = seen_by(b);
    if (!of_a || !of_b || !run_at_once(a, b)) return;
    const auto common = [](const auto& one, const auto& other) {
      return std::ranges::count_if(
          one, [&](const auto& gpu) { return std::ranges::find(other, gpu) != other.end(); });
    };
    for (const auto& one : plan_.processes) {
      for (const auto& other : plan_.processes) {
        if (&plan_.role_of(one) != a.planned || &plan_.role_of(other) != b.planned || one.node != other.node)
          continue;
        const auto both = common(one.gpus, other.gpus);
        const auto in_script = common(*of_a, *of_b);
        if (both != in_script)
          return tell(*b.part, fmt::format("{} and {} share {}, but {} in the script (CUDA_VISIBLE_DEVICES)",
                                           plan_.name_of(one), plan_.name_of(other),
                                           text::count(static_cast<std::size_t>(both), "GPU"), in_script));
      }
    }
  }

  /// Roles that run at the same time and share a rendezvous address and port in the script: nlaunch chooses a
  /// port for each rendezvous. A launcher with a rendezvous option ignores these variables.
  void meetings() {
    const auto address_of = [&](const Pair& one) -> std::optional<std::string> {
      if (one.planned->rendezvous != Rendezvous::torch || makes_ranks(one.part->program)) return std::nullopt;
      const auto environment = plan::to_environment(first_of(*one.part).environment);
      const auto host = environment.find("MASTER_ADDR");
      const auto port = environment.find("MASTER_PORT");
      if (host == environment.end() || port == environment.end()) return std::nullopt;
      return host->second + ":" + port->second;
    };
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const auto& a = pairs_[i];
      const auto address = address_of(a);
      for (std::size_t k = i + 1; address && k < pairs_.size(); ++k) {
        const auto& b = pairs_[k];
        if (address == address_of(b) && run_at_once(a, b))
          tell(*b.part, fmt::format("in the script {} and {} use the same rendezvous address {}; in the "
                                    "plan each has its own port",
                                    a.role->name, b.role->name, text::printable(*address)));
      }
    }
  }

  const shell::Recording& recording_;
  const plan::Plan& plan_;
  std::vector<Pair> pairs_;
  std::vector<Difference> found_;
};

}  // namespace

std::vector<Difference> differences_together(const Imported& imported, const shell::Recording& recording,
                                             const plan::Plan& plan) {
  return Together(imported, recording, plan).find();
}

}  // namespace nlaunch::import
