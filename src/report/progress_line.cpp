#include "report/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>

#include "base/text.h"
#include "sys/blocked_signals.h"

namespace nlaunch::report {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kEmptyLine = "\r\x1b[K";

std::size_t columns() {
  winsize size{};
  constexpr std::size_t kUsual = 80;
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

/// Limited to the width of the terminal: a wrapped line cannot be erased.
std::string cut(const std::string& line, std::size_t width) {
  std::string out;
  std::size_t count = 0;
  for (const auto character : text::characters(line)) {
    if (++count >= width) break;
    out += character;
  }
  return out;
}

}  // namespace

ProgressLine::ProgressLine(const Console& console) : console_(console) {
  if (console.quiet) return;
  if (::isatty(STDERR_FILENO) == 1 && console.paint.on() && !console.plain)
    terminal_ = std::make_unique<supervise::Terminal>(STDERR_FILENO);
  const sys::BlockedSignals blocked;
  ticker_ = std::thread([this] { terminal_ ? tick() : tell_now_and_then(); });
}

ProgressLine::~ProgressLine() {
  if (!ticker_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  ticker_.join();
  if (terminal_ && may_draw()) terminal_->write(kEmptyLine, 0);
}

std::function<void(const std::string&)> ProgressLine::teller() {
  if (!ticker_.joinable()) return {};
  return [this](const std::string& words) {
    {
      const std::lock_guard lock(mutex_);
      words_ = words;
    }
    changed_.notify_all();
  };
}

/// Draws on every change, but at most ten times a second, and at least once a second.
void ProgressLine::tick() {
  std::unique_lock lock(mutex_);
  std::string drawn;
  while (!done_) {
    changed_.wait_for(lock, 1s, [&] { return done_ || words_ != drawn; });
    if (done_) return;
    drawn = words_;
    if (!drawn.empty() && may_draw()) draw();
    changed_.wait_for(lock, 100ms, [&] { return done_; });
  }
}

void ProgressLine::tell_now_and_then() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, 30s, [&] { return done_; })) {
    const auto words = words_;
    if (words.empty()) continue;
    // A standard error that nobody reads holds up this thread alone.
    lock.unlock();
    console_.say(fmt::format("nlaunch: after {} s: {}\n", seconds(), words));
    lock.lock();
  }
}

bool ProgressLine::may_draw() const {
  return !console_.in_foreground || console_.in_foreground();
}

long long ProgressLine::seconds() const {
  using Seconds = std::chrono::seconds;
  return std::chrono::duration_cast<Seconds>(std::chrono::steady_clock::now() - begin_).count();
}

void ProgressLine::draw() {
  const auto line = fmt::format("{:>4} s  {}", seconds(), text::printable(words_));
  terminal_->write(std::string(kEmptyLine) + cut(line, columns()), 0);
}

}  // namespace nlaunch::report
