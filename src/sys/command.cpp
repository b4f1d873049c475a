#include "sys/command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include "sys/files.h"
#include "sys/pidfd.h"

namespace nlaunch::sys {
namespace {

using Clock = std::chrono::steady_clock;

thread_local std::function<bool()> cut_short;
/// How often it is polled.
constexpr Duration kGlance = std::chrono::milliseconds(50);

/// Reads what is available; false at the end of the stream.
bool drain(int fd, std::string& into, std::size_t limit) {
  std::array<char, 65536> block;
  for (;;) {
    const auto got = ::read(fd, block.data(), block.size());
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    into.append(block.data(), std::min(static_cast<std::size_t>(got), limit - std::min(limit, into.size())));
  }
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<Duration>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<Duration::rep>(left + 1, 0, 1000000));
}

/// Waits for the process to exit while reading its outputs; false at the deadline, or if `enough` returned
/// true.
bool follow(pid_t pid, std::array<pollfd, 3>& watched, CommandResult& result, std::size_t limit,
            Clock::time_point deadline, const std::function<bool()>& enough) {
  // Linux before 5.3 has no pidfd: then nothing reports that the process has exited.
  const bool glances = enough || watched.back().fd < 0;
  while (Clock::now() < deadline && !(enough && enough())) {
    ::poll(watched.data(), watched.size(),
           milliseconds_until(glances ? std::min(deadline, Clock::now() + kGlance) : deadline));
    const std::array<std::string*, 2> outputs{&result.out, &result.err};
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (watched[i].revents != 0 && !drain(watched[i].fd, *outputs[i], limit)) watched[i].fd = -1;
    }
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) != pid) continue;
    result.status = WaitStatus(status);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (watched[i].fd >= 0) drain(watched[i].fd, *outputs[i], limit);
    }
    return true;
  }
  return false;
}

}  // namespace

Result<CommandResult> run_command(SpawnRequest request, Duration deadline, std::size_t limit) {
  auto out = make_pipe();
  if (!out) return std::unexpected(out.error());
  auto err = make_pipe();
  if (!err) return std::unexpected(err.error());
  request.out = out->write.get();
  request.err = err->write.get();
  request.new_session = true;
  const auto pid = spawn(request);
  if (!pid) return std::unexpected(pid.error());
  out->write.reset();
  err->write.reset();
  for (const int fd : {out->read.get(), err->read.get()}) ::fcntl(fd, F_SETFL, O_NONBLOCK);

  CommandResult result;
  const auto handle = open_pidfd(*pid);
  std::array<pollfd, 3> watched{pollfd{out->read.get(), POLLIN, 0}, pollfd{err->read.get(), POLLIN, 0},
                                pollfd{handle.get(), POLLIN, 0}};
  if (follow(*pid, watched, result, limit, Clock::now() + deadline, cut_short)) return result;
  result.timed_out = true;
  ::kill(-*pid, SIGKILL);
  ::kill(*pid, SIGKILL);
  constexpr std::chrono::milliseconds kForTheKill{900};
  follow(*pid, watched, result, limit, Clock::now() + kForTheKill, {});
  return result;
}

CutShort::CutShort(std::function<bool()> enough) : before_(std::exchange(cut_short, std::move(enough))) {}

CutShort::~CutShort() {
  cut_short = std::move(before_);
}

}  // namespace nlaunch::sys
