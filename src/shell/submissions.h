#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "shell/guarded.h"
#include "shell/places.h"
#include "shell/recorder.h"
#include "shell/scratch_layer.h"
#include "shell/stand_ins.h"
#include "shell/words.h"
#include "shell/written.h"

namespace nlaunch::shell {

/// Reads the jobs that a script submits.
class Submissions {
 public:
  /// All arguments must outlive this object.
  Submissions(const RecordRequest& request, const ScratchLayer& layer, const OwnFiles& own,
              const Places& places, const Written& written)
      : request_(request), layer_(layer), own_(own), places_(places), written_(written) {}

  /// The job that a call of sbatch submits; nullopt if its script is unknown. Consumes a here-document.
  [[nodiscard]] std::optional<Submission> read(const ProgramStart& start, const Words& argv) const;

 private:
  void read_script(const ProgramStart& start, const Words& argv, std::size_t end, Submission& job) const;
  [[nodiscard]] std::vector<std::string> variables(const ProgramStart& start, const Words& exported) const;

  const RecordRequest& request_;
  const ScratchLayer& layer_;
  const OwnFiles& own_;
  const Places& places_;
  const Written& written_;
};

}  // namespace nlaunch::shell
