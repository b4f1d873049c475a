#include "config/checkpoint.h"

#include "config/reader.h"
#include "config/role.h"

namespace nlaunch::config {
namespace {

void check(const Checkpoint& checkpoint, const Value& value) {
  constexpr auto kId = "config.checkpoint";
  const auto complain = [&](const SourceSpan& span, std::string message, std::string hint) {
    value.problems().error(kId, span, std::move(message)).hint = std::move(hint);
  };
  if (!checkpoint.dir && !checkpoint.saved)
    complain(value.key_span(), "'checkpoint' does not specify where checkpoints are saved",
             "write {dir: DIR, format: transformers}, or saved: 'saved checkpoint (\\S+)'");
  const bool looks = checkpoint.format || checkpoint.folder;
  if (checkpoint.dir && !looks)
    complain(checkpoint.dir->span, "'checkpoint.dir' needs `format` or `folder` to recognize a checkpoint",
             "write format: transformers, or folder: 'step_(\\d+)'");
  if (checkpoint.format && checkpoint.folder)
    complain(checkpoint.folder->span, "'checkpoint' has both `format` and `folder`", "keep one of them");
  for (const auto* file : {&checkpoint.complete, &checkpoint.tracker}) {
    if (!*file) continue;
    if (!checkpoint.folder)
      complain((*file)->span, "'checkpoint.complete' and 'checkpoint.tracker' need `folder`",
               "`format` already defines what a complete checkpoint looks like");
    else if ((*file)->value.starts_with('/') || (*file)->value.contains(".."))
      complain((*file)->span, fmt::format("'{}' is outside the checkpoint directory", (*file)->value),
               "write a relative path: complete: trainer_state.json");
  }
  if (checkpoint.complete && checkpoint.tracker)
    complain(checkpoint.tracker->span, "'checkpoint' has both `complete` and `tracker`", "keep one of them");
  if (looks && !checkpoint.dir)
    complain((checkpoint.format ? checkpoint.format : checkpoint.folder)->span,
             "'checkpoint' needs `dir`, the directory that contains the checkpoints", "write dir: DIR");
}

}  // namespace

Checkpoint read_checkpoint(const Value& value) {
  Checkpoint checkpoint;
  checkpoint.span = value.span();
  Keys keys(value);
  keys.read("dir", checkpoint.dir);
  keys.read("format", checkpoint.format);
  keys.read("folder", checkpoint.folder);
  keys.read("complete", checkpoint.complete);
  keys.read("tracker", checkpoint.tracker);
  keys.read("saved", checkpoint.saved);
  keys.read("wait", checkpoint.wait);
  keys.list("resume", checkpoint.resume);
  if (checkpoint.folder) check_number_regex(*checkpoint.folder, value.problems(), "'step_(\\d+)'");
  if (checkpoint.saved) check_path_regex(*checkpoint.saved, value.problems());
  if (value.is(Node::Kind::map)) check(checkpoint, value);
  keys.finish();
  return checkpoint;
}

}  // namespace nlaunch::config
