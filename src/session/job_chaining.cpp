#include "session/job_chaining.h"

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "launch/install.h"
#include "launch/job/bad_nodes.h"
#include "launch/job/job_script.h"
#include "launch/job/slurm_job.h"
#include "supervise/events.h"
#include "supervise/outcome.h"
#include "sys/files.h"

namespace nlaunch::session {
namespace {

using nlohmann::json;

/// job.json of the run: all of its jobs, in order.
json read_jobs(const std::filesystem::path& file) {
  constexpr std::uint64_t kLimit = 1U << 20U;
  const auto text = sys::read_regular_file(file, kLimit, sys::Links::refused);
  auto jobs = text ? parse_json(*text) : json();
  if (!jobs.is_object()) jobs = json::object();
  if (!jobs.contains("jobs")) jobs["jobs"] = json::array();
  return jobs;
}

void say_trouble(const Diagnostics& why, const Caller& caller) {
  caller.console.say(fmt::format("nlaunch: {}\n", why.first_message()));
}

}  // namespace

Next next_after(const Walltime& walltime, bool has_successor, std::string_view outcome, Duration took) {
  const auto is = [outcome](const supervise::Cause& cause) { return outcome == supervise::name_of(cause); };
  const bool at_walltime = is(supervise::WalltimeNear{});
  if (!has_successor) {
    return at_walltime && walltime.then == Walltime::Then::requeue ? Next::requeue : Next::nothing;
  }
  if (at_walltime) return Next::successor;
  const bool by_a_person = is(supervise::StoppedBySignal{SIGINT}) || is(supervise::StoppedBySignal{SIGTERM});
  const bool over = by_a_person || is(supervise::Finished{}) || took < walltime.min_runtime;
  return over ? Next::cancel_successor : Next::successor;
}

JobChaining::JobChaining(const plan::Plan& plan, std::string job_id, std::string runs_dir,
                         std::vector<std::string> arguments, const Caller& caller)
    : plan_(plan),
      job_id_(std::move(job_id)),
      runs_dir_(std::move(runs_dir)),
      arguments_(std::move(arguments)),
      caller_(caller) {}

void JobChaining::begin(const launch::RunPaths& paths) {
  folder_ = paths.folder;
  if (!plan_.walltime || plan_.walltime->then != Walltime::Then::chain) return;
  const auto file = paths.folder / "job.json";
  auto jobs = read_jobs(file);
  jobs.erase("successor");
  auto& ids = jobs["jobs"];
  if (std::ranges::find(ids, json(job_id_)) == ids.end()) ids.push_back(job_id_);
  if (const auto saved = sys::write_file_atomically(file, json_text(jobs, 2) + "\n"); !saved)
    say_trouble(saved.error(), caller_);
  if (ids.size() < plan_.walltime->max) {
    submit_successor(paths, ids.size() + 1);
  } else if (!caller_.console.quiet) {
    caller_.console.say(fmt::format("this is the last of {} jobs (walltime.max)\n", plan_.walltime->max));
  }
}

void JobChaining::take_over(const launch::RunPaths& paths) {
  folder_ = paths.folder;
  const auto jobs = read_jobs(paths.folder / "job.json");
  if (const auto next = jobs.find("successor"); next != jobs.end() && next->is_string()) successor_ = *next;
  if (successor_ == job_id_) successor_.clear();  // written by the previous job
  const auto events = supervise::read_events(paths.folder / "events.jsonl");
  if (!events) return;
  auto begun = start_;
  for (const auto& event : *events) {  // the last one is from this job, and so from the clock of this machine
    if (event.value("event", "") == "run")
      begun = std::chrono::steady_clock::time_point(
          std::chrono::milliseconds(event.value("mono_ms", std::int64_t{0})));
  }
  start_ = std::min(start_, begun);
}

void JobChaining::submit_successor(const launch::RunPaths& paths, std::size_t number) {
  const auto command = launch::find_submit_command(plan_, caller_.environment);
  if (!command) return say_trouble(command.error(), caller_);
  auto arguments = arguments_;
  arguments.insert(arguments.end(), {"--run-dir", paths.folder.string()});
  const auto script = launch::make_job_script(plan_, runs_dir_, launch::find_install().program, arguments);
  if (!script) return say_trouble(script.error(), caller_);
  const auto file = paths.folder / "next.sbatch";
  if (const auto saved = sys::write_file_atomically(file, script->text); !saved)
    return say_trouble(saved.error(), caller_);
  auto [options, notes] = launch::exclude_bad_nodes(plan_.slurm);
  for (const auto& note : notes) caller_.console.say(fmt::format("note: {}\n", note));
  options.push_back("--dependency=afterany:" + job_id_);
  const auto id = launch::submit_job(plan_, *command, file, caller_.environment, options);
  if (!id) return say_trouble(id.error(), caller_);
  successor_ = *id;
  auto jobs = read_jobs(paths.folder / "job.json");
  jobs["successor"] = successor_;
  if (const auto saved = sys::write_file_atomically(paths.folder / "job.json", json_text(jobs, 2) + "\n");
      !saved)
    say_trouble(saved.error(), caller_);
  if (caller_.console.quiet) return;
  caller_.console.say(fmt::format("job {} will continue after this one, as job {} of at most {}\n", *id,
                                  number, plan_.walltime->max));
}

void JobChaining::end(std::string_view outcome) {
  if (!plan_.walltime) return;
  const auto took = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start_);
  Result<void> told;
  switch (next_after(*plan_.walltime, !successor_.empty(), outcome, took)) {
    case Next::nothing:
      break;
    case Next::successor:
      record_next(successor_);
      break;
    case Next::cancel_successor:
      told = launch::tell_slurm({"scancel", successor_}, caller_.environment);
      if (told && !caller_.console.quiet)
        caller_.console.say(
            fmt::format("job {}, which would have continued the run, was cancelled\n", successor_));
      break;
    case Next::requeue:
      if (!caller_.console.quiet) caller_.console.say(fmt::format("job {} is requeued\n", job_id_));
      record_next(job_id_);  // Slurm ends this process as soon as it is requeued
      told = launch::tell_slurm({"scontrol", "requeue", job_id_}, caller_.environment);
      break;
  }
  if (!told) say_trouble(told.error(), caller_);
}

/// For commands that show the run while it waits.
void JobChaining::record_next(const std::string& job) const {
  supervise::EventLog events(folder_ / "events.jsonl", [this](const std::string& sentence) {
    caller_.console.say(fmt::format("nlaunch: {}\n", sentence));
  });
  events.write("goes-on", {{"job", job}});
}

}  // namespace nlaunch::session
