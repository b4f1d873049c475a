#include "supervise/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/text.h"
#include "sys/blocked_signals.h"
#include "sys/files.h"

namespace nlaunch::supervise {
namespace {

/// Opens the same terminal or pipe again, so that it can be non-blocking only for us (the shell shares the
/// caller's descriptor). A regular file keeps the shared description: it has the file position, and never
/// blocks.
sys::UniqueFd open_again(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) == 0 && (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode))) {
    const auto path = fmt::format("/proc/self/fd/{}", fd);
    sys::UniqueFd own(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (own) return own;
  }
  return sys::UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

constexpr std::string_view kNotice = "nlaunch: ";
constexpr std::string_view kNoticeEnd = " skipped: the terminal was too slow; the log files have them\n";

/// The piece for one write: whole lines that a pipe accepts completely or not at all; of a longer line, a
/// part.
std::size_t next_piece(std::string_view text) {
  constexpr std::size_t kWhole = PIPE_BUF;
  if (text.size() <= kWhole) return text.size();
  const auto end = text.rfind('\n', kWhole - 1);
  return end == std::string_view::npos ? kWhole : end + 1;
}

/// Removes rows from the screen, on the last of which the cursor is (ECMA-48, 8.3.22 CUU and 8.3.39 ED).
std::string erasure(std::string_view rows) {
  if (rows.empty()) return "";
  const auto above = std::ranges::count(rows, '\n');
  return "\r" + (above > 0 ? fmt::format("\x1b[{}A", above) : "") + "\x1b[J";
}

bool same_file(int a, int b) {
  struct stat one {};
  struct stat other {};
  return ::fstat(a, &one) == 0 && ::fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

}  // namespace

/// Shared with the thread, which can outlive the Terminal if a write never returns.
struct Terminal::Queue {
  sys::UniqueFd fd;
  std::size_t limit = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::string pending;
  std::size_t being_written = 0;  ///< bytes, without the footer
  bool writing = false;
  std::string footer;             ///< rows that are to be shown
  std::string drawn;              ///< rows that are shown
  std::function<bool()> is_ours;  ///< see draw_while; empty: always
  bool hidden = false;            ///< the footer could not be drawn; the next one may be
  Skipped skipped;
  Skipped unsaid;                     ///< skipped, and not reported there yet
  std::atomic<bool> blocked = false;  ///< the last write would have blocked
  bool closing = false;
  bool gone = false;                   ///< the reader is gone
  std::atomic<bool> given_up = false;  ///< unwritten output is skipped

  /// Whether there is room for this many bytes. If the terminal accepts output, waits briefly: then only our
  /// thread has not been scheduled.
  bool has_room(std::unique_lock<std::mutex>& lock, std::size_t bytes) {
    constexpr std::chrono::milliseconds kMoment{50};
    const auto room = [&] { return gone || pending.size() + being_written + bytes <= limit; };
    if (!room() && !blocked && !changed.wait_for(lock, kMoment, room)) blocked = true;
    return room() && !gone;
  }

  /// Nothing is left to be written.
  [[nodiscard]] bool is_idle() const { return pending.empty() && (footer == drawn || hidden); }

  [[nodiscard]] bool may_draw() const { return !is_ours || (footer.empty() && drawn.empty()) || is_ours(); }

  void say_skipped() {
    if (unsaid.lines == 0) return;
    pending += fmt::format("{}{} ({}){}", kNotice, text::count(unsaid.lines, "line"),
                           format_size(unsaid.bytes), kNoticeEnd);
    unsaid = {};
  }

  /// Counts `text` as skipped. Notices about skipped lines do not count.
  void skip(std::string_view text) {
    while (!text.empty()) {
      const auto line = text.substr(0, text.find('\n') + 1);
      text.remove_prefix(line.empty() ? text.size() : line.size());
      if (line.starts_with(kNotice) && line.ends_with(kNoticeEnd)) continue;
      ++skipped.lines;
      skipped.bytes += line.size();
    }
  }

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return closing || !is_idle(); });
      if (is_idle()) return;
      const auto text = std::exchange(pending, {});
      being_written = text.size();
      writing = true;
      hidden = !may_draw();
      const auto block = hidden ? text : erasure(drawn) + text + footer;
      drawn = hidden ? "" : footer;
      lock.unlock();
      const auto rest = write_block(block);
      lock.lock();
      gone = gone || !rest;
      if (rest && rest->size() > drawn.size()) skip(rest->substr(0, rest->size() - drawn.size()));
      being_written = 0;
      writing = false;
      if (given_up) {
        skip(std::exchange(pending, {}));
        footer = drawn;
      }
      if (!gone && !given_up) say_skipped();
      changed.notify_all();
    }
  }

  /// What was not written because it was given up; empty if the other end is gone.
  std::optional<std::string_view> write_block(std::string_view block) {
    constexpr int kGlance = 20;  // milliseconds
    while (!block.empty() && !given_up) {
      const auto written = ::write(fd.get(), block.data(), next_piece(block));
      if (written >= 0) {
        blocked = false;
        block.remove_prefix(static_cast<std::size_t>(written));
      } else if (errno == EAGAIN) {
        blocked = true;
        pollfd ready{fd.get(), POLLOUT, 0};
        ::poll(&ready, 1, kGlance);
      } else if (errno != EINTR) {
        return std::nullopt;
      }
    }
    return block;
  }
};

std::shared_ptr<Terminal::Queue> Terminal::begin(int fd, std::size_t limit) {
  auto queue = std::make_shared<Queue>();
  queue->fd = open_again(fd);
  queue->limit = limit;
  const sys::BlockedSignals blocked;
  std::thread([queue] { queue->run(); }).detach();
  return queue;
}

Terminal::Terminal(int fd, std::size_t queue) : queue_(begin(fd, queue)) {}

void Terminal::reopen(int fd) {
  const auto next = begin(fd, queue_->limit);
  const std::lock_guard lock(queue_->mutex);
  next->skipped = queue_->skipped;
  next->is_ours = queue_->is_ours;
  queue_->given_up = queue_->closing = true;
  queue_->changed.notify_all();
  queue_ = next;
}

Terminal::~Terminal() {
  constexpr std::chrono::milliseconds kLastWords{500};
  finish(kLastWords);
  const std::lock_guard lock(queue_->mutex);
  queue_->closing = true;
  queue_->changed.notify_all();
}

void Terminal::write(std::string_view text, std::size_t lines) {
  if (text.empty()) return;
  std::unique_lock lock(queue_->mutex);
  auto& queue = *queue_;
  if (queue.given_up || !queue.has_room(lock, text.size())) {
    for (auto* count : {&queue.skipped, &queue.unsaid}) {
      count->lines += lines;
      count->bytes += text.size();
    }
    return;
  }
  const bool idle = queue.pending.empty();
  queue.say_skipped();
  queue.pending += text;
  if (idle) queue.changed.notify_all();
}

void Terminal::set_footer(const std::vector<std::string>& rows) {
  const std::lock_guard lock(queue_->mutex);
  if (queue_->given_up) return;
  queue_->footer = text::join(rows, "\n");
  queue_->hidden = false;
  queue_->changed.notify_all();
}

void Terminal::draw_while(std::function<bool()> is_ours) {
  const std::lock_guard lock(queue_->mutex);
  queue_->is_ours = std::move(is_ours);
}

bool Terminal::flush(Duration limit) {
  std::unique_lock lock(queue_->mutex);
  return queue_->changed.wait_for(lock, limit,
                                  [&] { return queue_->gone || (queue_->is_idle() && !queue_->writing); });
}

void Terminal::finish(Duration limit) {
  constexpr std::chrono::milliseconds kToNotice{200};
  set_footer({});
  if (flush(limit)) return;
  queue_->given_up = true;
  flush(kToNotice);  // unless a write never returns
}

Terminal::Skipped Terminal::skipped() const {
  const std::lock_guard lock(queue_->mutex);
  return queue_->skipped;
}

RunTerminal::RunTerminal(int output, int messages) : output_(output) {
  if (!same_file(output, messages)) messages_ = std::make_unique<Terminal>(messages);
}

RunTerminal::RunTerminal() : RunTerminal(STDOUT_FILENO, STDERR_FILENO) {}

}  // namespace nlaunch::supervise
