#pragma once
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "config/experiment.h"
#include "config/site.h"
#include "plan/build.h"
#include "plan/plan.h"
#include "plan/references.h"

/// The layers of a role's environment, as operations.
namespace nlaunch::plan {

/// `--env [ROLE:]NAME=VALUE`, parsed.
struct EnvOption {
  std::string role;  ///< empty: all
  config::Text name;
  config::Text value;
  std::string origin;
};

class EnvBuilder {
 public:
  /// Looks up and checks overlays and `--env` options; errors go to `diagnostics`.
  EnvBuilder(const config::Experiment& experiment, const config::Site& site, const PlanNames& names,
             const PlanOptions& options, Diagnostics& diagnostics);

  /// All operations on the environment of a role, lowest layer first. `venv`: absolute, or empty.
  [[nodiscard]] std::vector<EnvOp> operations(const config::Role& role, const std::string& venv,
                                              Diagnostics& diagnostics) const;

 private:
  void add(std::vector<EnvOp>& into, const config::EnvBlock& block, Layer layer, const config::Role& role,
           Diagnostics& diagnostics) const;
  /// What vLLM and its clients need to know, unless it is set.
  void add_vllm(std::vector<EnvOp>& operations, const config::Role& role) const;
  void choose_overlays(const std::vector<std::string>& with, Diagnostics& diagnostics);
  void parse_options(const std::vector<std::string>& options, Diagnostics& diagnostics);

  const config::Experiment& experiment_;
  const config::Site& site_;
  const PlanNames& names_;
  std::vector<const config::Overlay*> overlays_;
  std::vector<EnvOption> options_;
};

}  // namespace nlaunch::plan
