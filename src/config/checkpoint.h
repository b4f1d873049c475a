#pragma once
#include <optional>
#include <vector>

#include "base/source.h"
#include "base/units.h"

/// The `checkpoint` block of an experiment: where the learners save, and how a whole checkpoint looks.
namespace nlaunch::config {

class Value;  // config/reader.h
using Text = Located<std::string>;

struct Checkpoint {
  SourceSpan span;
  std::optional<Text> dir;       ///< each checkpoint is a folder in it
  std::optional<Text> format;    ///< a name of plan::checkpoint_formats(), in place of the next three
  std::optional<Text> folder;    ///< regular expression on the folder's name; its first group is the step
  std::optional<Text> complete;  ///< a file that a complete one has
  std::optional<Text> tracker;   ///< a file of `dir` that has the step of the newest complete one
  std::optional<Text> saved;     ///< regular expression on a learner's line; its first group is the path
  std::optional<Duration> wait;
  std::vector<Text> resume;
};

Checkpoint read_checkpoint(const Value& value);

}  // namespace nlaunch::config
