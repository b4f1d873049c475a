#pragma once
#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What /proc says of processes. A process may end between two calls: everything here is then absent, not an
/// error.
namespace nlaunch::sys {

/// A pid alone is used again once the process is gone; with its start time it is an identity.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  auto operator<=>(const ProcessId&) const = default;
};

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';               ///< as in proc(5): R S D Z T ...
  std::uint64_t start_ticks = 0;  ///< since boot; with the pid, an identity
  std::string name;               ///< comm, at most 15 characters
  pid_t group = 0;
  pid_t session = 0;
  /// Where its stack begins: the same in a process and its forks, another after an exec; 0 where not to be
  /// seen.
  std::uint64_t stack_start = 0;
  std::uint64_t memory_bytes = 0;  ///< of its address space: another value once a library was mapped
};

std::optional<ProcessInfo> process_info(pid_t pid);
/// Calls `then` for each process that can be seen, by rising pid, right after it was looked at: what is done
/// there comes within microseconds of the look.
void for_each_process(const std::function<void(const ProcessInfo&)>& then);
/// All processes that can be seen, by pid.
std::map<pid_t, ProcessInfo> all_processes();
/// All processes below `root`, parents before children; `root` itself is not among them.
std::vector<ProcessInfo> descendants(pid_t root);
/// The same among processes that were looked at before, for several roots.
using ByParent = std::multimap<pid_t, ProcessInfo>;
ByParent processes_by_parent();
std::vector<ProcessInfo> descendants(pid_t root, const ByParent& all);

/// The name of a user, or the number where it has none.
std::string user_name(uid_t user);
/// That of this process's user.
std::string user_name();
/// Whose process it is.
std::optional<uid_t> owner(pid_t pid);
/// False in a container's pid namespace and where other users' processes are hidden (hidepid): a process that
/// is not seen may be there, and pids that the kernel's drivers tell are of another count.
bool sees_all_processes();

/// The arguments of a process, empty for a kernel thread, a zombie or a stranger's process.
std::vector<std::string> command_line(pid_t pid);
/// What a person calls the process: the title that the program gave itself ("VLLM::EngineCore",
/// "ray::Trainer.step"), the script or module of an interpreter ("train.py", "vLLM API server"), else its
/// program. `name` is its comm(5), for one that has no arguments.
std::string process_title(const std::vector<std::string>& arguments, const std::string& name);
/// The title tells processes of one kind of program apart: it is more than the name of a script.
bool is_telling_title(std::string_view title);
/// The path of the program that it executes; empty as above.
std::string executable(pid_t pid);
/// The environment with which it was started.
std::vector<std::string> initial_environment(pid_t pid);

/// A device as /proc has it: "fd:01".
std::string device_text(dev_t device);

/// A file that is mapped into a process, once however many segments it has.
struct MappedFile {
  std::string path;    ///< as /proc shows it, without " (deleted)"
  std::string device;  ///< "fd:01"
  std::uint64_t inode = 0;
  bool deleted = false;
  std::string root{};  ///< "/proc/PID/root" where `path` is one of another file system tree: a container's
  /// Where this process finds it, as long as the other one lives.
  [[nodiscard]] std::string seen_from_here() const { return root + path; }
};
/// Nothing where the maps cannot be read (another user's process).
std::optional<std::vector<MappedFile>> mapped_files(pid_t pid);

/// A part of a file at its place in a process's memory.
struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  ///< in the file
  bool executable = false;
  MappedFile file;
};
/// All of a process, by rising address; the memory that has no file is left out. Nothing as above.
std::optional<std::vector<Mapping>> file_mappings(pid_t pid);
/// The files of these, each once.
std::vector<MappedFile> files_of(const std::vector<Mapping>& mappings);

}  // namespace nlaunch::sys
