#include "supervise/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace nlaunch::supervise {

AppendedFile::AppendedFile(std::filesystem::path path, Trouble trouble)
    : path_(std::move(path)),
      trouble_(std::move(trouble)),
      fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  struct stat info {};
  if (!fd_)
    report(std::strerror(errno));
  else if (::fstat(fd_.get(), &info) == 0)
    size_ = static_cast<std::uint64_t>(info.st_size);
}

bool AppendedFile::append(std::string_view data) {
  while (fd_ && !data.empty()) {
    const auto written = ::write(fd_.get(), data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      report(std::strerror(errno));
      break;
    }
    data.remove_prefix(static_cast<std::size_t>(written));
    size_ += static_cast<std::uint64_t>(written);
  }
  lost_bytes_ += data.size();
  return data.empty();
}

void LogTimes::note(std::uint64_t size) {
  using namespace std::chrono;
  constexpr milliseconds kApart{100};
  const auto now = steady_clock::now();
  if (noted_ && now - *noted_ < kApart) return;
  noted_ = now;
  file_.append(fmt::format(
      "{} {}\n", duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count(), size));
}

void AppendedFile::check() {
  struct stat info {};
  if (fd_ && ::fstat(fd_.get(), &info) == 0 && info.st_nlink == 0) report("the file was removed");
}

void AppendedFile::report(std::string_view what) {
  if (reported_) return;
  reported_ = true;
  if (trouble_) trouble_(fmt::format("cannot write '{}': {}; the run continues", path_.string(), what));
}

}  // namespace nlaunch::supervise
