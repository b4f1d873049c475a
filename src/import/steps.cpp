#include "import/steps.h"

#include <algorithm>

#include "import/programs.h"

namespace nlaunch::import {

std::uint32_t nodes_of(const Launch& launch, const JobSize& job) {
  auto nodes = job.nodes;
  if (!launch.step) return nodes;
  std::uint32_t tasks = 0;
  bool said = false;
  for (const auto& [name, value] : launch.options) {
    if (name == "nodes" && number_of(value) > 0) {
      nodes = std::min(nodes, number_of(value));
      said = true;
    }
    if (name == "ntasks") tasks = number_of(value);
    if (name == "nodelist" && value.find_first_of(",[") == std::string::npos && !said) nodes = 1;
  }
  return !said && tasks > 0 ? std::min(nodes, tasks) : nodes;
}

std::uint32_t tasks_of(const Launch& launch, const JobSize& job) {
  if (!launch.step) return 1;
  auto tasks = job.tasks;
  for (const auto& [name, value] : launch.options) {
    if (name == "ntasks-per-node") tasks = number_of(value);
    if (name == "ntasks" && number_of(value) > 0)
      tasks = std::max(1U, number_of(value) / std::max(1U, nodes_of(launch, job)));
  }
  return tasks;
}

bool on_every_node(const Launch& launch, const JobSize& job) {
  if (!launch.step || job.nodes < 2) return false;
  std::uint32_t nodes = job.nodes;
  for (const auto& [name, value] : launch.options) {
    if (name == "nodes" || name == "ntasks") nodes = number_of(value);
    if (name == "nodelist") return false;
  }
  return nodes >= job.nodes;
}

}  // namespace nlaunch::import
