#pragma once
#include <functional>
#include <string>
#include <vector>

#include "preflight/evidence.h"
#include "sys/spawn.h"

namespace nlaunch::preflight {

struct ProbeStart {
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::string cwd;
  std::vector<unsigned> cpus;
  std::string err;  ///< file for its standard error
};

struct ProbeWork {
  std::vector<ProbeStart> probes;  ///< one for each rank
  Duration to_identify{};  ///< the longest time without a word from any probe before all say who they are
  Duration to_work{};      ///< the same afterwards
  /// Called once, when every rank has said who it is: true lets them go on.
  std::function<bool(const std::vector<RankReport>&)> fit;
  std::function<bool()> cancelled;  ///< may be empty
};

struct ProbeOutcome {
  std::vector<RankReport> reports;
  bool went = false;
  bool cancelled = false;
};

/// Runs the probes side by side and gathers what they say. All have been killed and reaped when it returns;
/// one that SIGKILL does not end within five seconds is given up on, and its report says so.
ProbeOutcome run_probes(const ProbeWork& work);

}  // namespace nlaunch::preflight
