#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/bound.h"
#include "sys/elf_bindings.h"
#include "sys/proc.h"

/// Which libraries the processes of a run have mapped, and which of them are bound: what /proc says, gathered
/// over time.
namespace nlaunch::launch {

struct ObservedProcess {
  std::uint32_t owner = 0;        ///< index into Plan::processes: in whose tree it was first seen
  sys::ProcessId parent;          ///< when first seen; an orphan keeps it
  std::uint64_t stack_start = 0;  ///< as in sys::ProcessInfo: tells a fork from an exec
  std::string executable;
  std::vector<std::string> argv;
  bool preloads = false;  ///< LD_PRELOAD was in the environment that it was started with
  bool rank = false;      ///< RANK and LOCAL_RANK were in the environment that it was started with
  bool young = false;   ///< it had just been started when last looked at, and may not yet be what it becomes
  bool loaded = false;  ///< libc is mapped, and so all that was preloaded; never true of a static program
  std::vector<sys::MappedFile> libraries;  ///< copies of libnccl and preloaded files that are or were mapped
  std::vector<sys::ObjectBindings> bindings;  ///< of the objects that import functions of NCCL
  std::string unreadable;                     ///< why the bindings could not be read
  std::uint64_t memory_bytes = 0;             ///< as in sys::ProcessInfo
};
using Observations = std::map<sys::ProcessId, ObservedProcess>;

/// The file that a path leads to, links resolved, as /proc names it; nothing where there is none.
std::optional<sys::MappedFile> file_of(const std::string& path);

/// Which file each path in `BoundProcess::preload` really is, links resolved; a path that is not there is
/// left out.
using PreloadedFiles = std::map<std::string, sys::MappedFile>;
PreloadedFiles preloaded_files(const plan::BoundNode& node);

/// True for the same file by device and inode, or by its path where both are paths of this process's. (stat
/// and /proc name the device of a file on overlayfs or btrfs differently; a deleted file may have a successor
/// of the same path.)
bool same_file(const sys::MappedFile& a, const sys::MappedFile& b);
/// True for a copy of NCCL; its plug-ins (libnccl-net.so, libnccl-tuner.so ...) are none.
bool is_nccl(const sys::MappedFile& file);

/// The bindings of functions of NCCL.
sys::BindingReader nccl_bindings();

enum class Thoroughness {
  changes,  ///< a process whose memory is as large as before, or that is bound, is not looked into again
  all,
};
/// Looks at all processes below the `roots` (index into Plan::processes → pid), at the roots themselves, and
/// at processes seen before that have lost their parents, and adds what they show to `seen`.
void observe(Observations& seen, const std::map<std::uint32_t, pid_t>& roots, const PreloadedFiles& preloaded,
             sys::BindingReader& bindings, Thoroughness thoroughness = Thoroughness::all);

/// Adds one look to what is known of a process. What was mapped once counts until the process executes
/// another program; a look that shows nothing (the process has just ended) takes nothing away.
void merge(Observations& seen, sys::ProcessId id, ObservedProcess look);

}  // namespace nlaunch::launch
