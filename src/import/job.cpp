#include "import/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/text.h"
#include "lint/programs.h"
#include "shell/answers.h"
#include "shell/srun.h"

namespace nlaunch::import {

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

std::size_t words_of_step(const Part& part) {
  return part.in_step ? shell::words_of_srun(part.step) : 0;
}

std::vector<std::size_t> all_commands_of(const Part& part) {
  auto all = part.commands;
  all.insert(all.end(), part.inner.begin(), part.inner.end());
  return all;
}

bool changes_files(const Part& part) {
  return shell::changes_files(shell::program_name(part.program[0]));
}

bool waits(const shell::RecordedCommand& command) {
  constexpr std::array<std::string_view, 7> kNames{"sleep", "curl", "wget", "nc", "ncat", "ray", "squeue"};
  return command.fate == shell::Fate::answered &&
         (command.argv[0].starts_with(shell::kConnection) || shell::waits_forever(command.argv) ||
          std::ranges::find(kNames, shell::program_name(command.argv[0])) != kNames.end());
}

ServerNode node_of_server(const shell::Words& program) {
  if (shell::has(program, "--headless")) return ServerNode::other;
  const auto rank = option_of(program, "--node-rank").value_or("0");
  if (rank.find("${self.") != std::string::npos) return ServerNode::differs_by_task;
  return rank == "0" ? ServerNode::first : ServerNode::other;
}

std::string port_of_engine(const Part& part) {
  lint::Program program{.words = part.program};
  for (const auto& [name, value] : part.changes)
    if (value) program.environment.emplace(name, *value);
  return lint::port_of_server(program).port;
}

bool listens_locally(const shell::Words& program) {
  const auto name = shell::program_name(program[0]);
  const bool local = name == "ollama" || name == "llama-server" ||
                     std::ranges::any_of(program, [](const auto& word) { return word.contains("sglang"); });
  return local && !option_of(program, "--host");
}

const char* health_path(const shell::Words& program) {
  return shell::program_name(program[0]) == "ollama" ? "/" : "/health";
}

bool is_ray(const Kept& kept) {
  return kept.work.work == Work::ray_head || kept.work.work == Work::ray_worker;
}

bool runs_beside(const Kept& a, const Kept& b) {
  const auto until = [](const Kept& kept) { return kept.exits ? kept.stage : UINT32_MAX; };
  return a.stage <= until(b) && b.stage <= until(a);
}

std::optional<std::vector<std::string>> visible_of(const Part& part) {
  const auto found = part.changes.find("CUDA_VISIBLE_DEVICES");
  if (found == part.changes.end() || !found->second) return std::nullopt;
  return text::split(*found->second, ',');
}

Where Job::where(const Part& part) const {
  const auto& components = allocation.components;
  if (components.empty()) return {{}, allocation.nodes, 0, allocation.gpus_per_node};
  Where where{{}, 0, 0, UINT32_MAX};
  for (std::size_t i = 0; i < components.size(); ++i) {
    const auto& one = components[i];
    const bool here = std::ranges::any_of(part.tasks, [&](const auto& task) {
      return task.node >= one.first && task.node < one.first + one.nodes;
    });
    if (!here) continue;
    if (where.pools.empty()) where.first = one.first;
    where.pools.push_back(out.pools[i].name);
    where.nodes += one.nodes;
    where.gpus_per_node = std::min(where.gpus_per_node, one.gpus_per_node);
  }
  if (where.pools.size() == components.size()) where.pools.clear();
  return where;
}

/// The outermost launcher of a command, which starts the tasks of its step; nullopt if the script itself
/// starts it.
std::optional<std::size_t> Job::step_of(std::size_t command) const {
  auto step = recording.commands[command].launcher;
  while (step && recording.commands[*step].launcher) step = recording.commands[*step].launcher;
  return step;
}

bool Job::in_one_step(const Part& a, const Part& b) const {
  return a.in_step && b.in_step && step_of(a.commands[0]) == step_of(b.commands[0]);
}

bool Job::side_by_side(const Part& a, const Part& b) const {
  return in_one_step(a, b) && !shares_a_rank(a, b);
}

bool Job::meets(const Kept& a, const Kept& b) const {
  const auto nodes = nodes_of(part_of(b));
  return std::ranges::any_of(nodes_of(part_of(a)), [&](auto node) { return nodes.contains(node); });
}

bool Job::is_of_ray(const Kept& one) const {
  if (!ray || one.main) return ray;
  const auto& part = part_of(one);
  // A driver behind which the script starts something else.
  const bool drives =
      one.work.work == Work::training && !part.background && !part.program.empty() &&
      !lint::launcher_of({.words = part.program}) &&
      std::ranges::any_of(kept, [&](const auto& other) { return is_ray(other) && runs_beside(other, one); });
  if (drives) return true;
  const auto gpus = gpus_said_by(part.program, 1).value_or(0);
  return one.work.work == Work::engine &&
         (gpus > where(part).gpus_per_node ||
          option_of(part.program, "--distributed-executor-backend") == "ray");
}

bool Job::any_trains() const {
  return std::ranges::any_of(kept, [](const auto& one) { return one.work.work == Work::training; });
}

bool Job::is_client(const Kept& one) const {
  return one.main && one.gpus == 0 && where(part_of(one)).gpus_per_node > 0 && one.work.work == Work::other &&
         std::ranges::any_of(kept, [&](const auto& other) {
           return other.work.work == Work::engine && runs_beside(other, one) && meets(other, one);
         });
}

bool Job::is_in_place_of_training(const Kept& one) const {
  return one.main && !one.beside && !any_trains() && !is_client(one);
}

std::string Job::free_name(const std::string& wanted) const {
  auto name = wanted;
  for (unsigned more = 2; std::ranges::find(out.roles, name, &ImportedRole::name) != out.roles.end(); ++more)
    name = fmt::format("{}-{}", wanted, more);
  return name;
}

void Job::remark(std::uint32_t line, std::string text) {
  out.remarks[Destination::roles].push_back({line, std::move(text)});
}

bool ends_before_others(const Job& job, std::size_t index) {
  return std::any_of(job.kept.begin() + static_cast<std::ptrdiff_t>(index) + 1, job.kept.end(),
                     [&](const Kept& other) {
                       const auto& part = job.part_of(job.kept[index]);
                       return had_ended(job.recording, part, job.part_of(other)) &&
                              !was_ended(job.recording, part, job.part_of(other));
                     });
}

}  // namespace nlaunch::import
