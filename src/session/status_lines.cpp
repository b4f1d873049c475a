#include "session/status_lines.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <thread>

#include "base/text.h"
#include "session/live_run.h"
#include "sys/blocked_signals.h"

namespace nlaunch::session {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kWithoutTerminal = 30s;
constexpr auto kMoment = 500ms;  // for the thread, and for the footer to vanish from the screen

std::size_t columns_of_terminal() {
  winsize size{};
  constexpr std::size_t kUsual = 80;
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

report::Console::Diversion diverted(supervise::RunTerminal& terminal, const report::Console& console) {
  return console.divert([&terminal](std::string_view text) {
    terminal.messages().write(text, static_cast<std::size_t>(std::ranges::count(text, '\n')));
  });
}

}  // namespace

struct StatusLines::State {
  std::filesystem::path folder;
  supervise::RunTerminal& terminal;
  const bool footer;
  const report::Paint paint;
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;  ///< then the terminal may be gone
  bool left = false;  ///< the thread does nothing more

  /// Until the run is over. A run directory that cannot be read has no status.
  void show() {
    std::optional<LiveRun> run;  // without a footer, a short run is not read at all
    auto next = Clock::now() + (footer ? Clock::duration(0) : kWithoutTerminal);
    for (;;) {
      std::unique_lock lock(mutex);
      if (changed.wait_until(lock, next, [&] { return over; })) return;
      lock.unlock();
      const auto begin = Clock::now();
      if (!run) {
        auto opened = LiveRun::open("", folder.string());
        if (!opened) return;
        run.emplace(std::move(*opened));
      }
      auto view = run->refresh();
      for (const auto& stage : view.stages)
        if (stage.awaited) run->look_at(view.processes[*stage.awaited]);
      lock.lock();
      if (over) return;
      tell(view);
      next = footer ? next_reading(begin) : begin + kWithoutTerminal;
    }
  }

  void tell(const report::TopView& view) {
    if (footer) {
      const auto rows = report::screen_text(report::footer(view, columns_of_terminal() - 1), paint);
      terminal.output().set_footer(text::split(text::trim(rows), '\n'));
    } else if (const auto waits = report::waiting_text(view); !waits.empty()) {
      terminal.messages().write(fmt::format("nlaunch: {}\n", waits), 1);
    }
  }
};

StatusLines::StatusLines(const std::filesystem::path& run_folder, supervise::RunTerminal& terminal,
                         const report::Console& console)
    : state_(std::make_shared<State>(run_folder, terminal, console.footer, console.result_paint)),
      diversion_(diverted(terminal, console)) {
  terminal.output().draw_while(console.in_foreground);
  const sys::BlockedSignals blocked;
  std::thread([state = state_] {
    try {
      state->show();
    } catch (const std::exception&) {
      // Commands that need the run directory report why it cannot be read.
    }
    const std::lock_guard lock(state->mutex);
    state->left = true;
    state->changed.notify_all();
  }).detach();
}

StatusLines::~StatusLines() {
  {
    std::unique_lock lock(state_->mutex);
    state_->over = true;
    state_->changed.notify_all();
    state_->changed.wait_for(lock, kMoment, [this] { return state_->left; });
  }
  if (!state_->footer) return;
  state_->terminal.output().set_footer({});
  state_->terminal.output().flush(kMoment);
}

}  // namespace nlaunch::session
