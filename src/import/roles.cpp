#include "import/roles.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/text.h"
#include "config/role.h"
#include "import/job.h"
#include "import/ray.h"
#include "import/work.h"
#include "shell/srun.h"

namespace nlaunch::import {
namespace {

using shell::Fate;

/// `'''Usage: ...'''`: a command that a shell looks up and does not find.
bool is_no_name_of_a_program(const std::string& word) {
  return word.find_first_of(" \t\n'\"") != std::string::npos && !word.starts_with('/') &&
         !word.starts_with("./") && !word.starts_with("../");
}

class Roles {
 public:
  explicit Roles(Job& job) : job_(job) {}

  void make() {
    job_.out.became.resize(job_.recording.commands.size());
    sort();
    choose_main(job_);
    keep_servers(job_);
    order(job_);
    refuse_steps_without_nodes(job_);
    divide_gpus(job_);
    name();
    let_share_gpus(job_);
    tell_of_other_gpus(job_);
    for (const auto& kept : job_.kept) add(kept);
    actors();
    import_readiness(job_);
    import_delays(job_);
    tell_of_added_waits(job_);
    tell_of_lost_delays(job_);
    writers();
    stage_roles(job_);
    sizes();
    tell_of_the_others();
  }

 private:
  void sort() {
    for (std::size_t i = 0; i < job_.out.parts.size(); ++i) {
      auto& part = job_.out.parts[i];
      const auto work = work_of(part.program);
      if (work.work == Work::nothing || work.work == Work::submission) {
        for (const auto command : all_commands_of(part))
          job_.out.became[command] = fmt::format("left out: {}", work.reason);
        if (work.work == Work::submission)
          job_.out.remarks[Destination::walltime].push_back(
              {part.line, fmt::format("{}: {}", text::shell_join(part.argv), work.reason)});
        continue;
      }
      if (is_no_name_of_a_program(part.argv[0])) {
        leave_out_what_is_no_program(part);
        continue;
      }
      if (!keep_tasks_before_servers(job_, i)) continue;
      if (i > last_program() && changes_files(part)) {
        for (const auto command : all_commands_of(part))
          job_.out.became[command] = "left out: nothing comes after it";
        job_.remark(part.line, fmt::format("`{}` is not imported: nothing comes after it",
                                           text::printable(text::shell_join(part.argv))));
        continue;
      }
      job_.ray = job_.ray || work.work == Work::ray_head;
      job_.kept.push_back({.part = i, .work = work, .name = ""});
    }
  }

  void leave_out_what_is_no_program(const Part& part) {
    for (const auto command : all_commands_of(part))
      job_.out.became[command] = "left out: not a program name";
    const auto name = text::trim(part.argv[0]);
    const auto word = text::printable(name.substr(0, name.find('\n')));
    static const RE2 kErrexit(R"(^set (-o \w+ )*(-[a-zA-Z]*e|-[a-zA-Z]*o errexit))");
    const bool ends = std::ranges::any_of(job_.recording.traced, [&](const auto& one) {
      return one.script == part.script && one.line < part.line && RE2::PartialMatch(one.text, kErrexit);
    });
    if (ends)
      job_.out.not_said.push_back(
          {part.line, fmt::format("`{}` is not a program name, so the script exits there (`set -e`)", word)});
    else
      job_.remark(part.line, fmt::format("`{}` is not imported: it is not a program name. It fails, and the "
                                         "script continues",
                                         word));
  }

  /// True if only file operations follow it: they clean up.
  [[nodiscard]] std::size_t last_program() const {
    std::size_t last = 0;
    for (std::size_t i = 0; i < job_.out.parts.size(); ++i) {
      const auto work = work_of(job_.out.parts[i].program).work;
      if (work != Work::nothing && work != Work::submission && !changes_files(job_.out.parts[i])) last = i;
    }
    return last;
  }

  void name() {
    std::set<std::string> names;
    for (auto& kept : job_.kept) {
      const auto& part = job_.part_of(kept);
      auto wanted = role_name_of(part.program);
      if (kept.work.work == Work::engine) wanted = job_.is_of_ray(kept) ? "server" : "engine";
      if (kept.work.work == Work::ray_head) wanted = "ray-head";
      if (kept.work.work == Work::ray_worker) wanted = "ray-worker";
      const bool trains = kept.work.work == Work::training || job_.is_in_place_of_training(kept);
      if (trains && kept.work.work != Work::engine) wanted = job_.ray ? "trainer" : "learner";
      if (wanted.empty()) wanted = "service";
      kept.name = wanted;
      for (unsigned more = 2; !names.insert(kept.name).second; ++more)
        kept.name = fmt::format("{}-{}", wanted, more);
      for (const auto command : all_commands_of(part)) job_.out.became[command] = kept.name;
    }
  }

  // --- Roles ---

  void add(const Kept& kept) {
    const auto& part = job_.part_of(kept);
    ImportedRole role;
    role.name = kept.name;
    role.part = kept.part;
    role.line = part.line;
    role.gpus = kept.gpus;
    for (const auto other : kept.shares_with) role.share_gpus_with.push_back(job_.kept[other].name);
    role.command = with_input(part.argv, part.input);
    const auto& command = job_.recording.commands[part.commands[0]];
    if (!command.has_input && !command.input_from.empty())
      job_.remark(
          part.line,
          fmt::format(
              "in the script, {} inherits its standard input from the enclosing loop or block ({}); "
              "here it has none",
              role.name,
              command.input_from.starts_with("pipe:") ? "a pipe" : text::printable(command.input_from)));
    if (part.may_fail) {
      role.command = going_on(role.command);
      role.remarks.push_back({part.line, "it fails here, and the script continues: so does the run"});
    }
    role.wrapper = part.wrapper;
    role.kind = kept.work.work == Work::engine && !job_.is_of_ray(kept) ? RoleKind::engine
                : !job_.ray && (kept.work.work == Work::training || job_.is_in_place_of_training(kept))
                    ? RoleKind::learner
                    : RoleKind::service;
    if ((kept.main && role.kind == RoleKind::service) || kept.stays) role.ends_run = true;
    if (!kept.main && role.kind == RoleKind::learner) role.ends_run = false;
    // The script continues after a background program has exited.
    role.may_end =
        role.kind == RoleKind::service && part.background && !kept.exits && !kept.main && !is_ray(kept);
    if (job_.is_of_ray(kept) && kept.work.work == Work::engine && job_.allocation.gpus_per_node > 0) {
      role.sees_gpus_of_ray = true;
      role.wrapper.insert(role.wrapper.begin(), kWithoutVisible.begin(), kWithoutVisible.end());
      role.remarks.push_back({part.line,
                              "env -u is added: Ray assigns the GPUs, and this server rejects an "
                              "empty CUDA_VISIBLE_DEVICES"});
    }
    place(kept, part, role);
    rendezvous(part, kept.exits, role);
    if (kept.exits) role.ready = ImportedReady{.exited = true, .line = 0};
    const bool on_socket =
        std::ranges::any_of(part.program, [](const auto& word) { return word.starts_with("--uds"); });
    const auto server = node_of_server(part.program);
    if (kept.work.work == Work::engine && !on_socket && server != ServerNode::other && is_waited_for(kept) &&
        !is_own_script(part.program)) {
      const auto host = server != ServerNode::first     ? fmt::format("${{role.{}.0.host}}", kept.name)
                        : listens_locally(part.program) ? "127.0.0.1"
                                                        : "${self.host}";
      role.ready = ImportedReady{
          .http = fmt::format("http://{}:{}{}", host, port_of_engine(part), health_path(part.program)),
          .timeout = kServerTimeout};
    }
    if (is_ray(kept)) complete_ray(kept, part, role);
    if (!part.problem.empty()) role.remarks.push_back({part.line, part.problem});
    tell_of_gpus(kept, part, role);
    tell_of_order(part, role);
    job_.out.roles.push_back(std::move(role));
  }

  /// `python serve.py`: its port and its paths are its own.
  static bool is_own_script(const shell::Words& program) {
    const auto first = std::find_if(program.begin() + 1, program.end(), [](const auto& word) {
      return !word.starts_with('-') || word == "-m" || word == "-c";
    });
    const auto& script =
        first != program.end() && shell::program_name(program[0]).starts_with("python") ? *first : program[0];
    return script.ends_with(".py") && !script.contains("vllm/entrypoints/") && !script.contains("sglang/");
  }

  /// A remark on CUDA_VISIBLE_DEVICES=3,2,1,0.
  void tell_of_order(const Part& part, const ImportedRole& role) {
    const auto visible = visible_of(part);
    if (!visible || visible->size() < 2) return;
    std::vector<std::uint32_t> gpus;
    for (const auto& one : *visible)
      if (const auto gpu = text::whole_number<std::uint32_t>(one)) gpus.push_back(*gpu);
    if (std::ranges::is_sorted(gpus)) return;
    job_.out.remarks[Destination::roles].push_back(
        {part.line, fmt::format("{} sees its GPUs in the order {} in the script, and in ascending order here",
                                role.name, text::printable(text::join(*visible, ",")))});
  }

  /// A remark if it gets fewer GPUs than the script lets it see.
  void tell_of_gpus(const Kept& kept, const Part& part, const ImportedRole& role) {
    const auto all = job_.where(part).gpus_per_node;
    const auto sees = role.rendezvous && role.gpus == 1 ? most_on_a_node(part) : role.gpus;
    const bool beside_engine = std::ranges::any_of(job_.kept, [&](const Kept& other) {
      return other.work.work == Work::engine && other.gpus > 0 && runs_beside(other, kept);
    });
    const bool prepares =
        (kept.exits || !(part.background || kept.main)) && !(beside_engine && is_python(part));
    if ((sees == 0 && prepares) || sees >= all || visible_of(part) || is_ray(kept) || role.sees_gpus_of_ray)
      return;
    const bool bound = std::ranges::any_of(
        std::array{"--gpus-per-task", "--gpus", "--gpus-per-node", "--gres"}, [&](const char* name) {
          return shell::option(part.step, words_of_step(part), "", name).has_value();
        });
    job_.out.fewer_gpus = job_.out.fewer_gpus || !bound;
    if (bound) return;
    const auto what = fmt::format(
        " sees {} of its node's {} GPUs (CUDA_VISIBLE_DEVICES), but all of them in the script", sees, all);
    auto& remarks = job_.out.remarks[Destination::roles];
    // The programs of a loop are told of together.
    const auto same = std::ranges::find_if(
        remarks, [&](const Remark& one) { return one.line == part.line && one.text.ends_with(what); });
    if (same == remarks.end())
      remarks.push_back({part.line, role.name + what});
    else
      same->text = (same->text.starts_with("each of ") ? "" : "each of ") +
                   same->text.substr(0, same->text.size() - what.size()) + ", " + role.name + what;
  }

  static bool is_python(const Part& part) {
    return shell::program_name(part.program[0]).starts_with("python");
  }

  /// True if the script waits for a time or a server before it starts what follows.
  [[nodiscard]] bool is_waited_for(const Kept& kept) const {
    return std::ranges::any_of(job_.kept, [&](const auto& other) {
      return other.stage > kept.stage &&
             (other.waited || !job_.side_by_side(job_.part_of(kept), job_.part_of(other)));
    });
  }

  void place(const Kept& kept, const Part& part, ImportedRole& role) const {
    const auto nodes = nodes_of(part);
    const auto each = most_on_a_node(part);
    const auto count = static_cast<std::uint32_t>(part.tasks.size());
    const auto there = job_.where(part);
    role.pools = there.pools;
    const bool everywhere = nodes.size() == there.nodes && same_on_each_node(part);
    if (everywhere && (there.nodes > 1 || each > 1 || role.gpus > 0)) {
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

  /// The role on the only node without this part, if it is placed before it.
  [[nodiscard]] const Kept* only_other_node(const Kept& kept, const Part& part) const {
    const auto nodes = nodes_of(part);
    const auto there = job_.where(part);
    if (nodes.size() + 1 != there.nodes || most_on_a_node(part) != 1 || nodes.contains(there.first))
      return nullptr;
    const Kept* found = nullptr;
    for (const auto& other : job_.kept) {
      if (&other == &kept) break;
      const auto& its = job_.part_of(other);
      const bool fits =
          its.tasks.size() == 1 && !nodes.contains(its.tasks[0].node) && job_.where(its).pools == there.pools;
      if (fits && (found == nullptr || found->exits)) found = &other;
    }
    return found;
  }

  static void rendezvous(const Part& part, bool exits, ImportedRole& role) {
    const bool sets =
        std::ranges::any_of(std::array{"MASTER_ADDR", "RANK", "WORLD_SIZE"}, [&](const char* name) {
          const auto found = part.changes.find(name);
          return found != part.changes.end() && found->second;
        });
    // Tasks that see all GPUs of their node pick one by their local rank.
    const auto binding = shell::option(part.step, words_of_step(part), "", "--gpu-bind");
    const bool bound = shell::option(part.step, words_of_step(part), "", "--gpus-per-task") ||
                       (binding && *binding != "none");
    const auto visible = visible_of(part);
    const bool has_its_own =
        role.gpus == 1 && most_on_a_node(part) > 1 && (bound || (visible && visible->size() == 1));
    const bool picks = role.gpus == 1 && most_on_a_node(part) > 1 && !has_its_own;
    if (hands_its_environment_on(part.program, role.gpus) && part.tasks.size() == 1) return;
    const bool makes = makes_ranks(part.program);
    const bool trains = role.kind == RoleKind::learner || (exits && picks);
    role.rendezvous = trains && role.gpus > 0 && (makes || (sets && !has_its_own) || picks) &&
                      !(makes && counts_nodes_itself(part));
  }

  /// The script sets NODE_RANK itself, to another value than nlaunch would.
  static bool counts_nodes_itself(const Part& part) {
    const auto found = part.changes.find("NODE_RANK");
    return part.tasks.size() > 1 && found != part.changes.end() && found->second &&
           *found->second != "${self.index}";
  }

  void complete_ray(const Kept& kept, const Part& part, ImportedRole& role) {
    role.ray = true;
    if (!shell::has(part.program, "--block")) {
      role.command = with_block(std::move(role.command));
      role.remarks.push_back({part.line, "--block is added: nlaunch supervises what it starts"});
    }
    if (kept.work.work == Work::ray_head) {
      role.ready = ImportedReady{.log = "Ray runtime started", .timeout = "3m"};
    } else {
      // The Python next to `ray` has it installed.
      const auto& ray = part.program[0];
      const auto folder = ray.substr(0, ray.rfind('/') + 1);
      const auto [nodes, gpus] = size_of_ray();
      role.ready = ray_is_whole(nodes, gpus, escaped(folder) + "python3");
      // `./env.sh ray start`: what sets its environment.
      const auto start = std::ranges::find(role.command, ray);
      const shell::Words prefix(role.command.begin(), start);
      if (start != role.command.end() && !shell::has(prefix, "-c"))
        role.ready->exec.insert(role.ready->exec.begin(), prefix.begin(), prefix.end());
    }
  }

  struct SizeOfRay {
    std::size_t nodes = 0;
    std::size_t gpus = 0;
  };
  /// What the script starts it with: `--num-gpus`, or else the GPUs that `ray start` sees.
  [[nodiscard]] SizeOfRay size_of_ray() const {
    SizeOfRay size;
    for (const auto& kept : job_.kept) {
      if (!is_ray(kept)) continue;
      const auto& part = job_.part_of(kept);
      const auto visible = visible_of(part);
      const auto seen = visible ? visible->size() : job_.allocation.gpus_per_node;
      const auto said = number_option_of(part.program, "--num-gpus");
      size.nodes += part.tasks.size();
      size.gpus += part.tasks.size() * (said ? *said : other_accelerators(part) ? 0 : seen);
    }
    return size;
  }

  /// `--resources '{"NPU": 8}'`: Ray counts no GPUs there.
  static bool other_accelerators(const Part& part) {
    static const RE2 kOther(R"re("?\b(?:NPU|HPU|TPU)"?\s*:)re");
    return RE2::PartialMatch(option_of(part.program, "--resources").value_or(""), kOther);
  }

  /// Ray's actors, which the trainer starts.
  void actors() {
    if (!job_.ray) return;
    for (const auto& kept : job_.kept) {
      if (!kept.main) continue;
      std::vector<std::string> spawners;
      for (const auto& one : job_.kept)
        if (is_ray(one)) spawners.push_back(one.name);
      const bool serves = kept.work.work == Work::engine;
      for (auto& role :
           serves ? ray_engines(job_.allocation) : ray_actors(job_.part_of(kept).program, job_.allocation)) {
        role.line = job_.part_of(kept).line;
        role.spawned_by = spawners;
        role.pools = pools_with_gpus();
        job_.out.roles.push_back(std::move(role));
      }
      return;
    }
  }

  /// Of a job whose nodes do not all have as many GPUs, those with the most that run a part of Ray.
  [[nodiscard]] std::vector<std::string> pools_with_gpus() const {
    std::vector<std::string> pools;
    const auto& components = job_.allocation.components;
    for (std::size_t i = 0; i < components.size(); ++i) {
      const auto& one = components[i];
      const bool runs = std::ranges::any_of(job_.kept, [&](const Kept& kept) {
        return is_ray(kept) && std::ranges::any_of(nodes_of(job_.part_of(kept)), [&](auto node) {
                 return node >= one.first && node < one.first + one.nodes;
               });
      });
      if (runs && one.gpus_per_node == job_.allocation.gpus_per_node) pools.push_back(job_.out.pools[i].name);
    }
    return pools.size() == components.size() ? std::vector<std::string>() : pools;
  }

  // --- Files that the script writes ---

  /// Adds a role before each one that is given such files; files that another has already written are not
  /// written again.
  void writers() {
    std::vector<std::size_t> order(job_.kept.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](auto i) { return job_.kept[i].stage; });
    struct Done {
      const Kept* kept;
      const Part* part;
      const PartFile* file;
    };
    std::vector<Done> done;
    for (const auto i : order) {
      auto& part = job_.out.parts[job_.kept[i].part];
      // A file contains what was written last.
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
                 runs_beside(*one.kept, job_.kept[i]);
        });
        if (earlier != done.end())
          part.problem = fmt::format(
              "it uses {}, which the script overwrites while {}, which also uses it, may "
              "still read it: write two files",
              text::printable(file.path), earlier->kept->name);
        done.push_back({&job_.kept[i], &part, &file});
      }
      ImportedRole role;
      role.name = job_.free_name("write-files");
      role.writes = job_.kept[i].part;
      role.line = part.line;
      role.command = command_of_files(part.files);
      role.ready = ImportedReady{.exited = true, .line = 0};
      if (std::ranges::any_of(part.files, &PartFile::in_task)) {
        place(job_.kept[i], part, role);
        role.per_node = 0;
        role.each_node =
            role.each_node || (nodes_of(part).size() == job_.where(part).nodes && job_.where(part).nodes > 1);
        role.count = role.each_node ? 0 : static_cast<std::uint32_t>(nodes_of(part).size());
      }
      role.remarks.push_back(
          {0, fmt::format("what the script itself writes or creates for {}", job_.kept[i].name)});
      job_.preparing.push_back({job_.kept[i].stage, Before::writes, role.name});
      job_.out.roles.push_back(std::move(role));
    }
  }

  // --- All of them ---

  void sizes() {
    job_.out.gpus = job_.allocation.gpus_per_node;
    if (job_.out.gpus > 0) return;
    for (const auto& kept : job_.kept)
      job_.out.gpus = std::max(job_.out.gpus, kept.gpus * most_on_a_node(job_.part_of(kept)));
    if (job_.out.gpus > 0)
      job_.out.remarks[Destination::node].push_back(
          {0, "no directive sets the number of GPUs per node: this many are requested (set it with --gpus)"});
  }

  void tell_of_the_others() {
    for (std::size_t i = 0; i < job_.recording.commands.size(); ++i) {
      const auto& command = job_.recording.commands[i];
      auto& became = job_.out.became[i];
      if (!became.empty()) continue;
      const bool starts =
          std::ranges::any_of(job_.recording.commands, [&](const auto& one) { return one.launcher == i; });
      const auto name = shell::program_name(command.argv[0]);
      if (name == "sbatch" || name == "scancel") {
        const auto reason = work_of(command.argv).reason;
        became = fmt::format("left out: {}", reason);
        if (name == "sbatch")
          job_.out.remarks[Destination::walltime].push_back(
              {command.line, fmt::format("{}: {}", text::shell_join(command.argv), reason)});
      } else if (command.fate == Fate::answered)
        became = waits(command) ? "waits: `start` and `ready` do" : "only asks";
      else if (command.fate == Fate::launcher)
        became = starts ? "places what follows" : "left out: it starts nothing";
    }
  }

  Job& job_;
};

}  // namespace

void import_roles(const lint::Script& script, const shell::Recording& recording,
                  const shell::Allocation& allocation, const shell::Allocation& parted, Imported& out) {
  // In the job, a step without --het-group would run in the first component only: these are not the job's.
  out.parts = parts_of(recording, allocation);
  const auto programs = static_cast<std::size_t>(std::ranges::count_if(out.parts, [](const Part& part) {
    const auto work = work_of(part.program).work;
    return work != Work::nothing && work != Work::submission;
  }));
  // A loop that goes on in the background, and was cut, is told as such.
  if (programs > config::kMostRoles && !recording.cut) {
    out.too_many = programs;
    return;
  }
  Job job{script, recording, parted, out};
  Roles(job).make();
}

}  // namespace nlaunch::import
