#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "probe/question.h"
#include "sys/files.h"
#include "sys/proc.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// 0, or the errno of the step that failed. The file has no name while it is written: nothing is left if this
/// process is killed.
int write_there(const std::string& path) {
  auto name = path + "/.nlaunch.XXXXXX";
  const sys::UniqueFd file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file) return errno;
  ::unlink(name.c_str());
  constexpr std::size_t kBlock = 4096;
  const bool written = sys::write_all(file.get(), std::string(kBlock, 'n')) && ::fsync(file.get()) == 0;
  return written ? 0 : errno;
}

bool is_about_rights(int error) {
  return error == EACCES || error == EPERM || error == EROFS;
}

/// `folder PATH`: writes 4 KiB into a nameless file there, to the disk. A file system that is down can hang
/// this process forever.
///   event "folder"; path, free (bytes for this user), seconds (for the write), error (why it cannot be
///   used), read_only (true: it exists, and this user cannot write to it; `error` says why).
json try_folder(Arguments arguments) {
  const auto& path = arguments[0];
  json out{{"event", "folder"}, {"path", path}};
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) {
    out["error"] = std::strerror(errno);
    return out;
  }
  out["free"] = std::uint64_t{info.f_bavail} * info.f_frsize;
  const auto begin = Clock::now();
  const int error = write_there(path);
  out["seconds"] = std::chrono::duration<double>(Clock::now() - begin).count();
  if (error == 0) return out;
  out["read_only"] = is_about_rights(error);
  out["error"] = fmt::format("cannot be written to: {}", std::strerror(error));
  return out;
}

const Registered<Question> folder_question{{
    .order = 150,
    .name = "folder",
    .arguments = "PATH",
    .what = "free space of a directory, and a small file written there",
    .at_least = 1,
    .answer = try_folder,
}};

namespace fs = std::filesystem;

struct SharedFile {
  std::string name;
  struct stat info {};
};

/// nccl-XXXXXX (src/misc/shmutils.cc), torch_PID_N_N (torch/lib/libshm), psm_shm.N and psm2_shm.N.
bool is_of_communication(const std::string& name) {
  constexpr std::string_view kBeginnings[] = {"nccl-", "torch_", "psm_shm", "psm2_shm"};
  return std::ranges::any_of(kBeginnings, [&](auto beginning) { return name.starts_with(beginning); });
}

std::vector<SharedFile> find_files(const std::string& folder) {
  std::vector<SharedFile> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    SharedFile file{entry->path().filename().string()};
    if (!is_of_communication(file.name) || ::lstat(entry->path().c_str(), &file.info) != 0) continue;
    if (S_ISREG(file.info.st_mode)) files.push_back(std::move(file));
  }
  std::ranges::sort(files, {}, &SharedFile::name);
  return files;
}

/// What the processes of this machine have mapped, as far as this user can see.
class Maps {
 public:
  Maps() {
    sys::for_each_process([this](const sys::ProcessInfo& process) {
      const auto files = sys::mapped_files(process.pid);
      const auto owner = files ? std::nullopt : sys::owner(process.pid);  // empty once it has exited
      if (owner) closed_.insert(*owner);
      if (!files) return;
      for (const auto& file : *files) inodes_.insert(file.inode);
    });
  }
  [[nodiscard]] bool may_use(const SharedFile& file) const {
    return inodes_.contains(file.info.st_ino) || closed_.contains(file.info.st_uid);
  }

 private:
  std::set<std::uint64_t> inodes_;
  std::set<uid_t> closed_;  ///< users with a process that cannot be inspected
};

/// `shared-memory`: the files of NCCL, PyTorch and PSM in a directory of shared memory:
///   event "shared-memory"; folder; files [{name, bytes, age (seconds), user, mine (bool: of this user),
///   used}], by name. `used`: true if a process maps it or may (its owner has a process that cannot be
///   inspected), false if none does, null if that cannot be seen from here (a container, hidden
///   processes).
json examine_shared_memory(Arguments arguments) {
  const auto folder = arguments.empty() ? std::string("/dev/shm") : arguments[0];
  json out{{"event", "shared-memory"}, {"folder", folder}, {"files", json::array()}};
  const auto files = find_files(folder);
  if (files.empty()) return out;
  const bool seen = sys::sees_all_processes();
  const auto maps = seen ? Maps() : std::optional<Maps>();
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  for (const auto& file : files) {
    out["files"].push_back({{"name", file.name},
                            {"bytes", std::uint64_t{512} * static_cast<std::uint64_t>(file.info.st_blocks)},
                            {"age", std::max<std::int64_t>(now - file.info.st_mtime, 0)},
                            {"user", sys::user_name(file.info.st_uid)},
                            {"mine", file.info.st_uid == ::geteuid()},
                            {"used", maps ? json(maps->may_use(file)) : json(nullptr)}});
  }
  return out;
}

const Registered<Question> shared_memory_question{{
    .order = 80,
    .name = "shared-memory",
    .arguments = "[FOLDER]",
    .what = "files of communication libraries in /dev/shm",
    .answer = examine_shared_memory,
}};

}  // namespace
}  // namespace nlaunch::probe
