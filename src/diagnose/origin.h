#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nlaunch::diagnose {

/// The origin of a line, as far as the line names it. Unknown parts are empty.
struct Origin {
  std::string rank;        ///< of the whole job
  std::string local_rank;  ///< of its node
  std::string task;        ///< of a Slurm step
  std::string host;
  std::string pid;
  std::string device;   ///< "GPU 3", "PCI:0000:38:00"
  std::string actor;    ///< a process by name: "EngineCore_DP0", "WorkerDict"
  std::string process;  ///< one of an nlaunch run: "learner.0"
  std::string peer;     ///< the other end, as an address or a host

  [[nodiscard]] bool empty() const;
  /// Takes from `other` what is unknown here.
  void fill(const Origin& other);
  /// Sets the part with that name; false if there is none.
  bool set(std::string_view part, std::string_view value);
  /// "rank 10 on cgpu09 (pid 31641)"; empty if nothing is known.
  [[nodiscard]] std::string str() const;
  bool operator==(const Origin&) const = default;
};

/// Several of them in one phrase: "ranks 0 and 1", "rank 10 on cgpu09"; long lists are shortened.
std::string names_of(const std::vector<Origin>& whos);

/// "0, 1 and 5"
std::string listed(const std::vector<std::string>& parts);

/// The origin in the prefix of a line, in the formats of torchrun, srun, MPI, Ray, vLLM, NCCL and UCX; of two
/// prefixes with the same part the last one counts, since two processes can share a line.
Origin origin_of(std::string_view beginning);

}  // namespace nlaunch::diagnose
