#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/source.h"
#include "base/units.h"
#include "base/words.h"

/// The Beaker settings of a profile (`scheduler.beaker`) or an experiment (`beaker`). Both have the same
/// keys; the plan decides which of the two applies.
namespace nlaunch::config {

class Value;  // config/reader.h
using Text = Located<std::string>;

/// A directory of the container, and where Beaker gets it from.
struct BeakerMount {
  Text path;    ///< in the container
  Text kind;    ///< beaker, weka, host, secret, result
  Text source;  ///< its name in Beaker
  std::optional<Text> sub_path;
};

struct Beaker {
  std::optional<Text> workspace, budget, description;
  std::optional<Text> image;  ///< "docker://TAG", else the name of a Beaker image
  std::vector<Text> cluster, hostname;
  std::optional<BeakerPriority> priority;
  std::optional<Located<bool>> preemptible, auto_resume;
  std::optional<Duration> min_runtime, timeout;
  std::optional<Located<Duration>> start_timeout;
  std::vector<BeakerMount> datasets;
  std::vector<std::pair<Text, Text>> secrets;  ///< variable → Beaker's secret
  std::optional<Text> token, nlaunch, workdir, result, memory, shared_memory;
  std::optional<bool> host_networking;
  std::optional<std::uint32_t> port;
};

Beaker read_beaker(const Value& value);

}  // namespace nlaunch::config
