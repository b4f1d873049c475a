#include "import/ray.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "import/programs.h"
#include "import/wrappers.h"

namespace nlaunch::import {
namespace {

constexpr const char* kGpus = "--num-gpus=${self.gpus}";

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

/// What a runtime environment says, into the options; false where somebody has to look at it.
bool read_runtime_env(const std::string& text, RayJobOptions& options) {
  const auto json = parse_json(text);
  if (!json.is_object()) return false;
  std::string others;
  for (const auto& [key, value] : json.items()) {
    if (key != "env_vars" || !value.is_object()) {
      others += fmt::format("{}{}", others.empty() ? "" : ", ", key);
      continue;
    }
    for (const auto& [name, one] : value.items()) {
      if (is_variable_name(name))
        options.variables.emplace_back(name, one.is_string() ? one.get<std::string>() : json_text(one));
    }
  }
  if (!others.empty())
    options.remarks.push_back(fmt::format("of the runtime environment are left out: {}", others));
  return true;
}

}  // namespace

RayJobOptions ray_job_options(const Launch& launch) {
  RayJobOptions found;
  std::string others;
  for (std::size_t i = 3; i < launch.words.size() && launch.words[i].known() != "--"; ++i) {
    const auto text = launch.words[i].known();
    const auto equals = text.find('=');
    const auto option = text.substr(0, equals);
    const bool two = equals == std::string::npos && i + 1 < launch.words.size() &&
                     !launch.words[i + 1].known().starts_with('-');
    const auto value =
        equals == std::string::npos ? (two ? launch.words[++i].known() : "") : text.substr(equals + 1);
    if (option == "--address" || option == "--no-wait") continue;
    const bool whole = launch.words[i].text().has_value();
    if (option == "--runtime-env-json" && whole && read_runtime_env(value, found)) continue;
    others += fmt::format(" {}", option);
  }
  if (!others.empty())
    found.remarks.push_back(fmt::format(
        "of ray job submit{} is left out, with the environment and the folder that it may set: {}", others,
        kThatLine));
  return found;
}

bool is_ray_head(const Launch& launch) {
  return std::ranges::any_of(launch.words, [](const auto& word) { return word.known() == "--head"; });
}

ImportedRole ray_head_role(const Launch& launch, bool gpus) {
  std::vector<std::string> own{"--head", "--node-ip-address=${self.host}", "--port=${self.ports.gcs}"};
  if (gpus) own.emplace_back(kGpus);
  auto role = ray_role(launch, "ray-head", std::move(own));
  if (!gpus)
    role.remarks.push_back({launch.line,
                            "neither a directive nor --num-gpus says how many GPUs a node has: say it in the "
                            "profile (node: gpus), and of each learner below (gpus); then "
                            "--num-gpus=${self.gpus} belongs into this command"});
  role.ports = {"gcs"};
  role.ready = ImportedReady{"", "Ray runtime started", {}, "3m", 0};
  return role;
}

ImportedRole ray_worker_role(const Launch& launch, std::uint32_t gpus) {
  std::vector<std::string> own{"--address=${role.ray-head.addrs}", "--node-ip-address=${self.host}"};
  if (gpus > 0) own.emplace_back(kGpus);
  auto role = ray_role(launch, "ray-worker", std::move(own));
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

}  // namespace nlaunch::import
