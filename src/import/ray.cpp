#include "import/ray.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/text.h"
#include "import/work.h"

namespace nlaunch::import {
namespace {

ImportedRole actor(std::string name, RoleKind kind, std::uint32_t count, std::uint32_t each,
                   std::string classify) {
  ImportedRole role;
  role.name = std::move(name);
  role.kind = kind;
  role.count = count;
  role.gpus = each;
  role.classify = std::move(classify);
  if (kind == RoleKind::learner) role.ends_run = false;
  return role;
}

/// Learners on the nodes, one after the other: `--num_learners_per_node 1 1`.
std::uint32_t learners_by_node(const shell::Words& trainer) {
  std::uint32_t learners = 0;
  const auto option = std::ranges::find(trainer, "--num_learners_per_node");
  if (option == trainer.end()) return 0;
  for (auto word = option + 1; word != trainer.end(); ++word) {
    const auto number = text::whole_number<std::uint32_t>(*word);
    if (!number) break;
    learners += *number;
  }
  return learners;
}

}  // namespace

ImportedReady ray_is_whole(std::size_t nodes, std::size_t gpus, const std::string& python) {
  const auto program = fmt::format(
      "import ray, sys; ${{self.index}} and sys.exit(); ray.init('auto', log_to_driver=False); sys.exit({})",
      gpus > 0 ? fmt::format("ray.cluster_resources().get('GPU', 0) < {}", gpus)
               : fmt::format("sum(node['Alive'] for node in ray.nodes()) < {}", nodes));
  return {.exec = {python, "-c", program}, .timeout = "15m"};
}

shell::Words with_block(shell::Words command) {
  const auto has = [](std::string_view text) {
    return [text](const auto& word) { return word.contains(text); };
  };
  if (std::ranges::any_of(command, has("--block"))) return command;
  constexpr std::string_view kStart = "ray start";
  const auto text = std::ranges::find_if(command, has(kStart));
  if (text == command.end())
    command.emplace_back("--block");
  else
    text->insert(text->find(kStart) + kStart.size(), " --block");
  return command;
}

std::vector<ImportedRole> ray_actors(const shell::Words& trainer, const shell::Allocation& allocation) {
  std::vector<ImportedRole> actors;
  const auto number = [&](std::string_view name) { return number_option_of(trainer, name).value_or(0); };
  const auto learners = learners_by_node(trainer);
  const auto engines = number("--vllm_num_engines");
  const auto parallel = std::max(1U, number("--vllm_tensor_parallel_size"));
  if (learners > 0) {
    actors.push_back(actor("learner", RoleKind::learner, learners, 1, "ray::PolicyTrainer*"));
    if (learners % allocation.nodes == 0) {
      actors.back().count = 0;
      actors.back().per_node = learners / allocation.nodes;
    }
    if (engines > 0)
      actors.push_back(actor("engine", RoleKind::engine, engines, parallel, "ray::LLMRayActor*"));
    return actors;
  }
  const bool shared =
      std::ranges::any_of(trainer, [](const auto& word) { return word.starts_with("--colocate_all"); });
  const auto gpus = allocation.gpus_per_node;
  if (number("--actor_num_gpus_per_node") > 0 && engines > 0) {
    auto all = engines * parallel;
    for (const auto& [name, option] :
         {std::pair{"learner", "actor"}, {"reference", "ref"}, {"critic", "critic"}, {"reward", "reward"}}) {
      const auto each = number(fmt::format("--{}_num_gpus_per_node", option));
      const auto on = std::max(1U, number(fmt::format("--{}_num_nodes", option)));
      if (each > 0) actors.push_back(actor(name, RoleKind::learner, each * on, 1, ""));
      all += each * on;
    }
    actors.push_back(actor("engine", RoleKind::engine, engines, parallel, ""));
    if (shared)
      for (auto& one : actors | std::views::drop(1)) one.share_gpus_with = {"learner"};
    // If there are not enough GPUs for all, the trainer decides how they share them.
    if (shared || all <= allocation.nodes * gpus) return actors;
    actors.clear();
  }
  actors.push_back(actor("learner", RoleKind::learner, 0, gpus > 0 ? 1 : 0, "ray::*"));
  actors.back().per_node = std::max(1U, gpus);
  actors.back().remarks.push_back(
      {0,
       "the trainer itself decides how many GPUs train and how many generate: here, all of Ray's "
       "GPUs are learners"});
  return actors;
}

std::vector<ImportedRole> ray_engines(const shell::Allocation& allocation) {
  const auto gpus = allocation.gpus_per_node;
  std::vector<ImportedRole> engines{actor("engine", RoleKind::engine, 0, gpus > 0 ? 1 : 0, "ray::*")};
  engines.back().per_node = std::max(1U, gpus);
  return engines;
}

}  // namespace nlaunch::import
