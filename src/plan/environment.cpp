#include "plan/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace nlaunch::plan {
namespace {

// Frameworks would treat the agent's own values as theirs, and leftovers of a login shell as settings.
constexpr std::array<std::string_view, 15> kOwnedPrefixes{
    "NCCL_",  "FI_",    "OFI_NCCL_", "TORCH_NCCL_", "TORCHELASTIC_", "GLOO_",       "VLLM_",       "MASTER_",
    "LOCAL_", "GROUP_", "PMI",       "PMIX",        "SLURM_NTASKS",  "SLURM_STEP_", "NLAUNCH_ROLE"};
constexpr std::array<std::string_view, 11> kOwnedNames{
    "LD_PRELOAD",        "CUDA_VISIBLE_DEVICES", "RANK",          "WORLD_SIZE",
    "RAY_ADDRESS",       "SLURM_PROCID",         "SLURM_LOCALID", "SLURM_NODEID",
    "CUDA_DEVICE_ORDER", "NLAUNCH_TOKEN",        "NLAUNCH_PLAN"};

Applicability no(std::string why) {
  return {Applicability::Answer::no, std::move(why)};
}

std::string joined(const std::string& front, const std::string& back) {
  if (front.empty() || back.empty()) return front + back;
  return front + ":" + back;
}

void perform(Environment& environment, const EnvOp& op) {
  const auto found = environment.find(op.name);
  const auto old = found == environment.end() ? std::string() : found->second;
  switch (op.kind) {
    case EnvOp::Kind::set:
      environment[op.name] = op.value;
      return;
    case EnvOp::Kind::unset:
      environment.erase(op.name);
      return;
    case EnvOp::Kind::prepend:
      environment[op.name] = joined(op.value, old);
      return;
    case EnvOp::Kind::append:
      environment[op.name] = joined(old, op.value);
      return;
    case EnvOp::Kind::fallback:
      environment.try_emplace(op.name, op.value);
      return;
  }
}

}  // namespace

Applicability applies(const Condition& condition, const ConditionFacts& facts) {
  if (condition.nodes && !condition.nodes->contains({{facts.nodes}})) {
    return no(fmt::format("nodes is {}, not {}", facts.nodes, condition.nodes->str()));
  }
  if (!condition.gpu.empty() && !text::glob_match(condition.gpu, facts.gpu)) {
    return no(fmt::format("gpu is '{}', not '{}'", facts.gpu, condition.gpu));
  }
  if (!condition.arch.empty() && !text::glob_match(condition.arch, facts.arch)) {
    return no(fmt::format("arch is '{}', not '{}'", facts.arch, condition.arch));
  }
  if (condition.kind && *condition.kind != facts.kind) {
    return no(fmt::format("kind is {}, not {}", name_of(facts.kind), name_of(*condition.kind)));
  }
  for (const auto& [library, range] : condition.library) {
    const auto known = facts.library_versions.find(library);
    const auto version =
        known == facts.library_versions.end() ? std::unexpected(std::string()) : parse_version(known->second);
    if (!version) {
      return {Applicability::Answer::unknown,
              fmt::format("the version of library '{}' is not known here", library)};
    }
    if (!range.contains(*version)) {
      return no(fmt::format("{} is {}, not {}", library, version->str(), range.str()));
    }
  }
  return {};
}

Environment apply(Environment environment, std::span<const EnvOp> operations, const ConditionFacts& facts) {
  for (const auto& op : operations) {
    if (applies(op.when, facts).answer == Applicability::Answer::yes) perform(environment, op);
  }
  return environment;
}

std::vector<Step> explain(const std::string& name, const Environment& inherited,
                          std::span<const EnvOp> operations, const ConditionFacts& facts) {
  Environment current;
  if (const auto found = inherited.find(name); found != inherited.end()) current.insert(*found);
  const auto value = [&]() -> std::optional<std::string> {
    const auto found = current.find(name);
    return found == current.end() ? std::nullopt : std::optional(found->second);
  };
  std::vector<Step> steps;
  if (const auto start = value()) {
    steps.push_back(
        {{EnvOp::Kind::set, name, *start, Layer::inherited, "the caller's environment", {}}, {}, start});
  }
  for (const auto& op : operations) {
    if (op.name != name) continue;
    auto applied = applies(op.when, facts);
    if (op.kind == EnvOp::Kind::fallback && value()) applied = no("it is already set");
    if (applied.answer == Applicability::Answer::yes) perform(current, op);
    steps.push_back({op, std::move(applied), value()});
  }
  return steps;
}

Inherited inherit(const std::vector<std::string>& environment) {
  Inherited result;
  for (auto& [name, value] : to_environment(environment)) {
    if (owned_by_launcher(name)) {
      result.dropped.push_back(name);
    } else {
      result.kept.emplace(name, value);
    }
  }
  return result;
}

bool owned_by_launcher(std::string_view name) {
  return !owned_family(name).empty();
}

std::string owned_family(std::string_view name) {
  if (std::ranges::find(kOwnedNames, name) != kOwnedNames.end()) return std::string(name);
  const auto prefix =
      std::ranges::find_if(kOwnedPrefixes, [&](std::string_view one) { return name.starts_with(one); });
  return prefix == kOwnedPrefixes.end() ? "" : std::string(*prefix) + "*";
}

std::vector<EnvOp> difference(const Environment& before, const Environment& after, Layer layer,
                              const std::string& origin) {
  std::vector<EnvOp> operations;
  for (const auto& [name, value] : after) {
    const auto old = before.find(name);
    if (old == before.end() || old->second != value) {
      operations.push_back({EnvOp::Kind::set, name, value, layer, origin, {}});
    }
  }
  for (const auto& [name, value] : before) {
    if (!after.contains(name)) operations.push_back({EnvOp::Kind::unset, name, {}, layer, origin, {}});
  }
  return operations;
}

Environment to_environment(const std::vector<std::string>& entries) {
  Environment environment;
  for (const auto& entry : entries) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

std::vector<std::string> to_entries(const Environment& environment) {
  std::vector<std::string> entries;
  entries.reserve(environment.size());
  for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
  return entries;
}

}  // namespace nlaunch::plan
