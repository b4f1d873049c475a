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

/// Which libraries the processes of a run have mapped and which of them are bound, according to /proc,
/// gathered over time.
namespace nlaunch::launch {

struct ObservedProcess {
  std::uint32_t owner = 0;        ///< index into Plan::processes: in whose tree it was first seen
  sys::ProcessId parent;          ///< when first seen; an orphan keeps it
  std::uint64_t stack_start = 0;  ///< as in sys::ProcessInfo: distinguishes a fork from an exec
  std::string executable;
  std::vector<std::string> argv;
  bool preloads = false;  ///< LD_PRELOAD was in its initial environment
  bool rank = false;      ///< RANK and LOCAL_RANK were in its initial environment
  bool young =
      false;  ///< it had just been started when last examined, and may not have its final command line yet
  bool loaded = false;  ///< libc is mapped, and so is everything preloaded; never true for a static program
  std::vector<sys::MappedFile> libraries;  ///< copies of libnccl and preloaded files that are or were mapped
  std::vector<sys::ObjectBindings> bindings;  ///< of the objects that import functions of NCCL
  std::string unreadable;                     ///< why the bindings could not be read
  std::uint64_t memory_bytes = 0;             ///< as in sys::ProcessInfo
};
using Observations = std::map<sys::ProcessId, ObservedProcess>;

/// The file that a path leads to, with links resolved, as /proc names it; empty if it does not exist.
std::optional<sys::MappedFile> file_of(const std::string& path);

/// The real file of each path in `BoundProcess::preload`, with links resolved; a missing path is left out.
using PreloadedFiles = std::map<std::string, sys::MappedFile>;
PreloadedFiles preloaded_files(const plan::BoundNode& node);

/// True for the same file by device and inode, or by path if both are paths in this process's file system.
/// (stat and /proc name the device of a file on overlayfs or btrfs differently; a deleted file may have a
/// successor with the same path.)
bool same_file(const sys::MappedFile& a, const sys::MappedFile& b);
/// True for a copy of NCCL; its plug-ins (libnccl-net.so, libnccl-tuner.so ...) are not.
bool is_nccl(const sys::MappedFile& file);

/// The bindings of functions of NCCL.
sys::BindingReader nccl_bindings();

enum class Thoroughness {
  changes,  ///< a process with unchanged memory size, or one that is bound, is not examined again
  all,
};
/// Examines all processes below the `roots` (index into Plan::processes → pid), the roots themselves, and
/// known processes that have lost their parents, and adds the results to `seen`.
void observe(Observations& seen, const std::map<std::uint32_t, pid_t>& roots, const PreloadedFiles& preloaded,
             sys::BindingReader& bindings, Thoroughness thoroughness = Thoroughness::all);

/// Adds one observation to what is known of a process. What was mapped once counts until the process executes
/// another program; an empty observation (the process has just exited) removes nothing.
void merge(Observations& seen, sys::ProcessId id, ObservedProcess look);

}  // namespace nlaunch::launch
