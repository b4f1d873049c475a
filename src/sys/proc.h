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

/// What /proc reports about processes. A process may exit between two calls: everything here is then absent,
/// not an error.
namespace nlaunch::sys {

/// A pid alone is reused once the process is gone; together with its start time it is an identity.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  auto operator<=>(const ProcessId&) const = default;
};

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';               ///< as in proc(5): R S D Z T ...
  std::uint64_t start_ticks = 0;  ///< since boot; together with the pid, an identity
  std::string name;               ///< comm, at most 15 characters
  pid_t group = 0;
  pid_t session = 0;
  pid_t foreground = -1;  ///< process group in the foreground of its controlling terminal; -1: it has none
  /// Where its stack starts: the same in a process and its forks, different after an exec; 0 if it cannot be
  /// seen.
  std::uint64_t stack_start = 0;
  std::uint64_t memory_bytes = 0;  ///< size of its address space: changes when a library is mapped
};

std::optional<ProcessInfo> process_info(pid_t pid);
/// Whether a process is in the foreground of its controlling terminal, or has none, and is not stopped.
bool in_foreground(const ProcessInfo& process);
/// Calls `then` for each visible process, by ascending pid, right after reading it: whatever `then` does
/// happens within microseconds of the read.
void for_each_process(const std::function<void(const ProcessInfo&)>& then);
/// All visible processes, by pid.
std::map<pid_t, ProcessInfo> all_processes();
/// All processes below `root`, parents before children; `root` itself is not among them.
std::vector<ProcessInfo> descendants(pid_t root);
/// The same among processes that were read before, for several roots.
using ByParent = std::multimap<pid_t, ProcessInfo>;
ByParent processes_by_parent();
std::vector<ProcessInfo> descendants(pid_t root, const ByParent& all);

/// The name of a user, or the number if it has none.
std::string user_name(uid_t user);
/// The name of this process's user.
std::string user_name();
/// The owner of a process.
std::optional<uid_t> owner(pid_t pid);
/// False in a container's pid namespace and if other users' processes are hidden (hidepid): a process that
/// cannot be seen may exist, and pids reported by kernel drivers are from another namespace.
bool sees_all_processes();

/// The arguments of a process; empty for a kernel thread, a zombie or another user's process.
std::vector<std::string> command_line(pid_t pid);
/// The name of a process for people: the title that the program gave itself ("VLLM::EngineCore",
/// "ray::Trainer.step"), the script or module of an interpreter ("train.py", "vLLM API server"), else its
/// program. `name` is its comm(5), for a process without arguments.
std::string process_title(const std::vector<std::string>& arguments, const std::string& name);
/// Whether the title distinguishes processes of one kind of program: it is more than a script name.
bool is_telling_title(std::string_view title);
/// The path of the program that it runs; empty as above.
std::string executable(pid_t pid);
/// Its initial environment.
std::vector<std::string> initial_environment(pid_t pid);

/// A device in the format of /proc: "fd:01".
std::string device_text(dev_t device);

/// A file that is mapped into a process; listed once, however many segments it has.
struct MappedFile {
  std::string path;    ///< as in /proc, without " (deleted)"
  std::string device;  ///< "fd:01"
  std::uint64_t inode = 0;
  bool deleted = false;
  std::string root{};  ///< "/proc/PID/root" if `path` is in another file system tree, such as a container's
  /// The path for this process, while the other one is alive.
  [[nodiscard]] std::string seen_from_here() const { return root + path; }
};
/// Empty if the maps cannot be read (another user's process).
std::optional<std::vector<MappedFile>> mapped_files(pid_t pid);

/// A part of a file mapped into a process's memory.
struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  ///< in the file
  bool executable = false;
  MappedFile file;
};
/// All file mappings of a process, by ascending address; anonymous memory is left out. Empty as above.
std::optional<std::vector<Mapping>> file_mappings(pid_t pid);
/// The files of these mappings, each once.
std::vector<MappedFile> files_of(const std::vector<Mapping>& mappings);

}  // namespace nlaunch::sys
