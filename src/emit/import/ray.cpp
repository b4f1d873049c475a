#include "emit/import/ray.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "emit/import/programs.h"

namespace nlaunch::emit {
namespace {

/// The words of `ray start` that are kept: what nlaunch knows better is left out.
std::vector<std::string> kept_options(const Launch& launch) {
  constexpr std::array<std::string_view, 9> kKnown{
      "--head",     "--block",    "--address",    "--node-ip-address", "--port",
      "--num-gpus", "--temp-dir", "--redis-port", "--resources"};
  constexpr std::array<std::string_view, 5> kFlags{"--head", "--block", "--disable-usage-stats",
                                                   "--no-monitor", "--verbose"};
  std::vector<std::string> kept;
  for (std::size_t i = 2; i < launch.words.size(); ++i) {
    const auto text = launch.words[i].known();
    const auto name = text.substr(0, text.find('='));
    const bool two = text.find('=') == std::string::npos && std::ranges::find(kFlags, name) == kFlags.end();
    const auto* value = two && i + 1 < launch.words.size() ? &launch.words[++i] : nullptr;
    if (std::ranges::find(kKnown, name) != kKnown.end() || launch.words[i].has(Piece::Kind::shell)) continue;
    kept.push_back(value == nullptr ? text : fmt::format("{}={}", text, value->known()));
  }
  return kept;
}

ImportedRole ray_role(const Launch& launch, std::string name, std::vector<std::string> own) {
  ImportedRole role;
  role.name = std::move(name);
  role.line = launch.line;
  for (const auto& word : launch.prefix) role.command.push_back(word.known());
  role.command.insert(role.command.end(), {"ray", "start", "--block"});
  role.command.insert(role.command.end(), own.begin(), own.end());
  for (auto& option : kept_options(launch)) role.command.push_back(std::move(option));
  role.command.emplace_back("--temp-dir=${node.scratch}");
  return role;
}

}  // namespace

bool is_ray_head(const Launch& launch) {
  return std::ranges::any_of(launch.words, [](const auto& word) { return word.known() == "--head"; });
}

ImportedRole ray_head_role(const Launch& launch) {
  auto role = ray_role(
      launch, "ray-head",
      {"--head", "--node-ip-address=${self.host}", "--port=${self.ports.gcs}", "--num-gpus=${self.gpus}"});
  role.ports = {"gcs"};
  role.ready = ImportedReady{"", "Ray runtime started", {}, "3m", 0};
  return role;
}

ImportedRole ray_worker_role(const Launch& launch, std::uint32_t gpus) {
  auto role = ray_role(
      launch, "ray-worker",
      {"--address=${role.ray-head.addrs}", "--node-ip-address=${self.host}", "--num-gpus=${self.gpus}"});
  role.each_node = true;
  role.except = "ray-head";
  const auto program = fmt::format(
      "import ray, sys; ${{self.index}} and sys.exit(); ray.init('${{role.ray-head.addrs}}', "
      "log_to_driver=False); "
      "sys.exit(ray.cluster_resources().get('GPU', 0) < {})",
      gpus);
  role.ready = ImportedReady{"", "", {"python", "-c", program}, "3m", 0};
  return role;
}

std::vector<ImportedRole> ray_actors(const Launch& trainer, std::uint32_t nodes, std::uint32_t gpus) {
  const auto actor = [](std::string name, RoleKind kind, std::uint32_t count, std::uint32_t each,
                        std::string classify) {
    ImportedRole role;
    role.name = std::move(name);
    role.kind = kind;
    role.count = count;
    role.gpus = each;
    role.classify = std::move(classify);
    if (kind == RoleKind::learner) role.ends_run = false;
    return role;
  };
  std::vector<ImportedRole> actors;
  // Learners on the nodes, one after the other: `--num_learners_per_node 1 1`.
  std::uint32_t learners = 0;
  for (std::size_t i = 0; i + 1 < trainer.words.size(); ++i) {
    if (trainer.words[i].known() != "--num_learners_per_node") continue;
    for (auto j = i + 1; j < trainer.words.size() && number_of(trainer.words[j].known()) > 0; ++j)
      learners += number_of(trainer.words[j].known());
  }
  const auto engines = number_of(trainer.option("--vllm_num_engines"));
  const auto parallel = std::max(1U, number_of(trainer.option("--vllm_tensor_parallel_size")));
  if (learners > 0) {
    actors.push_back(actor("learner", RoleKind::learner, learners, 1, "ray::PolicyTrainer*"));
    if (learners % nodes == 0) {
      actors.back().count = 0;
      actors.back().per_node = learners / nodes;
    }
    if (engines > 0)
      actors.push_back(actor("engine", RoleKind::engine, engines, parallel, "ray::LLMRayActor*"));
    return actors;
  }
  const bool shared = std::ranges::any_of(
      trainer.words, [](const auto& word) { return word.known().starts_with("--colocate_all"); });
  const auto per_node = number_of(trainer.option("--actor_num_gpus_per_node"));
  if (per_node > 0 && engines > 0 && !shared) {
    const auto add = [&](const char* name, std::string_view option) {
      const auto each = number_of(trainer.option(fmt::format("--{}_num_gpus_per_node", option)));
      const auto on = std::max(1U, number_of(trainer.option(fmt::format("--{}_num_nodes", option))));
      if (each > 0) actors.push_back(actor(name, RoleKind::learner, each * on, 1, ""));
    };
    add("learner", "actor");
    add("reference", "ref");
    add("critic", "critic");
    add("reward", "reward");
    actors.push_back(actor("engine", RoleKind::engine, engines, parallel, ""));
    return actors;
  }
  actors.push_back(actor("learner", RoleKind::learner, 0, gpus > 0 ? 1 : 0, "ray::*"));
  actors.back().per_node = std::max(1U, gpus);
  actors.back().remarks.push_back({trainer.line,
                                   "how many GPUs learn and how many generate is the trainer's own business: "
                                   "all of Ray's are learners here"});
  return actors;
}

}  // namespace nlaunch::emit
