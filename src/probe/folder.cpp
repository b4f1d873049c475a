#include "probe/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "sys/files.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// 0, or the errno of what could not be done. The file has no name while it is written: nothing stays behind
/// when this process is killed.
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

}  // namespace

json try_folder(const std::string& path) {
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

}  // namespace nlaunch::probe
