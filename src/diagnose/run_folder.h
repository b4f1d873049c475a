#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/json.h"
#include "diagnose/standing.h"

namespace nlaunch::diagnose {

/// A shell adds it to the number of the signal that killed a process.
inline constexpr int kOfSignals = 128;

/// What blocked or ended a run, according to its summary.
struct KnownCulprit {
  std::string process;  ///< "engine.0"
  std::string program;  ///< "VLLM::EngineCore"
  std::string pid;
  std::string how;  ///< "was killed by SIGKILL", "is stopped (state T)"
};

/// Why a run without progress was stopped: what the evidence showed.
struct KnownHang {
  bool sure = false;
  std::string sentence;
  std::string doing;  ///< of the first culprit: "stopped"; see evidence::Situation
  std::vector<KnownCulprit> culprits;
};

/// What nlaunch saw of a failure beyond the logs: a check that was not answered, a port that was taken.
struct KnownCause {
  std::string category;  ///< the class of a finding
  std::string why;
  std::string fix;
  bool sure = false;
};

/// A run directory of nlaunch, as far as a diagnosis needs it.
struct RunFolder {
  std::filesystem::path folder;
  std::filesystem::path attempt;             ///< the last one
  std::map<std::string, std::string> hosts;  ///< by process: its node, where there are several
  std::vector<std::filesystem::path>
      logs;                  ///< of its last attempt: of the process that failed first, then by name. What a
                             ///< process recorded of its exception is before its output.
  bool failed = false;       ///< according to its summary, and nothing had requested its end
  std::string first;         ///< the process that failed first: "learner.1"; may be empty
  KnownCulprit first_known;  ///< the same, with its program and pid
  std::optional<int> code;   ///< the code with which that process exited by itself, as in a shell
  std::string exception;     ///< that ended it, where it left a record: "RuntimeError: x"; may be empty
  std::string what;          ///< how it ended, in a sentence
  std::map<std::string, Standing> standing;  ///< by process
  /// By process: bytes of its log when the run was decided. What is after them followed.
  std::map<std::string, std::uint64_t> log_when_decided;
  /// The child process whose exit explains why the run ended. `how` is the name of a signal, "exited" (with
  /// code 0), or empty: unknown.
  std::optional<KnownCulprit> lost_child;
  std::optional<KnownHang> hang;
  std::optional<KnownCause> cause;          ///< of the failure of `first`
  std::optional<KnownCulprit> ended_early;  ///< exited with code 0 before its last step
  bool out_of_memory = false;               ///< the kernel's OOM killer was active meanwhile
  Diagnostics unread;  ///< its summary is damaged or of a newer format: only `logs` is known
};

/// A summary that is not in its file yet.
struct KnownSummary {
  const nlohmann::ordered_json* json = nullptr;  ///< as in summary.json
  JsonElements processes{};                      ///< its "processes", if they are not in `json`
};
/// Nothing if `folder` is not a run directory. `summary`: instead of its summary.json; nothing: the file is
/// read.
std::optional<RunFolder> read_run_folder(const std::filesystem::path& folder,
                                         const KnownSummary* summary = nullptr);

/// The process that a file of a run directory belongs to, by its path: "learner.0"; empty for any other file.
std::string process_of_file(const std::string& path);
/// Whether it is what a process recorded of the exception that ended it.
bool is_error_record(const std::filesystem::path& path);

}  // namespace nlaunch::diagnose
