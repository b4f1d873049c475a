#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/exit_code.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/screen.h"
#include "launch/install.h"
#include "session/live_run.h"
#include "session/run_view.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

using Clock = std::chrono::steady_clock;

struct TopArgs {
  std::string run;
  std::string runs_dir = "runs";
  bool once = false;
};

/// Of a file or a pipe: as COLUMNS says, else 120.
std::size_t width_without_terminal() {
  constexpr std::size_t kWidth = 120;
  const char* columns = std::getenv("COLUMNS");
  return columns == nullptr ? kWidth : text::whole_number<std::size_t>(columns).value_or(kWidth);
}

/// Up to so many processes, all are looked at, so that those behind come first; of more, those on the screen.
constexpr std::size_t kLookAtAll = 256;

void look_at(LiveRun& run, report::TopView& view, const report::TopChoice& choice,
             const report::Screen& screen) {
  if (view.processes.size() <= kLookAtAll) {
    for (auto& process : view.processes) run.look_at(process);
    return;
  }
  for (const auto row : report::top_rows(view, choice, screen)) run.look_at(view.processes[row]);
}

/// What the person does, until they quit.
class Interaction {
 public:
  Interaction(LiveRun& run, TerminalScreen& screen) : run_(run), screen_(screen) {}

  void go_on() {
    for (;;) {
      const auto begin = Clock::now();
      auto view = run_.refresh();
      look_at(run_, view, choice_, screen_.size());
      const auto until = next_reading(begin);
      bool looked_again = false;
      do {
        screen_.draw(report::top_screen(view, shown(), screen_.size()));
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
        const auto key = screen_.wait(std::max(left, std::chrono::milliseconds(0)));
        if (!key) {
          std::this_thread::sleep_until(until);  // at once, where the terminal has gone away
          break;
        }
        if (!take(*key, view)) return;
        // Rows that come onto the screen have to be looked at.
        looked_again = view.processes.size() > kLookAtAll;
        if (looked_again) look_at(run_, view, choice_, screen_.size());
      } while (Clock::now() < until);
    }
  }

 private:
  enum class Mode { keys, filter, stop };

  [[nodiscard]] report::TopChoice shown() const {
    auto out = choice_;
    if (mode_ == Mode::filter) out.message = "filter: " + choice_.filter + "_";
    if (mode_ == Mode::stop) out.message = fmt::format("stop run {}? y/n", run_.id());
    return out;
  }

  /// False: quit.
  bool take(const KeyPress& press, const report::TopView& view) {
    if (mode_ == Mode::filter) return take_filter(press);
    if (mode_ == Mode::stop) {
      if (press.character == 'y') command({"stop"}, false);
      mode_ = Mode::keys;
      return true;
    }
    const auto rows = report::top_order(view, choice_.filter);
    const auto last = rows.empty() ? 0 : rows.size() - 1;
    const auto page = screen_.size().height / 2;
    auto selected = std::min(choice_.selected.value_or(0), last);
    if (press.key == Key::up) selected -= std::min<std::size_t>(1, selected);
    if (press.key == Key::down) selected = std::min(selected + 1, last);
    if (press.key == Key::page_up) selected -= std::min(page, selected);
    if (press.key == Key::page_down) selected = std::min(selected + page, last);
    if (press.key == Key::first) selected = 0;
    if (press.key == Key::last) selected = last;
    choice_.selected = selected;
    if (press.key == Key::escape) choice_.filter.clear();
    if (press.key == Key::enter && !rows.empty()) {
      if (const auto log = run_.log_of(view.processes[rows[selected]].name))
        screen_.hand_over({"/bin/sh", "-c", "exec ${PAGER:-less +G} \"$0\"", log->string()});
    }
    switch (press.character) {
      case 'q':
        return false;
      case '/':
        mode_ = Mode::filter;
        break;
      case 'e':
        command({"evidence"}, true);
        break;
      case 's':
        mode_ = Mode::stop;
        break;
      default:
        break;
    }
    return true;
  }

  bool take_filter(const KeyPress& press) {
    if (press.key == Key::enter) mode_ = Mode::keys;
    if (press.key == Key::escape) {
      choice_.filter.clear();
      mode_ = Mode::keys;
    }
    if (press.key == Key::backspace && !choice_.filter.empty()) choice_.filter.pop_back();
    if (press.character != 0) choice_.filter += press.character;
    choice_.selected = 0;
    return true;
  }

  /// Another command of nlaunch for this run, on the terminal.
  void command(std::vector<std::string> words, bool wait) {
    words.insert(words.begin(), launch::find_install().program);
    words.push_back(run_.folder().string());
    auto line = text::shell_join(words);
    if (wait) line += "; printf 'Enter goes back\\n'; read -r answer";
    screen_.hand_over({"/bin/sh", "-c", line});
  }

  LiveRun& run_;
  TerminalScreen& screen_;
  report::TopChoice choice_{.selected = 0};
  Mode mode_ = Mode::keys;
};

int run_top(const TopArgs& args, const Context& context) {
  std::string which = args.run;
  if (which.empty()) {
    const auto newest = newest_run(args.runs_dir);
    if (!newest) return context.console.error(newest.error());
    which = newest->string();
  }
  auto run = LiveRun::open(args.runs_dir, which);
  if (!run) return context.console.error(run.error());
  if (args.once) {
    auto view = run->refresh();
    for (auto& process : view.processes) run->look_at(process);
    const auto& paint = context.console.result_paint;
    const auto width = paint.width() > 0 ? paint.width() : width_without_terminal();
    const auto lines = report::top_screen(view, {}, {width, 0});
    context.console.result(report::screen_text(lines, paint));
    return exit_code::ok;
  }
  const auto screen = TerminalScreen::open();
  if (!screen) {
    context.console.say("nlaunch top: needs a terminal; --once prints one screen\n");
    return exit_code::usage;
  }
  Interaction(*run, *screen).go_on();
  return exit_code::ok;
}

void add_top(Command program, Context& context) {
  auto args = std::make_shared<TopArgs>();
  auto command = program.subcommand("top", "Watch a run live: steps, stages, processes, GPUs")
                     .examples({"nlaunch top", "nlaunch top grpo --once"});
  command.option("RUN", args->run, fmt::format("{}; without, the newest run", kRunHelp));
  command.flag("--once", args->once, "Print one screen and exit");
  command.option("--runs-dir", args->runs_dir, "Directory that contains the runs [default: runs]");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_top(*args, context); }; });
}

const Registered<cli::CommandEntry> top_command{{"top", 122, add_top, CommandGroup::see}};

}  // namespace

}  // namespace nlaunch::commands
