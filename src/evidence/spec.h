#pragma once
#include <sys/types.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"

/// What can be observed of processes that make no progress, and which of them is to blame.
namespace nlaunch::evidence {

/// A process of the plan, by the root of its tree.
struct Subject {
  std::string name;         ///< "learner.0"
  std::optional<int> rank;  ///< if its role has a rendezvous, and it stands for one rank
  pid_t pid = 0;            ///< 0: it is not running
  std::string ended;        ///< how it exited ("exited with code 1"); empty while it runs
  double ended_at = 0;      ///< in seconds since the attempt started; 0 if unknown
  /// Parts of this server that have been killed: "VLLM::EngineCore (pid 4711) was killed by SIGKILL 69.7s
  /// into the run".
  std::vector<std::string> killed_parts{};
  std::string log;  ///< its log file
  std::string url;  ///< its health path, "http://127.0.0.1:8000/health"; empty if it serves no HTTP
  /// NCCL_RAS_ADDR of its processes, "127.0.0.1:28028". Empty: it is not queried, because another process of
  /// the same communicators is, or because it may still be in ncclCommInitRank: NCCL before 2.27 can crash
  /// then.
  std::string ras;
  std::string recorder_pipe;      ///< TORCH_NCCL_DEBUG_INFO_PIPE_FILE; torch creates PREFIX + RANK + ".pipe"
  std::string recorder_dump;      ///< TORCH_FR_DUMP_TEMP_FILE; torch writes PREFIX + RANK
  std::string nccl_logs;          ///< glob of the files that NCCL_DEBUG_FILE creates
  std::vector<std::string> gpus;  ///< bus ids of its GPUs
};

/// The request to `nlaunch collect`.
struct Spec {
  std::string folder;  ///< evidence/TIMESTAMP; the results go to FOLDER/HOST/ROLE.INDEX/
  std::string host;
  Duration deadline = std::chrono::seconds(30);  ///< for everything
  std::string probe;                             ///< nlaunch-probe; empty: NVML is not queried
  std::string gpu_use;               ///< file of `nlaunch-probe gpu-use` for this host; may be missing
  std::vector<std::string> secrets;  ///< names of variables whose values are to be masked
  std::vector<Subject> processes;    ///< of this host
  std::string ending;                ///< why the run is being stopped meanwhile; empty: it continues
};

/// From JSON with the same names; "deadline_s" is in seconds. Unknown keys are ignored.
Result<Spec> spec_from(const std::string& text);
nlohmann::json to_json(const Spec& spec);

}  // namespace nlaunch::evidence
