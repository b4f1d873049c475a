#include "launch/bind/gpu_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <set>

#include "base/json.h"
#include "sys/proc.h"

namespace nlaunch::launch {
namespace {

/// Every user can write that file: it can contain anything.
std::string holder(const std::string& path) {
  constexpr std::uint64_t kEnough = 65536;
  const auto content = sys::read_regular_file(path, kEnough);
  try {
    const auto said = parse_json_or_throw(content ? *content : "");
    return fmt::format("{} of user {} (pid {})", said.at("run").get<std::string>(),
                       said.at("user").get<std::string>(), said.at("pid").get<int>());
  } catch (const nlohmann::json::exception&) {
    return "another run";
  }
}

std::string key_of(const plan::BoundGpu& gpu) {
  auto key = !gpu.uuid.empty() ? gpu.uuid : !gpu.bus_id.empty() ? gpu.bus_id : gpu.visible;
  for (auto& c : key) {
    if (c == '/' || c == ':') c = '_';
  }
  return key;
}

}  // namespace

std::string lock_folder() {
  return "/tmp/nlaunch-locks";
}

Result<sys::UniqueFd> open_lock_file(const std::string& folder, const std::string& name) {
  constexpr mode_t kEveryone = 0666;
  constexpr mode_t kEveryoneSticky = 01777;
  // Nothing here waits: opening a FIFO would wait for its other end.
  constexpr int kHow = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  const auto failed = [&](std::string_view why) {
    return failure("launch.lock", "cannot open the lock {}/{}: {}", folder, name, why);
  };
  if (::mkdir(folder.c_str(), kEveryoneSticky) == 0) ::chmod(folder.c_str(), kEveryoneSticky);
  const sys::UniqueFd where(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!where) return failed(std::strerror(errno));
  // Another user's file may only be readable, and cannot be opened with O_CREAT in a sticky directory
  // (fs.protected_regular); for flock(2) either will do.
  sys::UniqueFd fd(::openat(where.get(), name.c_str(), O_RDWR | kHow));
  if (!fd) fd = sys::UniqueFd(::openat(where.get(), name.c_str(), O_RDONLY | kHow));
  const bool made = !fd && errno == ENOENT;
  if (made) fd = sys::UniqueFd(::openat(where.get(), name.c_str(), O_RDWR | O_CREAT | kHow, kEveryone));
  if (!fd) return failed(errno == ELOOP ? "it is a link" : std::strerror(errno));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return failed(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return failed("it is not a regular file");
  if (info.st_nlink > 1) return failed("it is a hard link to a file that may belong to another user");
  if (made) ::fchmod(fd.get(), kEveryone);  // independent of the umask
  return fd;
}

Result<GpuLocks> GpuLocks::take(const plan::Plan& plan, const plan::BoundNode& node, const std::string& owner,
                                const std::string& folder) {
  GpuLocks locks;
  std::set<std::uint16_t> used;
  for (const auto& process : node.processes) {
    const auto& gpus = plan.processes[process.process].gpus;
    used.insert(gpus.begin(), gpus.end());
  }
  if (node.gpus.empty() || used.empty()) return locks;
  Diagnostics diagnostics;
  std::set<std::string> taken;  // two GPUs of the plan may be one device: the preflight reports that better
  for (const auto gpu : used) {
    const auto name = key_of(node.gpus.at(gpu)) + ".lock";
    const auto path = folder + "/" + name;
    if (!taken.insert(name).second) continue;
    auto fd = open_lock_file(folder, name);
    if (!fd) {
      diagnostics.error("launch.gpu-lock", {}, fd.error().first_message()).hint =
          "ask its owner or root to remove it, or run without the locks: --share";
    } else if (::flock(fd->get(), LOCK_EX | LOCK_NB) != 0) {
      diagnostics
          .error("launch.gpu-held", {},
                 fmt::format("GPU {} is held by {}", node.gpus[gpu].visible, holder(path)))
          .hint = "wait for it, choose other GPUs with CUDA_VISIBLE_DEVICES, or share them with --share";
    } else {
      const nlohmann::json said{{"run", owner}, {"user", sys::user_name()}, {"pid", ::getpid()}};
      if (::ftruncate(fd->get(), 0) == 0) sys::write_all(fd->get(), json_text(said) + "\n");
      locks.held_.push_back(std::move(*fd));
    }
  }
  if (diagnostics.has_errors()) return std::unexpected(std::move(diagnostics));
  return locks;
}

}  // namespace nlaunch::launch
