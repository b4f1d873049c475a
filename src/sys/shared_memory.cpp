#include "sys/shared_memory.h"

#include <sys/stat.h>
#include <unistd.h>

#include "sys/files.h"

namespace nlaunch::sys {
namespace {

/// Scans of a file that none of the run's processes has mapped.
constexpr unsigned kMostLooks = 5;

}  // namespace

SharedMemory::SharedMemory(std::filesystem::path folder) : folder_(std::move(folder)) {
  for (const auto& [identity, path] : files()) before_.insert(identity);
}

std::map<SharedMemory::Identity, std::filesystem::path> SharedMemory::files() const {
  std::map<Identity, std::filesystem::path> out;
  for (const auto& name : names_in(folder_)) {
    struct stat info {};
    if (::lstat((folder_ / name).c_str(), &info) != 0) continue;
    if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) continue;
    out.emplace(Identity{device_text(info.st_dev), info.st_ino}, folder_ / name);
  }
  return out;
}

void SharedMemory::note(const std::function<ProcessIds()>& processes) {
  auto fresh = files();
  std::erase_if(fresh, [this](const auto& file) {
    const auto& identity = file.first;
    return before_.contains(identity) || noted_.contains(identity) || looks_[identity]++ >= kMostLooks;
  });
  if (fresh.empty()) return;
  for (const auto& process : processes()) {
    for (const auto& mapped : mapped_files(process.pid).value_or(std::vector<MappedFile>())) {
      if (const auto found = fresh.find({mapped.device, mapped.inode}); found != fresh.end())
        noted_.insert(*found);
    }
  }
}

std::vector<std::string> SharedMemory::remove() {
  if (noted_.empty()) return {};
  auto left = files();
  std::erase_if(left, [this](const auto& file) { return !noted_.contains(file.first); });
  for_each_process([&](const ProcessInfo& process) {
    for (const auto& mapped : mapped_files(process.pid).value_or(std::vector<MappedFile>()))
      left.erase({mapped.device, mapped.inode});
  });
  std::vector<std::string> removed;
  for (const auto& [identity, path] : left) {
    if (::unlink(path.c_str()) == 0) removed.push_back(path.filename());
  }
  noted_.clear();
  return removed;
}

}  // namespace nlaunch::sys
