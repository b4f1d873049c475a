#include "sys/loop.h"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <map>
#include <utility>

#include "sys/blocked_signals.h"
#include "sys/loop_access.h"

namespace nlaunch::sys {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// A descriptor that asio watches and its owner closes.
struct Watched {
  explicit Watched(asio::io_context& context, int fd) : descriptor(context, fd) {}
  ~Watched() { descriptor.release(); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  asio::posix::stream_descriptor descriptor;
  Loop::Callback readable;
};

/// Restores a signal's disposition when destroyed. Asio leaves the default behind, which would kill a process
/// that had a handler before.
class Disposition {
 public:
  explicit Disposition(int signal) : signal_(signal) { ::sigaction(signal, nullptr, &before_); }
  ~Disposition() {
    struct sigaction now {};
    // If another loop, or other code, has the signal by now, it keeps it.
    if (::sigaction(signal_, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
      ::sigaction(signal_, &before_, nullptr);
  }
  Disposition(const Disposition&) = delete;
  Disposition& operator=(const Disposition&) = delete;

 private:
  int signal_;
  struct sigaction before_ {};
};

}  // namespace

struct Loop::State {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::map<TimerId, asio::steady_timer> timers;
  TimerId next_timer = 1;
  std::map<int, std::shared_ptr<Watched>> watched;
  std::map<int, Disposition> dispositions;
  std::map<int, std::unique_ptr<asio::signal_set>> signals;
  std::map<pid_t, std::function<void(WaitStatus)>> children;

  void await_readable(const std::shared_ptr<Watched>& entry) {
    entry->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                 [this, weak = std::weak_ptr(entry)](const error_code& error) {
                                   const auto live = weak.lock();
                                   if (error || !live) return;
                                   live->readable();
                                   if (live.use_count() > 1)
                                     await_readable(live);  // not unwatched in the meantime
                                 });
  }

  void await_signal(asio::signal_set& set, const Callback& then) {
    set.async_wait([this, &set, then](const error_code& error, int) {
      if (error) return;
      then();
      await_signal(set, then);
    });
  }

  void reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid <= 0) return;
      const auto found = children.find(pid);
      if (found == children.end()) continue;
      const auto ended = std::move(found->second);
      children.erase(found);
      ended(WaitStatus(status));
    }
  }
};

boost::asio::io_context& LoopAccess::context(Loop& loop) {
  return loop.state_->context;
}

Loop::Loop() : state_(std::make_unique<State>()) {
  on_signal(SIGCHLD, [this] { state_->reap(); });
}

Loop::~Loop() {
  // A signal that arrives meanwhile belongs to the previous handler.
  const BlockedSignals blocked;
  state_.reset();
}

Loop::TimerId Loop::after(Duration delay, Callback then) {
  const auto id = state_->next_timer++;
  auto [entry, inserted] = state_->timers.try_emplace(id, state_->context, delay);
  entry->second.async_wait([this, id, then = std::move(then)](const error_code& error) {
    if (error || state_->timers.erase(id) == 0) return;
    then();
  });
  return id;
}

void Loop::cancel(TimerId timer) {
  state_->timers.erase(timer);
}

void Loop::on_signal(int signal, Callback then) {
  state_->dispositions.try_emplace(signal, signal);
  auto& set = state_->signals[signal];
  set = std::make_unique<asio::signal_set>(state_->context, signal);
  state_->await_signal(*set, then);
}

void Loop::watch(int fd, Callback readable) {
  auto entry = std::make_shared<Watched>(state_->context, fd);
  entry->readable = std::move(readable);
  state_->watched[fd] = entry;
  state_->await_readable(entry);
}

void Loop::unwatch(int fd) {
  state_->watched.erase(fd);
}

void Loop::on_child(pid_t pid, std::function<void(WaitStatus)> ended) {
  state_->children[pid] = std::move(ended);
}

void Loop::forget_child(pid_t pid) {
  state_->children.erase(pid);
}

void Loop::post(Callback then) {
  asio::post(state_->context, std::move(then));
}

void Loop::run() {
  state_->context.restart();
  // A child may have exited before it was announced: its SIGCHLD is gone then.
  post([this] { state_->reap(); });
  state_->context.run();
}

void Loop::stop() {
  state_->context.stop();
}

}  // namespace nlaunch::sys
