#include "diagnose/analysis.h"

namespace nlaunch::diagnose {

const std::vector<AnalysisRow>& analyses() {
  static const std::vector<AnalysisRow> rows{
      {"collectives", "watchdog reports of all ranks together: who is behind, differs, or is silent",
       make_collectives},
      {"nccl-init", "communicators that began and did not complete, and whose ranks are missing",
       make_nccl_init},
      {"xid", "what the NVIDIA driver reported, by GPU", make_xids},
      {"tracebacks", "Python exceptions that no signature knows", make_tracebacks},
  };
  return rows;
}

}  // namespace nlaunch::diagnose
