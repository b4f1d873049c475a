#include "commands/run_submit.h"

#include <fcntl.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/bad_nodes.h"
#include "launch/install.h"
#include "launch/job_script.h"
#include "launch/precheck.h"
#include "launch/run_folder.h"
#include "launch/slurm_job.h"
#include "plan/json.h"
#include "report/plan_text.h"
#include "session/interrupts.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// Slurm's controller is shared by all of the site's users: it is not asked more often.
constexpr Duration kAskSlurm = 3s;
constexpr Duration kGlance = 200ms;
/// A shared file system shows a file of another node some time after it was written.
constexpr Duration kForTheSummary = 20s;

/// A file system that does not answer has not got it yet.
bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// Prints what is added to a file.
class Tail {
 public:
  void print_new(const fs::path& path, const report::Console& console) {
    if (!fd_ && !path.empty()) fd_ = sys::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 65536> block;
    for (;;) {
      const auto got = fd_ ? ::read(fd_.get(), block.data(), block.size()) : 0;
      if (got <= 0) return;
      console.result({block.data(), static_cast<std::size_t>(got)});
    }
  }

 private:
  sys::UniqueFd fd_;
};

class Follower {
 public:
  Follower(std::string job_id, fs::path run, const Context& context)
      : job_id_(std::move(job_id)), run_(std::move(run)), context_(context) {}

  int follow() {
    const Interrupts interrupts;
    for (;;) {
      if (Interrupts::received() != 0) return detach();
      if (Clock::now() >= next_) ask();
      log_.print_new(state_ ? state_->log : "", context_.console);
      if (gone_ && (is_there(run_ / "summary.json") || Clock::now() > *gone_ + kForTheSummary)) return end();
      std::this_thread::sleep_for(kGlance);
    }
  }

 private:
  void ask() {
    next_ = Clock::now() + kAskSlurm;
    auto asked = launch::job_state(job_id_, context_.environment);
    if (!asked) {
      if (!std::exchange(troubled_, true))
        context_.console.say(
            fmt::format("nlaunch: {}; asking again\n", asked.error().items().front().message));
      // What the run itself says is enough; and without its folder nothing is left to wait for.
      if (!gone_ && (is_there(run_ / "summary.json") || !is_there(run_))) gone_ = Clock::now();
      return;
    }
    troubled_ = false;
    if (*asked) state_ = std::move(**asked);
    if ((!*asked || state_->over()) && !gone_) gone_ = Clock::now();
    if (*asked) say_state();
  }

  /// What has changed, a line.
  void say_state() {
    std::string line;
    if (state_->pending()) {
      line =
          fmt::format("job {} is waiting{}{}", job_id_, state_->reason == "None" ? "" : ": " + state_->reason,
                      state_->start.empty() ? "" : ", expected to start at " + state_->start);
    } else if (!state_->over()) {
      line = fmt::format("job {} runs on {}", job_id_, state_->nodes);
    }
    if (line == said_ || line.empty()) return;
    said_ = line;
    if (!context_.console.quiet) context_.console.say(line + "\n");
  }

  int detach() {
    context_.console.say(fmt::format(
        "\njob {0} goes on. To follow it again: nlaunch logs -f {1}; to look: nlaunch ps {1}; to stop it: "
        "nlaunch stop {1}\n",
        job_id_, run_.string()));
    return exit_code::ok;
  }

  int end() {
    log_.print_new(state_ ? state_->log : "", context_.console);
    const auto text = sys::read_regular_file(run_ / "summary.json", 256U << 20U);
    const auto summary = text ? parse_json(*text) : nlohmann::json();
    if (summary.is_object()) return summary.value("exit_code", exit_code::internal);
    const auto log = state_ ? state_->log : "not known";
    if (troubled_) {
      context_.console.say(
          fmt::format("nlaunch: Slurm does not say how job {} is, and {} is gone; its log: {}\n", job_id_,
                      run_.string(), log));
      return exit_code::internal;
    }
    context_.console.say(fmt::format(
        "nlaunch: job {} has ended{} and left no summary in {}; its log: {}\n", job_id_,
        state_ ? fmt::format(" ({}{})", state_->state, state_->reason == "None" ? "" : ", " + state_->reason)
               : "",
        run_.string(), log));
    return exit_code::internal;
  }

  std::string job_id_;
  fs::path run_;
  const Context& context_;
  Tail log_;
  Clock::time_point next_ = Clock::now();
  std::optional<launch::JobState> state_;
  std::optional<Clock::time_point> gone_;
  std::string said_;
  bool troubled_ = false;
};

void say_notes(const std::vector<std::string>& notes, const Context& context) {
  for (const auto& note : notes)
    context.console.say(fmt::format("{} {}\n", context.console.paint.yellow("note:"), note));
}

}  // namespace

int submit(const plan::Plan& plan, const SubmitOptions& options, const Context& context) {
  const auto command = launch::find_submit_command(plan, context.environment);
  if (!command) {
    context.console.error(command.error());
    return exit_code::usage;
  }
  const auto checked = launch::precheck(plan, context.environment);
  if (checked.errors.has_errors()) return context.console.error(checked.errors);
  say_notes(checked.notes, context);
  const auto paths = launch::make_run_folder(options.runs_dir, plan.name);
  if (!paths) return context.console.error(paths.error());
  auto arguments = options.arguments;
  arguments.insert(arguments.end(), {"--run-dir", paths->folder.string()});
  const auto script =
      launch::make_job_script(plan, options.runs_dir, launch::find_install().program, arguments);
  if (!script) return context.console.error(script.error());
  const auto file = paths->folder / "job.sbatch";
  auto saved = sys::write_file_atomically(file, script->text);
  if (saved)
    saved = sys::write_file_atomically(paths->folder / "plan.json", json_text(plan::to_json(plan), 2) + "\n");
  if (!saved) return context.console.error(saved.error());
  const auto bad = launch::exclude_bad_nodes(plan.slurm);
  say_notes(bad.notes, context);
  const auto job_id = launch::submit_job(plan, *command, file, context.environment, bad.options);
  if (!job_id) return context.console.error(job_id.error());
  const nlohmann::json job{{"jobs", {*job_id}}, {"site", plan.site}};
  if (saved = sys::write_file_atomically(paths->folder / "job.json", json_text(job, 2) + "\n"); !saved)
    context.console.say(render(saved.error()));
  if (!context.console.quiet) {
    context.console.say(fmt::format("{} on {}: {}\n", context.console.paint.bold(plan.name), plan.site,
                                    report::placement_line(plan)));
    context.console.say(fmt::format("job {}, run {} in {}\n", *job_id, paths->id, paths->folder.string()));
  }
  if (const auto pointed = launch::point_latest(*paths); !pointed)
    context.console.say(render(pointed.error()));
  if (options.detach) return exit_code::ok;
  return Follower(*job_id, paths->folder, context).follow();
}

}  // namespace nlaunch::commands
