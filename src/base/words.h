#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

/// The words of nlaunch that both its files and its plan are written in.
namespace nlaunch {

enum class RoleKind { learner, engine, service };
enum class Rendezvous { none, torch };
enum class PreloadScope {
  process,  ///< the role's program alone
  tree,     ///< the program and all that it starts
};
enum class Backend { nccl, gloo };

/// When an operation applies; what is empty always fits. All that is given must fit.
struct Condition {
  std::optional<VersionRange> nodes;            ///< number of nodes, as a version of one part
  std::string gpu;                              ///< glob on the GPU's model
  std::string arch;                             ///< glob on the machine's architecture
  std::optional<RoleKind> kind;                 ///< kind of the role
  std::map<std::string, VersionRange> library;  ///< version of a library of the site, by name
  [[nodiscard]] bool always() const {
    return !nodes && gpu.empty() && arch.empty() && !kind && library.empty();
  }
};

struct Stop {
  int signal = 15;
  Duration grace = std::chrono::seconds(30);
};

struct Restart {
  bool on_failure = false;
  unsigned max = 3;
  Duration backoff = std::chrono::seconds(5);
};

/// What happens when the walltime comes near.
struct Walltime {
  int signal = 15;  ///< to learners
  Duration before = std::chrono::minutes(10);
  enum class Then { stop, requeue, chain };
  Then then = Then::stop;
  std::uint32_t max = 30;                           ///< jobs of a chain
  Duration min_runtime = std::chrono::minutes(15);  ///< a run that fails sooner is not continued
};

/// What is done when a run makes no progress any more.
enum class OnStall {
  warn,
  dump,     ///< evidence is collected, and the run goes on
  abort,    ///< evidence, then the end
  restart,  ///< evidence, then another attempt, as after a failure
};

enum class PreflightLevel {
  quick,     ///< no CUDA context
  standard,  ///< also the interpreters, and the plan's groups
  deep,      ///< also what takes a minute: every pair of GPUs, all sizes, arithmetic under load
};

enum class AuditMode { report, enforce };

/// What a signal to nlaunch does.
struct SignalRule {
  enum class Action { stop, ignore, forward };
  Action action = Action::stop;
  std::vector<std::string> roles;  ///< forward: to these; empty: to all
};

/// How urgent a job of Beaker is.
enum class BeakerPriority { low, normal, high, urgent, immediate };

std::string_view name_of(RoleKind kind);
std::string_view name_of(Rendezvous rendezvous);
std::string_view name_of(PreloadScope scope);
std::string_view name_of(Backend backend);
std::string_view name_of(PreflightLevel level);
/// Of its word; `standard` for any other.
PreflightLevel level_of(std::string_view word);
std::string_view name_of(AuditMode mode);
std::string_view name_of(BeakerPriority priority);
std::string_view name_of(Walltime::Then then);
std::string_view name_of(OnStall on_stall);

}  // namespace nlaunch
