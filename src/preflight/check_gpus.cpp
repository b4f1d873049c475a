#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "preflight/checks.h"
#include "preflight/gpu_state.h"

namespace nlaunch::preflight {
namespace {

/// What stands for the rank's GPU in CUDA_VISIBLE_DEVICES; without the variable, its number.
std::string token_of(const NodeObservations& observations, const Rank& rank) {
  const auto visible = observations.variable(rank, "CUDA_VISIBLE_DEVICES");
  if (!visible) return fmt::format("{}", rank.device);
  const auto tokens = text::split(*visible, ',');
  const auto index = static_cast<std::size_t>(rank.device);
  return index < tokens.size() ? std::string(text::trim(tokens[index])) : std::string();
}

const GpuFact* find_gpu(const NodeObservations& observations, const std::string& token) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  if (error == std::errc() && end == token.data() + token.size()) {
    return index < observations.machine.gpus.size() ? &observations.machine.gpus[index] : nullptr;
  }
  const auto found = std::ranges::find_if(observations.machine.gpus, [&](const GpuFact& gpu) {
    return !token.empty() && gpu.uuid.starts_with(token);
  });
  return found == observations.machine.gpus.end() ? nullptr : &*found;
}

Row given_twice(const Rank& first, const Rank& second, const std::string& token, const GpuFact* gpu) {
  const auto where = gpu == nullptr ? std::string() : fmt::format(" ({}, {})", gpu->bus_id, gpu->uuid);
  return failed("gpus", second.subject,
                fmt::format("{} and {} were given one GPU: '{}' of CUDA_VISIBLE_DEVICES{}", first.subject,
                            second.subject, token, where),
                "a GPU for each rank",
                {"do not set CUDA_VISIBLE_DEVICES in an env: block; nlaunch gives each process its GPUs"});
}

Row judge_rank(const NodeObservations& observations, std::size_t index) {
  const auto& rank = observations.ranks[index];
  const auto token = token_of(observations, rank);
  if (token.empty()) {
    return failed("gpus", rank.subject,
                  fmt::format("its CUDA_VISIBLE_DEVICES has no entry {}: '{}'", rank.device,
                              observations.variable(rank, "CUDA_VISIBLE_DEVICES").value_or("")),
                  "an entry for each GPU of the process",
                  {"do not set CUDA_VISIBLE_DEVICES in an env: block; nlaunch gives each process its GPUs"});
  }
  const auto* gpu = find_gpu(observations, token);
  for (std::size_t earlier = 0; earlier < index; ++earlier) {
    const auto& other = observations.ranks[earlier];
    if (other.device >= 0 && token_of(observations, other) == token)
      return given_twice(other, rank, token, gpu);
  }
  if (gpu == nullptr) {
    return unknown("gpus", rank.subject,
                   fmt::format("NVML does not show the GPU that '{}' stands for", token));
  }
  return passed("gpus", rank.subject, fmt::format("{} {} {}", gpu->name, gpu->bus_id, gpu->uuid));
}

void judge_bus_ids(const NodeObservations& observations, std::vector<Row>& rows) {
  std::vector<std::string> absent;
  for (const auto& wanted : observations.plan.expected.bus_ids) {
    const bool there = std::ranges::any_of(observations.machine.gpus,
                                           [&](const GpuFact& gpu) { return same_bus(wanted, gpu.bus_id); });
    if (!there) absent.push_back(wanted);
  }
  if (observations.plan.expected.bus_ids.empty()) return;
  const auto wanted = text::join(observations.plan.expected.bus_ids, ", ");
  if (absent.empty()) {
    rows.push_back(passed("gpus", "bus ids", fmt::format("all of the site's {} are there", wanted)));
  } else {
    rows.push_back(failed("gpus", "bus ids", fmt::format("no GPU at {}", text::join(absent, ", ")), wanted,
                          {"report the node: a GPU is missing", Responsible::admin}));
  }
}

}  // namespace

std::vector<Row> check_gpus(const NodeObservations& observations) {
  if (!observations.has_gpus()) {
    // A driver that fails is no machine without GPUs: the plan would have had them.
    const auto& machine = observations.machine;
    const bool broken = observations.plan.node.cpu_slots && !machine.nvml_error.empty() && !machine.no_driver;
    if (broken) return {unknown("gpus", "NVML", machine.nvml_error)};
    return {skipped("gpus", "this machine", "no GPUs: the plan counts CPU slots")};
  }
  if (!observations.machine.nvml_error.empty())
    return {unknown("gpus", "NVML", observations.machine.nvml_error)};
  std::vector<Row> rows;
  judge_bus_ids(observations, rows);
  for (std::size_t i = 0; i < observations.ranks.size(); ++i) {
    if (observations.ranks[i].device >= 0) rows.push_back(judge_rank(observations, i));
  }
  return rows;
}

}  // namespace nlaunch::preflight
