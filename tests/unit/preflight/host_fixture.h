#pragma once
#include <fstream>
#include <nlohmann/json.hpp>

#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {

/// What nlaunch-probe has said on some machine: tests/unit/preflight/facts/NAME.json.
inline nlohmann::json recorded(const std::string& name) {
  std::ifstream file(NLAUNCH_SOURCE_DIR "/tests/unit/preflight/facts/" + name + ".json");
  return nlohmann::json::parse(file);
}

/// A plan on two nodes of a site with `count` NICs of `kind`.
struct Cluster : Machine {
  explicit Cluster(const std::string& kind, std::uint32_t count = 0) : Machine(1, 0) {
    plan.roles.pop_back();
    plan.experiment = "grpo.yaml";
    plan.sources = {"grpo.yaml"};
    plan.node.count = 2;
    plan.node.nic_kind = kind;
    plan.node.nic_count = count;
  }
  [[nodiscard]] NodeObservations with(const std::string& answer, const nlohmann::json& said) const {
    auto observations = of_node();
    observations.answers[answer] = {said, ""};
    return observations;
  }
  [[nodiscard]] NodeObservations without(const std::string& answer, const std::string& why) const {
    auto observations = of_node();
    observations.answers[answer] = {nullptr, why};
    return observations;
  }
};

}  // namespace nlaunch::preflight
