#include "sys/exec_check.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::sys {

/// Its output goes into memory: it cannot block on it, and nobody has to read it while the program runs.
struct ExecCheck::State {
  Loop& loop;
  UniqueFd output{::memfd_create("output", MFD_CLOEXEC)};
  pid_t pid = 0;
  Loop::TimerId failed = 0;

  [[nodiscard]] std::string last_line() const {
    constexpr off_t kLongest = 500;
    std::string end(kLongest, '\0');
    struct stat info {};
    ::fstat(output.get(), &info);
    const auto got =
        ::pread(output.get(), end.data(), end.size(), std::max<off_t>(0, info.st_size - kLongest));
    end.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
    const auto lines = text::trim(end);
    return text::printable(text::trim(lines.substr(lines.rfind('\n') + 1)));
  }
};

ExecCheck::ExecCheck(Loop& loop, SpawnRequest request, Done done)
    : state_(std::make_unique<State>(State{.loop = loop})) {
  request.out = request.err = state_->output.get();
  const auto pid = spawn(request);
  if (!pid) {  // reported later, like every result
    state_->failed = loop.after(Duration::zero(),
                                [done = std::move(done), why = pid.error().first_message()] { done(why); });
    return;
  }
  state_->pid = *pid;
  loop.on_child(*pid, [state = state_.get(), done = std::move(done)](WaitStatus status) {
    state->pid = 0;
    if (status.ok()) return done(std::nullopt);
    const auto line = state->last_line();
    done(line.empty() ? status.str() : fmt::format("{}: {}", status.str(), line));
  });
}

ExecCheck::~ExecCheck() {
  state_->loop.cancel(state_->failed);
  if (state_->pid == 0) return;
  state_->loop.forget_child(state_->pid);
  ::kill(-state_->pid, SIGKILL);
  // So that the next search for leftovers does not find it. One that the driver holds is left to that search.
  constexpr int kLooks = 50;
  for (int i = 0; i < kLooks && ::waitpid(state_->pid, nullptr, WNOHANG) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::string ExecCheck::said() const {
  constexpr std::size_t kMost = 1U << 20U;
  std::string all(kMost, '\0');
  const auto got = ::pread(state_->output.get(), all.data(), all.size(), 0);
  all.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return all;
}

std::string ExecCheck::last_line() const {
  return state_->last_line();
}

}  // namespace nlaunch::sys
