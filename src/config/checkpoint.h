#pragma once
#include <optional>
#include <vector>

#include "base/source.h"
#include "base/units.h"

/// The `checkpoint` block of an experiment: where the learners save, and how to recognize a complete
/// checkpoint.
namespace nlaunch::config {

class Value;  // config/reader.h
using Text = Located<std::string>;

struct Checkpoint {
  SourceSpan span;
  std::optional<Text> dir;       ///< contains one directory per checkpoint
  std::optional<Text> format;    ///< a name of plan::checkpoint_formats(), instead of the next three
  std::optional<Text> folder;    ///< regular expression for the directory's name; its first group is the step
  std::optional<Text> complete;  ///< a file that exists in a complete checkpoint
  std::optional<Text> tracker;   ///< a file in `dir` with the step of the newest complete checkpoint
  std::optional<Text> saved;  ///< regular expression for a learner's output line; its first group is the path
  std::optional<Duration> wait;
  std::vector<Text> resume;
};

Checkpoint read_checkpoint(const Value& value);

}  // namespace nlaunch::config
