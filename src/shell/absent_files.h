#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "shell/guarded.h"
#include "shell/notes.h"
#include "shell/places.h"
#include "shell/recorder.h"
#include "shell/scratch_layer.h"
#include "shell/stand_ins.h"

namespace nlaunch::shell {

/// What a script finds where it looks for a file or directory that is missing here, and may exist on the
/// cluster. Notes what it looked for.
class AbsentFiles {
 public:
  /// All arguments must outlive this object. `recording` gets the paths that the script tested in vain, or
  /// waited for.
  AbsentFiles(const RecordRequest& request, const ScratchLayer& layer, const OwnFiles& own,
              const Places& places, StandInScripts& scripts, Notes& notes, Recording& recording)
      : request_(request),
        layer_(layer),
        own_(own),
        places_(places),
        scripts_(scripts),
        notes_(notes),
        recording_(recording) {}

  /// How a shell looks for a path.
  struct Look {
    pid_t shell = 0;
    Missing asked = Missing::name;
    bool has_waited = false;  ///< the script has only waited and asked for a while
    bool background = false;
    bool in_task = false;
  };
  /// A stand-in for a missing path that a shell looks for: the target of `source`, `cd` or `exec`, or of a
  /// test. Empty: the path does not exist (Watcher::stand_in).
  std::string stand_in(const Look& look, const std::string& path);
  /// True for a directory that may exist only on the cluster: the job's own directories are here, and
  /// temporary ones belong to no machine.
  [[nodiscard]] bool may_be_there(const std::string& folder) const;

 private:
  [[nodiscard]] bool is_of_job(const std::string& path) const;
  std::string sourced(const std::string& path, const std::string& command, std::uint32_t line);
  std::string executed(const std::string& path, const std::string& command) const;
  std::string tested(const Look& look, const Place& place, const std::string& path);

  const RecordRequest& request_;
  const ScratchLayer& layer_;
  const OwnFiles& own_;
  const Places& places_;
  StandInScripts& scripts_;
  Notes& notes_;
  Recording& recording_;
  std::filesystem::path last_of_search_ = std::filesystem::weakly_canonical("/bin");  ///< of an initial PATH
  std::set<std::string> awaited_;     ///< paths that have appeared
  std::map<std::string, int> tests_;  ///< how often the script tested a path
};

}  // namespace nlaunch::shell
