#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/described.h"
#include "launch/audit/observation.h"
#include "plan/bound.h"
#include "plan/plan.h"

/// Proves which process uses which libnccl.
///
/// Each process of a role's tree has a part. From the root downward, wrappers and launchers (scope/wrapper.h)
/// lead to the *program*; a child of a launcher without RANK and LOCAL_RANK is the launcher's helper; what
/// the program starts by exec is a *helper* of the role; a fork counts as its parent. Under `scope: process`
/// the program must have what the role preloads and its helpers must not get it; under `scope: tree` both
/// may.
///
/// A process uses the libnccl to which its objects are bound (sys/elf_bindings.h). Another copy that is
/// only mapped proves nothing: PyTorch opens the one of its wheel by path even when it is bound to a
/// preloaded one.
///
/// A process that matches the `classify` of a role under `spawned_by` is that role's program.
namespace nlaunch::launch {

enum class Part { wrapper, launcher, launcher_helper, program, helper };
BOOST_DESCRIBE_ENUM(Part, wrapper, launcher, launcher_helper, program, helper)

enum class Proof {
  as_preloaded,  ///< it has what its role preloads
  own,           ///< it has a libnccl that no role preloaded
  unknown,       ///< unprovable: nothing mapped or bound (yet), or linked statically
  finding,       ///< see the findings of the same pid
};
BOOST_DESCRIBE_ENUM(Proof, as_preloaded, own, unknown, finding)

/// How it is known that a process uses a library.
enum class Use {
  bound,   ///< objects are bound to it
  named,   ///< it is mapped and VLLM_NCCL_SO_PATH names it: the process that opened it keeps a handle
  only,    ///< it is the only mapped libnccl, and nothing is bound to any
  mapped,  ///< not used: only mapped
};
BOOST_DESCRIBE_ENUM(Use, bound, named, only, mapped)

/// One libnccl in one process.
struct LibraryUse {
  sys::MappedFile file;
  std::string version;  ///< empty if unknown
  Use use = Use::mapped;
  std::vector<std::string> by{};  ///< of `bound`: the objects
};

struct AuditEntry {
  std::string name;  ///< "learner.0"; "learner" for a spawned process that could be one of several
  std::string role;
  std::optional<std::uint32_t> process;  ///< index into Plan::processes
  pid_t pid = 0;                         ///< 0 if no process was seen
  std::string command;                   ///< the start of its command line, with secrets masked
  Part part = Part::program;
  Proof proof = Proof::unknown;
  std::vector<LibraryUse> libraries;
  std::string reason;  ///< of `unknown`
};

struct AuditFinding {
  enum class Kind {
    foreign,          ///< it has what another role preloads
    two_copies,       ///< it is bound to two different libnccl
    missing,          ///< a program lacks what its role preloads
    not_bound,        ///< it has that mapped but is bound to another
    helper,           ///< a helper has what only the program should have
    versions_differ,  ///< processes of one communicator have different versions
  };
  BOOST_DESCRIBE_NESTED_ENUM(Kind, foreign, two_copies, missing, not_bound, helper, versions_differ)
  Kind kind = Kind::foreign;
  std::string name;
  pid_t pid = 0;  ///< 0 for versions_differ
  std::string message;
};

struct AuditReport {
  std::string host;
  std::vector<AuditEntry> entries;
  std::vector<AuditFinding> findings;
};

/// What the judgement needs in addition to plan, binding and observations.
struct AuditFacts {
  PreloadedFiles preloaded;
  std::map<std::string, std::string>
      versions;  ///< path as seen from here → "2.28.9" (nlaunch-probe library PATH)
  std::map<std::string, std::string>
      own_library;  ///< role → real path of the libnccl that its program loads itself; such a file belongs to
                    ///< it even if another role preloads it
  std::map<std::string, sys::MappedFile> named_library;  ///< role → what VLLM_NCCL_SO_PATH names
  std::set<std::uint32_t> started;                       ///< indices into Plan::processes
};

/// The paths, as seen from here, of all copies of libnccl that were seen: their versions are needed.
std::vector<std::string> mapped_nccl(const Observations& seen);

/// Judges what was seen on one node. Pure. A fork with the same libraries as its parent is not listed, nor
/// are services without a libnccl and processes that were never started.
AuditReport judge(const plan::Plan& plan, const plan::BoundNode& node, const Observations& seen,
                  const AuditFacts& facts);

/// For audit.json.
nlohmann::json to_json(const AuditReport& report);
/// For people, a line each, findings last:
///   learner.0 (pid 4711): bound to libnccl 2.28.9 /opt/nccl/libnccl.so.2, as preloaded
///   finding: engine.1 (pid 4720, VLLM::Worker) has the learner's libnccl 2.28.9 (/opt/nccl/libnccl.so.2)
std::vector<std::string> summary(const AuditReport& report);

}  // namespace nlaunch::launch
