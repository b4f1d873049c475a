#include "plan/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nlaunch::plan {

const std::vector<CheckpointFormat>& checkpoint_formats() {
  static const std::vector<CheckpointFormat> all{
      // transformers/trainer.py, _save_checkpoint: the state comes after model, optimizer and RNG
      {.name = "transformers", .folder = R"(checkpoint-(\d+))", .complete = "trainer_state.json"},
      // verl/trainer/ppo/ray_trainer.py, _save_checkpoint
      {.name = "verl", .folder = R"(global_step_(\d+))", .tracker = "latest_checkpointed_iteration.txt"},
      // megatron/training/checkpointing.py, get_checkpoint_tracker_filename
      {.name = "megatron", .folder = R"(iter_(\d+))", .tracker = "latest_checkpointed_iteration.txt"},
      // torchtitan/components/checkpoint.py; torch.distributed.checkpoint writes .metadata last
      {.name = "torchtitan", .folder = R"(step-(\d+))", .complete = ".metadata"},
      // prime_rl/trainer/ckpt.py
      {.name = "prime-rl", .folder = R"(step_(\d+))", .complete = "trainer/.metadata"},
      // nemo_rl/utils/checkpoint.py, finalize_checkpoint
      {.name = "nemo-rl", .folder = R"(step_(\d+))", .partial = R"(tmp_step_(\d+))"},
  };
  return all;
}

Checkpoint make_checkpoint(const config::Checkpoint& written, std::string dir,
                           std::vector<std::string> resume, Diagnostics& diagnostics) {
  Checkpoint made;
  const auto text = [](const std::optional<config::Text>& from) { return from ? from->value : ""; };
  made.dir = std::move(dir);
  made.folder = text(written.folder);
  made.complete = text(written.complete);
  made.tracker = text(written.tracker);
  made.saved = text(written.saved);
  made.wait = written.wait.value_or(made.wait);
  made.resume = std::move(resume);
  // The process that waits for it is not on a node of the run.
  constexpr std::string_view kRunFolder = "${run.dir}";
  const auto behind = made.dir.starts_with(kRunFolder) ? kRunFolder.size() : 0;
  if (made.dir.find("${", behind) != std::string::npos)
    diagnostics
        .error("plan.checkpoint", written.dir->span,
               fmt::format("'{}' is not known until a node is assigned", written.dir->value))
        .hint = "write a directory that all nodes share; it can start with ${run.dir}";
  if (!written.format) return made;
  const auto& formats = checkpoint_formats();
  const auto found = std::ranges::find(formats, written.format->value, &CheckpointFormat::name);
  if (found == formats.end()) {
    std::vector<std::string> names;
    for (const auto& format : formats) names.emplace_back(format.name);
    diagnostics
        .error("plan.checkpoint", written.format->span,
               fmt::format("unknown checkpoint format '{}'", written.format->value))
        .hint =
        fmt::format("allowed: {}; or `folder`, with `complete` or `tracker`", text::join(names, ", "));
    return made;
  }
  made.folder = found->folder;
  made.complete = found->complete;
  made.tracker = found->tracker;
  made.partial = found->partial;
  return made;
}

}  // namespace nlaunch::plan
