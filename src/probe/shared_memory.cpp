#include "probe/shared_memory.h"

#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "sys/proc.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

struct File {
  std::string name;
  struct stat info {};
};

/// nccl-XXXXXX (src/misc/shmutils.cc), torch_PID_N_N (torch/lib/libshm), psm_shm.N and psm2_shm.N.
bool is_of_communication(const std::string& name) {
  constexpr std::string_view kBeginnings[] = {"nccl-", "torch_", "psm_shm", "psm2_shm"};
  return std::ranges::any_of(kBeginnings, [&](auto beginning) { return name.starts_with(beginning); });
}

std::vector<File> find_files(const std::string& folder) {
  std::vector<File> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    File file{entry->path().filename().string()};
    if (!is_of_communication(file.name) || ::lstat(entry->path().c_str(), &file.info) != 0) continue;
    if (S_ISREG(file.info.st_mode)) files.push_back(std::move(file));
  }
  std::ranges::sort(files, {}, &File::name);
  return files;
}

/// What the processes of this machine have mapped, as far as this user may look.
class Maps {
 public:
  Maps() {
    sys::for_each_process([this](const sys::ProcessInfo& process) {
      const auto files = sys::mapped_files(process.pid);
      const auto owner = files ? std::nullopt : sys::owner(process.pid);  // nobody once it has ended
      if (owner) closed_.insert(*owner);
      if (!files) return;
      for (const auto& file : *files) inodes_.insert(file.inode);
    });
  }
  [[nodiscard]] bool may_use(const File& file) const {
    return inodes_.contains(file.info.st_ino) || closed_.contains(file.info.st_uid);
  }

 private:
  std::set<std::uint64_t> inodes_;
  std::set<uid_t> closed_;  ///< users with a process that cannot be looked into
};

}  // namespace

json examine_shared_memory(const std::string& folder) {
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

}  // namespace nlaunch::probe
