#include "sys/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace nlaunch::sys {
namespace {

using Clock = std::chrono::steady_clock;

class FdSource : public ByteSource {
 public:
  FdSource(UniqueFd fd, Patience patience)
      : fd_(std::move(fd)), patience_(std::move(patience)), until_(Clock::now() + patience_.longest) {
    struct stat about {};
    ends_ = ::fstat(fd_.get(), &about) == 0 && S_ISREG(about.st_mode);
  }

  std::size_t read(std::span<char> room) override {
    while (fd_ && (ends_ || wait())) {
      const auto got = ::read(fd_.get(), room.data(), room.size());
      if (got > 0) return static_cast<std::size_t>(got);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got < 0) remark_ = fmt::format("reading stopped: {}", std::strerror(errno));
      fd_.reset();
    }
    return 0;
  }

  [[nodiscard]] std::string remark() const override { return remark_; }

 private:
  /// True if there is something to read, or the end.
  bool wait() {
    constexpr std::chrono::milliseconds kStep{200};
    for (;;) {
      if (patience_.enough && patience_.enough()) return stop("reading was stopped");
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until_ - Clock::now());
      if (left.count() <= 0) {
        return stop(fmt::format("no end of input within {} s",
                                std::chrono::round<std::chrono::seconds>(patience_.longest).count()));
      }
      struct pollfd about {
        fd_.get(), POLLIN, 0
      };
      if (::poll(&about, 1, static_cast<int>(std::min(left, kStep).count())) > 0) return true;
    }
  }

  bool stop(std::string why) {
    remark_ = std::move(why);
    fd_.reset();
    return false;
  }

  UniqueFd fd_;
  Patience patience_;
  Clock::time_point until_;
  bool ends_ = false;
  std::string remark_;
};

class PrefixedSource : public ByteSource {
 public:
  PrefixedSource(std::string first, std::unique_ptr<ByteSource> rest)
      : first_(std::move(first)), rest_(std::move(rest)) {}

  std::size_t read(std::span<char> room) override {
    if (at_ == first_.size()) return rest_->read(room);
    const auto part = std::min(room.size(), first_.size() - at_);
    std::copy_n(first_.data() + at_, part, room.data());
    at_ += part;
    return part;
  }
  [[nodiscard]] std::string remark() const override { return rest_->remark(); }

 private:
  std::string first_;
  std::size_t at_ = 0;
  std::unique_ptr<ByteSource> rest_;
};

}  // namespace

Result<UniqueFd> open_for_reading(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return failure("sys.read", "cannot read {}: {}", path.string(), std::strerror(errno));
  return fd;
}

std::unique_ptr<ByteSource> fd_source(UniqueFd fd, Patience patience) {
  return std::make_unique<FdSource>(std::move(fd), std::move(patience));
}

std::unique_ptr<ByteSource> prefixed(std::string first, std::unique_ptr<ByteSource> rest) {
  return std::make_unique<PrefixedSource>(std::move(first), std::move(rest));
}

std::size_t read_full(ByteSource& source, std::span<char> room) {
  std::size_t all = 0;
  while (all < room.size()) {
    const auto got = source.read(room.subspan(all));
    if (got == 0) break;
    all += got;
  }
  return all;
}

}  // namespace nlaunch::sys
