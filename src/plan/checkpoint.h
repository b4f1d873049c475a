#pragma once
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "config/experiment.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// What a framework's checkpoints look like: a name for `checkpoint.format`. The members are those of
/// Checkpoint.
struct CheckpointFormat {
  std::string_view name;
  std::string_view folder;
  std::string_view complete{};
  std::string_view tracker{};
  std::string_view partial{};
};
const std::vector<CheckpointFormat>& checkpoint_formats();

/// Built from `written`, with `dir` and `resume` resolved by the plan.
Checkpoint make_checkpoint(const config::Checkpoint& written, std::string dir,
                           std::vector<std::string> resume, Diagnostics& diagnostics);

}  // namespace nlaunch::plan
