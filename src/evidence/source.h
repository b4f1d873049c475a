#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/secrets.h"
#include "base/units.h"
#include "evidence/resume_guard.h"
#include "evidence/spec.h"
#include "evidence/tree.h"

/// Where evidence comes from. A source is one file of code, and one row of `kProcessSources` or
/// `kHostSources`.
namespace nlaunch::evidence {

/// What a source works on: a process of the plan, or with `subject` null the host.
struct CollectContext {
  using Clock = std::chrono::steady_clock;

  const Spec& spec;
  const Subject* subject = nullptr;
  Tree tree;                     ///< the processes of the subject, looked at before anything was attached
  std::filesystem::path folder;  ///< an existing one, for the files of this subject or host
  const Masker& masker;          ///< over all that is written
  ResumeGuard& thaw;             ///< to be told whom a debugger stops
  Clock::time_point deadline{};  ///< of this source: it does not work past it

  [[nodiscard]] Duration left() const;
  /// Masks `text` and writes it; false where the folder takes nothing.
  [[nodiscard]] bool write(const std::string& name, const std::string& text) const;
};

/// What is not there, and what a person can do about it.
struct Missing {
  std::string what;  ///< "Python stacks"
  std::string why;
  std::string install;  ///< what to install or permit; may be empty
};

/// What came of it: names of files, and what is missing.
struct Found {
  std::vector<std::string> got;
  std::vector<Missing> missing;
};

struct Source {
  const char* name;  ///< "Python stacks"
  Duration bound;    ///< of the whole deadline it takes at most this
  /// Sources of one lane work one after the other (a process has one debugger at a time), lanes all at once.
  int lane;
  Found (*collect)(const CollectContext& context);
};
extern const std::vector<Source> kProcessSources;
extern const std::vector<Source> kHostSources;

Found collect_processes(const CollectContext& context);
Found collect_python_stacks(const CollectContext& context);
Found collect_native_stacks(const CollectContext& context);
Found collect_sockets(const CollectContext& context);
Found collect_libraries(const CollectContext& context);
Found collect_log(const CollectContext& context);
Found collect_nccl_logs(const CollectContext& context);
Found collect_environment(const CollectContext& context);
Found collect_ras(const CollectContext& context);
Found collect_flight_recorder(const CollectContext& context);
Found collect_gpus(const CollectContext& context);
Found collect_gpu_use(const CollectContext& context);
Found collect_kernel_log(const CollectContext& context);

}  // namespace nlaunch::evidence
