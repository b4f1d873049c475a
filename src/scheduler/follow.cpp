#include "scheduler/follow.h"

#include <fcntl.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/install.h"
#include "launch/run_dir/run_folder.h"
#include "plan/json.h"
#include "report/plan_text.h"
#include "session/interrupts.h"
#include "session/status_lines.h"
#include "supervise/events.h"
#include "supervise/lines.h"
#include "sys/files.h"

namespace nlaunch::scheduler {

using session::Caller;
using session::Interrupts;
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// All users of the site share a scheduler: it is not queried more often.
constexpr Duration kAskAgain = 3s;
constexpr Duration kGlance = 200ms;
/// A shared file system shows another node's file some time after it was written.
constexpr Duration kForTheSummary = 20s;

/// A file system that does not answer counts as not having the file.
bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// Reads what is appended to a file.
class Tail {
 public:
  using Print = std::function<void(std::string_view bytes)>;

  void print_new(const fs::path& path, const Print& print) {
    if (!fd_ && !path.empty()) fd_ = sys::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 65536> block;
    for (;;) {
      const auto got = fd_ ? ::read(fd_.get(), block.data(), block.size()) : 0;
      if (got <= 0) return;
      print({block.data(), static_cast<std::size_t>(got)});
    }
  }

 private:
  sys::UniqueFd fd_;
};

/// The log of a job: byte for byte, or in printable lines above a footer that shows what the run is doing.
class Shown {
 public:
  Shown(const fs::path& run, const report::Console& console) : console_(console) {
    if (!console.footer) return;
    terminal_.emplace();
    status_.emplace(run, *terminal_, console);
  }
  ~Shown() {
    std::string rest;
    const auto lines = lines_.finish(rest);
    print_lines(rest, lines);
  }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

  void print(std::string_view bytes) {
    if (!terminal_) return console_.document(bytes);
    std::string shown;
    const auto lines = lines_.feed(bytes, shown);
    print_lines(shown, lines);
  }

 private:
  void print_lines(std::string_view text, std::size_t lines) {
    constexpr Duration kForTheTerminal = 5s;  // of a paused one, a reader loses no line without a notice
    if (!terminal_ || text.empty()) return;
    terminal_->output().write(text, lines);
    terminal_->output().flush(kForTheTerminal);
  }

  const report::Console& console_;
  std::optional<supervise::RunTerminal> terminal_;
  std::optional<session::StatusLines> status_;
  supervise::FollowedLines lines_;
};

class Follower {
 public:
  Follower(const Scheduler& scheduler, std::string_view title, std::string job_id, std::string log,
           fs::path run, const Caller& caller)
      : scheduler_(scheduler),
        title_(title),
        job_id_(std::move(job_id)),
        known_log_(std::move(log)),
        run_(std::move(run)),
        caller_(caller) {}

  int follow() {
    const Interrupts interrupts;
    return watch() ? end() : detach();
  }

 private:
  /// Until the job is over; false: a person wants to detach before.
  bool watch() {
    Shown shown(run_, caller_.console);
    const auto print = [&](std::string_view bytes) { shown.print(bytes); };
    for (;;) {
      if (Interrupts::received() != 0) return false;
      if (Clock::now() >= next_) ask();
      log_.print_new(state_ ? state_->log : "", print);
      if (gone_ && (is_there(run_ / "summary.json") || Clock::now() > *gone_ + kForTheSummary)) break;
      std::this_thread::sleep_for(kGlance);
    }
    log_.print_new(state_ ? state_->log : "", print);
    return true;
  }

  void ask() {
    next_ = Clock::now() + kAskAgain;
    auto asked = scheduler_.state(job_id_, caller_.environment);
    if (!asked) {
      if (!std::exchange(troubled_, true))
        caller_.console.say(fmt::format("nlaunch: {}; retrying\n", asked.error().first_message()));
      // The run's own summary is enough; and without its directory there is nothing left to wait for.
      if (!gone_ && (is_there(run_ / "summary.json") || !is_there(run_))) gone_ = Clock::now();
      return;
    }
    troubled_ = false;
    if (*asked) state_ = std::move(**asked);
    if (state_ && state_->log.empty()) state_->log = known_log_;
    if ((!*asked || state_->phase == JobState::Phase::over) && !gone_) gone_ = Clock::now();
    if (*asked) say_state();
  }

  /// Prints a line if the state has changed.
  void say_state() {
    std::string line;
    if (state_->phase == JobState::Phase::pending) {
      line =
          fmt::format("job {} is waiting{}{}", job_id_, state_->reason.empty() ? "" : ": " + state_->reason,
                      state_->start.empty() ? "" : ", expected to start at " + state_->start);
    } else if (state_->phase != JobState::Phase::over) {
      line = fmt::format("job {} runs on {}", job_id_, state_->nodes);
    }
    if (line == said_ || line.empty()) return;
    said_ = line;
    if (!caller_.console.quiet) caller_.console.say(line + "\n");
  }

  int detach() {
    caller_.console.say(
        fmt::format("\ndetached; job {0} keeps running. To follow it again: nlaunch logs -f {1}; to check "
                    "it: nlaunch ps {1}; to stop it: nlaunch stop {1}\n",
                    job_id_, run_.string()));
    return exit_code::ok;
  }

  int end() {
    const auto text = sys::read_regular_file(run_ / "summary.json", 256U << 20U, sys::Links::refused);
    const auto summary = text ? parse_json(*text) : nlohmann::json();
    if (summary.is_object()) return summary.value("exit_code", exit_code::internal);
    const auto log = state_ ? state_->log : "unknown";
    if (troubled_) {
      caller_.console.say(fmt::format(
          "nlaunch: {} does not report the state of job {}, and {} no longer exists; its log: {}\n", title_,
          job_id_, run_.string(), log));
      return exit_code::internal;
    }
    caller_.console.say(fmt::format(
        "nlaunch: job {} ended{} without a summary in {}; its log: {}\n", job_id_,
        state_ ? fmt::format(" ({}{})", state_->state, state_->reason.empty() ? "" : ", " + state_->reason)
               : "",
        run_.string(), log));
    return exit_code::internal;
  }

  const Scheduler& scheduler_;
  std::string_view title_;
  std::string job_id_;
  std::string known_log_;  ///< empty: reported by the state
  fs::path run_;
  const Caller& caller_;
  Tail log_;
  Clock::time_point next_ = Clock::now();
  std::optional<JobState> state_;
  std::optional<Clock::time_point> gone_;
  std::string said_;
  bool troubled_ = false;
};

void say_notes(const std::vector<std::string>& notes, const Caller& caller) {
  for (const auto& note : notes)
    caller.console.say(fmt::format("{} {}\n", caller.console.paint.yellow("note:"), note));
}

}  // namespace

int FollowedScheduler::submit(const plan::Plan& plan, const SubmitOptions& options,
                              const Caller& caller) const {
  const auto program = find_program(plan, caller.environment);
  if (!program) {
    caller.console.error(program.error());
    return exit_code::usage;
  }
  const auto notes = check(plan, caller.environment);
  if (!notes) return caller.console.error(notes.error());
  say_notes(*notes, caller);
  const auto paths = launch::make_run_folder(options.runs_dir, plan.name);
  if (!paths) return caller.console.error(paths.error());
  const auto file = paths->folder / file_name();
  JobRequest request{options.runs_dir, launch::find_install().program, options.arguments, file.string(),
                     paths->folder.string()};
  request.arguments.insert(request.arguments.end(), {"--run-dir", request.run_dir});
  const auto rendered = render(plan, request, caller.environment);
  if (!rendered) return caller.console.error(rendered.error());
  auto saved = sys::write_file_atomically(file, rendered->text);
  if (saved) saved = sys::write_file_atomically(paths->folder / "plan.json", plan::to_text(plan, 2) + "\n");
  if (!saved) return caller.console.error(saved.error());
  say_notes(rendered->notes, caller);
  auto words = rendered->submit;
  words.front() = *program;
  const auto job_id = hand_over(plan, words, caller.environment);
  if (!job_id) return caller.console.error(job_id.error());
  const nlohmann::json job{{"jobs", {*job_id}}, {"site", plan.site}, {"submitted", supervise::utc_now()}};
  if (saved = sys::write_file_atomically(paths->folder / "job.json", json_text(job, 2) + "\n"); !saved)
    caller.console.say(nlaunch::render(saved.error()));
  if (!caller.console.quiet) {
    caller.console.say(fmt::format("{} on {}: {}\n", caller.console.paint.bold(plan.name), plan.site,
                                   report::placement_line(plan)));
    caller.console.say(fmt::format("job {}, run {} in {}\n", *job_id, paths->id, paths->folder.string()));
  }
  if (const auto pointed = launch::point_latest(*paths); !pointed)
    caller.console.say(nlaunch::render(pointed.error()));
  if (options.detach) return exit_code::ok;
  return Follower(*this, traits_of(plan.scheduler).title, *job_id, rendered->log, paths->folder, caller)
      .follow();
}

}  // namespace nlaunch::scheduler
