#include "session/run.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "base/exit_code.h"
#include "base/format.h"
#include "base/json.h"
#include "base/text.h"
#include "bench/metrics.h"
#include "launch/install.h"
#include "launch/machine.h"
#include "launch/run_dir/device_map.h"
#include "launch/run_dir/nccl_logs.h"
#include "launch/run_dir/provenance.h"
#include "lint/plan_input.h"
#include "plan/json.h"
#include "plan/tolerance.h"
#include "plan/update.h"
#include "preflight/report/report_json.h"
#include "record/run_files.h"
#include "report/plan_text.h"
#include "report/preflight_text.h"
#include "report/run_report.h"
#include "session/check.h"
#include "session/end_diagnosis.h"
#include "session/recent_preflight.h"
#include "session/run_evidence.h"
#include "supervise/run_attempt.h"
#include "supervise/stop_signal.h"
#include "sys/files.h"
#include "sys/proc.h"
#include "sys/spawn.h"

namespace nlaunch::session {

using supervise::Json;

Run::Run(plan::Plan& plan, RunOptions options, const Caller& caller, RunTarget& target, Exporter& exporter)
    : plan_(plan),
      options_(std::move(options)),
      caller_(caller),
      target_(target),
      exporter_(exporter),
      rules_(supervise::rules_of(plan)),
      interrupts_(rules_) {}

int Run::execute(const launch::RunPaths& paths, const supervise::GuardianLink& guardian) {
  paths_ = paths;
  guardian.announce(paths_.folder.string());
  // If nothing can be recorded from the start, nothing is started.
  const auto kept = sys::write_file_atomically(paths_.folder / "plan.json", plan::to_text(plan_, 2) + "\n");
  if (!kept) {
    caller_.console.say(fmt::format("{} {}; nothing was started\n", caller_.console.paint.red("error:"),
                                    kept.error().first_message()));
    return exit_code::internal;
  }
  open_events("run", guardian);
  return go_on(launch::next_attempt(paths_), false, guardian);
}

int Run::take_over(const launch::RunPaths& paths, const supervise::GuardianLink& guardian) {
  paths_ = paths;
  guardian.announce(paths_.folder.string());
  const auto next = launch::next_attempt(paths_);
  const auto attempt = next - std::min(next, 1U);
  paths_.attempt = supervise::attempt_folder(paths_.folder, attempt);
  know_what_was_asked();
  preflight_ = {{"verdict", "skipped"}, {"reason", "the run was taken over"}};
  host_ = target_.next(guardian);
  auto refused = host_->take_over(paths_);
  if (auto why = stopped("before it had taken over the run", guardian)) refused = std::move(why);
  if (refused && !options_.succeeds) {  // another nlaunch may lead it
    host_.reset();
    return refused->exit_code;
  }
  open_events("taken-over", guardian);
  if (refused) return finish(refused->exit_code, "killed", refused->sentence, Json::object());
  lock_ = host_->lock();
  if (!caller_.console.quiet)
    caller_.console.say(fmt::format("run {} in {} continues\n", paths_.id, paths_.folder.string()));
  return go_on(attempt, true, guardian);
}

/// The options given to the nlaunch that led it before, from its events.
void Run::know_what_was_asked() {
  const auto events = supervise::read_events(paths_.folder / "events.jsonl");
  if (!events) return;
  for (const auto& event : *events) {
    const auto what = event.value("event", "");
    if (what == "attempt") paths_.resume = event.value("resume", "");
    if (!event.contains("preflight") || !event["preflight"].is_object()) continue;
    const auto& asked = event["preflight"];
    options_.no_preflight = asked.value("none", false);
    options_.strict = asked.value("strict", false);
    options_.fresh = asked.value("fresh", false);
    options_.level = value_of<PreflightLevel>(asked.value("level", ""));
  }
}

/// `first`: the name of the first event, which identifies the run.
void Run::open_events(std::string_view first, const supervise::GuardianLink& guardian) {
  events_ = supervise::EventLog(paths_.folder / "events.jsonl", [this](const std::string& sentence) {
    caller_.console.say(fmt::format("nlaunch: {}\n", sentence));
  });
  if (plan_.notify) notifier_ = std::make_unique<Notifier>(plan_, paths_, caller_);
  events_.observe([this](std::string_view event, const Json& fields) {
    if (notifier_) notifier_->take(event, fields);
    exporter_.say_troubles();
  });
  events_.at_check([this] { exporter_.say_troubles(); });
  const auto seen = sys::process_info(guardian.guardian());
  auto begin = stamped<Json>(formats::kEvents);
  begin.update({{"id", paths_.id},
                {"name", plan_.name},
                {"site", plan_.site},
                {"host", launch::this_host().host},
                {"job", job_of(caller_.environment)},
                {"nodes", plan_.node.count},
                {"pid", guardian.guardian()},
                {"start_ticks", seen ? seen->start_ticks : 0},
                {"preflight",
                 {{"none", options_.no_preflight},
                  {"strict", options_.strict},
                  {"fresh", options_.fresh},
                  {"level", options_.level ? name_of(*options_.level) : ""}}}});
  // Slurm 22.05 and later: seconds since 1970.
  const auto end =
      text::whole_number<std::uint64_t>(sys::env_value(caller_.environment, "SLURM_JOB_END_TIME"));
  if (end) begin["walltime_end"] = supervise::utc_of(static_cast<std::time_t>(*end));
  events_.write(first, begin);
}

int Run::go_on(unsigned attempt, bool taken_over, const supervise::GuardianLink& guardian) {
  bool begun = taken_over;
  for (;; ++attempt) {
    if (std::exchange(taken_over, false)) {
      // It is already bound, checked and started.
    } else if (const auto refused = prepare(attempt, guardian)) {
      target_.record(refused->suspects);
      if (target_.leave_out(refused->suspects)) continue;
      return finish(refused->exit_code, refused->outcome, refused->sentence, Json::object());
    }
    if (!std::exchange(begun, true)) {
      if (const auto pointed = launch::point_latest(paths_); !pointed) caller_.console.error(pointed.error());
      say_start();
    }
    auto outcome = supervise(attempt);
    for (auto& link : outcome.links) supervise::add_link(links_, std::move(link));
    say_end(outcome);
    if (!again(outcome) || !back_off(outcome, guardian)) {
      return finish(supervise::exit_code(outcome), supervise::name_of(outcome.cause),
                    supervise::sentence(outcome), supervise::to_json(outcome), outcome.processes);
    }
  }
}

std::optional<AttemptHost::Refused> Run::prepare(unsigned attempt, const supervise::GuardianLink& guardian) {
  using Refused = AttemptHost::Refused;
  if (const auto made = launch::make_attempt_folder(paths_, attempt); !made) {
    return Refused{exit_code::internal, "internal", made.error().first_message()};
  }
  const auto resume = supervise::checkpoint_to_resume(plan_, paths_.folder);
  paths_.resume = resume ? resume->path : "";
  Json begun{{"number", attempt}};
  if (resume) begun["resume"] = resume->path;
  events_.write("attempt", begun);
  if (resume && !caller_.console.quiet)
    caller_.console.say(fmt::format("resuming from checkpoint {}\n", resume->path));
  host_.reset();  // releases what the previous attempt held
  interrupts_.take();
  host_ = target_.next(guardian);
  auto refused = host_->bind(paths_);
  if (auto why = stopped("before anything was started", guardian)) return why;
  if (refused) return refused;
  lock_ = host_->lock();
  save("lock.json", lock_, paths_.folder);
  return check(guardian);
}

std::optional<AttemptHost::Refused> Run::check(const supervise::GuardianLink& guardian) {
  using Refused = AttemptHost::Refused;
  if (options_.no_preflight) {
    preflight_ = {{"verdict", "skipped"}, {"reason", "--no-preflight"}};
    events_.write("preflight", preflight_);
    return std::nullopt;
  }
  auto level = options_.level.value_or(plan_.preflight.level);
  std::optional<RecentPreflight> recent;
  if (!options_.level && !options_.fresh && level != PreflightLevel::quick && restarts_.empty())
    recent = recent_preflight(paths_, level, job_of(caller_.environment), std::time(nullptr));
  if (recent || !restarts_.empty()) level = PreflightLevel::quick;
  if (recent && !caller_.console.quiet) caller_.console.say(sentence(*recent) + "\n");
  const auto report = session::check(*host_, {.level = level}, caller_);
  save("preflight.json", preflight::to_json(report), paths_.attempt);
  preflight_ = {{"verdict", preflight::name_of(report.verdict)}, {"level", name_of(level)}};
  if (recent) preflight_["passed_before"] = {{"run", recent->run}, {"level", name_of(recent->report.level)}};
  events_.write("preflight", preflight_);
  if (!caller_.console.quiet || report.verdict == preflight::Status::fail) {
    caller_.console.say(report::preflight_text(report, caller_.console.paint));
  }
  if (auto why = stopped("during the preflight", guardian)) return why;
  const bool strict = plan_.preflight.strict || options_.strict;
  if (report.verdict == preflight::Status::fail || (strict && report.verdict == preflight::Status::unknown)) {
    return Refused{exit_code::preflight_refused, "refused",
                   "the preflight refused the run; nothing was started",
                   preflight::suspects(report, plan_.node.count)};
  }
  return std::nullopt;
}

std::optional<AttemptHost::Refused> Run::stopped(std::string_view when,
                                                 const supervise::GuardianLink& guardian) const {
  if (!guardian.alive())
    return AttemptHost::Refused{
        exit_code::internal, "killed", fmt::format("nlaunch was killed {}", when), {}};
  const auto cause = supervise::cause_of(rules_, Interrupts::received());
  if (!cause) return std::nullopt;
  const auto* by = std::get_if<supervise::StoppedBySignal>(&*cause);
  auto sentence = by == nullptr ? fmt::format("stopped {} because the walltime is near", when)
                                : fmt::format("stopped by {} {}", supervise::name_of_stop(by->signal), when);
  caller_.console.say(sentence + "\n");
  return AttemptHost::Refused{
      supervise::exit_code(*cause), std::string(supervise::name_of(*cause)), std::move(sentence), {}};
}

supervise::Outcome Run::supervise(unsigned attempt) {
  auto outcome = host_->supervise(attempt, events_);
  if (outcome.updated) {
    auto updated = *outcome.updated;
    plan::keep_masked(plan_, updated);
    plan_ = std::move(updated);
  }
  interrupts_.take();
  audit_ = host_->audit();
  save("audit.json", audit_.json, paths_.attempt);
  nccl_ = launch::compare_nccl_logs(paths_.attempt, lint::plan_input(plan_, {}));
  if (outcome.slowest) look_for_slow_node();
  return outcome;
}

/// A node that is slow in most attempts slows down all others. It is added to the site's list of bad nodes,
/// and excluded from the following attempts if there are other nodes.
void Run::look_for_slow_node() {
  const auto events = supervise::read_events(paths_.folder / "events.jsonl");
  if (!events) return;
  std::map<unsigned, std::optional<watch::SlowestNode>> attempts;
  std::set<std::string> known;
  for (const auto& event : *events) {
    const auto what = event.value("event", "");
    if (what == "attempt") attempts[event.value("number", 0U)];
    if (what == "slow-node") known.insert(event.value("host", ""));
    if (what == "slowest-node" && !attempts.empty())
      attempts.rbegin()->second = watch::SlowestNode{event.value("host", ""), event.value("seconds", 0.0),
                                                     event.value("others", 0.0)};
  }
  std::vector<std::optional<watch::SlowestNode>> in_order;
  for (const auto& [number, slowest] : attempts) in_order.push_back(slowest);
  const auto slow = watch::slow_in_most(in_order);
  if (!slow || known.contains(slow->host)) return;
  events_.write("slow-node", {{"host", slow->host}, {"reason", slow->reason}});
  caller_.console.say(fmt::format("nlaunch: {}: {}\n", slow->host, slow->reason));
  const std::vector<preflight::Suspect> suspects{{slow->host, slow->reason, preflight::Responsible::admin}};
  target_.record(suspects);
  target_.leave_out(suspects);
}

bool Run::stalled_to_restart(const supervise::Outcome& outcome) const {
  const auto* aborted = std::get_if<supervise::Aborted>(&outcome.cause);
  return aborted != nullptr && aborted->exit_code == exit_code::stalled && plan_.watch &&
         plan_.watch->on_stall == OnStall::restart;
}

/// A node that is lost, or on which the first process failed, is excluded if there are spare nodes.
bool Run::again(const supervise::Outcome& outcome) {
  const auto* lost = std::get_if<supervise::NodeLost>(&outcome.cause);
  const bool failed = lost != nullptr || std::holds_alternative<supervise::ProcessFailed>(outcome.cause) ||
                      std::holds_alternative<supervise::NeverReady>(outcome.cause) ||
                      std::holds_alternative<supervise::PartLost>(outcome.cause) ||
                      std::holds_alternative<supervise::Unresponsive>(outcome.cause) ||
                      stalled_to_restart(outcome);
  if (!failed || outcome.stop_asked || !plan_.restart.on_failure || counted_restarts() >= plan_.restart.max)
    return false;
  std::string host;
  if (lost != nullptr) host = lost->host;
  if (outcome.first) host = outcome.processes[*outcome.first].host;
  for (std::size_t i = 0; i < outcome.processes.size(); ++i)
    if (rules_.processes[i].borrowed && outcome.processes[i].host == host)
      host.clear();  // not a node of the job
  const bool without = !host.empty() && target_.leave_out({{host, supervise::sentence(outcome)}});
  if (lost != nullptr && !without) return false;
  restarts_.push_back(std::chrono::steady_clock::now());
  return true;
}

/// The restarts that `max` counts.
unsigned Run::counted_restarts() const {
  const auto& within = plan_.restart.within;
  const auto now = std::chrono::steady_clock::now();
  return static_cast<unsigned>(
      std::ranges::count_if(restarts_, [&](auto at) { return !within || at + *within > now; }));
}

bool Run::back_off(supervise::Outcome& outcome, const supervise::GuardianLink& guardian) const {
  using Clock = std::chrono::steady_clock;
  constexpr Duration kGlance = std::chrono::milliseconds(50);
  const auto& restart = plan_.restart;
  const auto counted = std::max(1U, counted_restarts());
  const auto wait = restart.backoff_after(counted - 1);
  caller_.console.say(
      fmt::format("nlaunch: restart {} of {} in {}\n", counted, restart.max, format_duration(wait)));
  const auto begin = Clock::now();
  std::optional<supervise::Cause> cause;
  while (!cause && Clock::now() < begin + wait) {
    std::this_thread::sleep_for(std::min<Clock::duration>(kGlance, begin + wait - Clock::now()));
    cause = supervise::cause_of(rules_, Interrupts::received());
    if (!guardian.alive()) cause = supervise::GuardianGone{};
  }
  if (!cause) return true;
  outcome.cause = *cause;
  outcome.first.reset();
  outcome.decided = outcome.took + std::chrono::duration_cast<Duration>(Clock::now() - begin);
  caller_.console.say(caller_.console.paint.red(supervise::sentence(outcome)) + "\n");
  return false;
}

void Run::say_start() const {
  if (caller_.console.quiet) return;
  const auto paint = caller_.console.paint;
  caller_.console.say(
      fmt::format("{} on {}: {}\n", paint.bold(plan_.name), plan_.site, report::placement_line(plan_)));
  for (const auto& warning : plan_.warnings)
    caller_.console.say(fmt::format("{} {}\n", paint.yellow("warning:"), warning));
  const auto& bound = host_->bound();
  for (const auto& note : bound.notes)
    caller_.console.say(fmt::format("{} {}\n", paint.yellow("note:"), text::printable(note)));
  if (!bound.dropped.empty()) {
    caller_.console.say(fmt::format("{} not passed on from the calling environment: {}\n", paint.dim("note:"),
                                    text::join(bound.dropped, " ")));
  }
  caller_.console.say(fmt::format("run {} in {}\n", paths_.id, paths_.folder.string()));
}

void Run::say_end(const supervise::Outcome& outcome) const {
  const auto paint = caller_.console.paint;
  const bool well = supervise::exit_code(outcome) == 0;
  if (well && caller_.console.quiet) return;
  std::string out = "\n";
  if (!caller_.console.quiet) {
    for (const auto& line : audit_.lines) out += text::printable(line) + "\n";
    for (const auto& [role, differences] : nccl_) {
      for (const auto& line : differences)
        out += fmt::format("NCCL in {}: {}\n", role, text::printable(line));
    }
  }
  if (!outcome.last_lines.empty() && outcome.first) {
    const auto& first = outcome.processes[*outcome.first];
    out += fmt::format("last lines of {} ({}):\n", first.name, first.log);
    for (const auto& line : outcome.last_lines) out += "  " + line + "\n";
  }
  for (const auto& survivor : outcome.survivors) out += paint.red(fmt::format("still alive: {}\n", survivor));
  for (const auto& trouble : outcome.troubles) out += paint.yellow(trouble) + "\n";
  if (outcome.skipped.lines > 0) {
    out += fmt::format("{} not shown here because the terminal was too slow; see the logs\n",
                       text::count(outcome.skipped.lines, "line"));
  }
  // How well it went is known once everything is written: see report_end().
  if (!well) out += paint.red(text::printable(supervise::sentence(outcome))) + "\n";
  if (const auto saved = text::printable(supervise::saved_sentence(outcome, plan_)); !saved.empty())
    out += saved + "\n";
  if (const auto advice = supervise::advice(outcome); !advice.empty()) out += advice + "\n";
  caller_.console.say(out + diagnose_end(paths_, outcome, paint));
}

/// `processes` become text one by one: as values, those of a large run take more memory than anything else.
void Run::write_summary(int exit_code, std::string_view outcome, const std::string& sentence, Json details,
                        std::span<const supervise::ProcessReport> processes) {
  auto summary = stamped<Json>(formats::kSummary);
  summary.update({{"run", paths_.id},
                  {"name", plan_.name},
                  {"site", plan_.site},
                  {"exit_code", exit_code},
                  {"outcome", outcome},
                  {"sentence", host_ ? host_->mask(sentence) : sentence},
                  {"preflight", preflight_}});
  for (auto& [name, value] : details.items()) summary[name] = std::move(value);
  summary["warnings"] = plan_.warnings;
  summary["audit"] = {{"findings", audit_.findings}};
  if (!nccl_.empty()) summary["nccl_environment"] = nccl_;
  for (const auto& link : links_)
    summary["links"].push_back({{"kind", link.kind}, {"url", link.url}, {"process", link.process}});
  if (plan_.watch && !plan_.watch->metrics.empty()) add_metrics(summary);
  if (auto devices = launch::device_map(plan_, paths_.attempt); !devices.empty()) {
    add_gpu_use(devices, paths_.attempt);
    summary["devices"] = std::move(devices);
  }
  const auto process = [&](std::size_t index) { return supervise::to_json(processes[index]); };
  const auto kept =
      sys::write_file_atomically(paths_.folder / "summary.json", [&](const sys::FileWriter& write) {
        write_json(summary, {"processes", processes.size(), process}, write);
        write("\n");
      });
  if (!kept) {
    caller_.console.say(fmt::format("nlaunch: {}; this run has no summary\n", kept.error().first_message()));
  }
}

int Run::finish(int exit_code, std::string_view outcome, const std::string& sentence, Json details,
                std::span<const supervise::ProcessReport> processes) {
  outcome_ = outcome;
  if (host_) host_->leave();
  write_summary(exit_code, outcome, sentence, std::move(details), processes);
  events_.write("end", {{"outcome", outcome}, {"exit_code", exit_code}});
  events_.observe(nullptr);
  notifier_.reset();
  exporter_.end();
  if (lock_.contains("libraries") && !lock_["libraries"].empty()) {
    launch::add_library_hashes(lock_);
    save("lock.json", lock_, paths_.folder);
  }
  if (host_) host_->conclude(exit_code);
  // Reading the events of a larger run back would take more memory than leading it.
  const auto facts = plan_.processes.size() <= kMostProcessesRead ? write_report() : "";
  host_.reset();
  interrupts_.take();
  report_end(exit_code, sentence, facts);
  for (const auto& link : links_)
    if (!caller_.console.quiet) caller_.console.say(link.str() + "\n");
  if (!caller_.console.quiet || exit_code != 0)
    caller_.console.say(fmt::format("run directory: {}\n", paths_.folder.string()));
  return exit_code;
}

/// Writes report.html, and returns what can be said of the run in one line. What goes wrong here is no
/// failure of the run.
std::string Run::write_report() {
  try {
    const auto files = record::read_run(paths_.folder, record::Parts::without_nodes);
    if (!files) return "";  // whatever keeps it from being read has been reported
    const auto report = report::report_of(*files, outcome_, 0, false);
    if (!report.timeline.processes.empty()) save_text("report.html", report::run_report_html(report));
    return report::facts_line(report);
  } catch (const std::exception& error) {
    caller_.console.say(fmt::format("nlaunch: the report could not be written: {}\n", error.what()));
    return "";
  }
}

/// The last words of a run that finished.
void Run::report_end(int exit_code, const std::string& sentence, const std::string& facts) {
  if (exit_code != 0 || caller_.console.quiet) return;
  const auto line = text::printable(sentence) + (facts.empty() ? "" : ": " + facts);
  caller_.console.say(caller_.console.paint.green(line) + "\n");
}

void Run::add_metrics(Json& summary) const {
  const auto printed = bench::read_printed(paths_.folder, plan_.watch->metrics);
  auto& out = summary["metrics"] = Json::object();
  for (const auto& [name, of] : bench::summarized(printed)) {
    out[name] = {{"count", of.values},  {"first", of.first}, {"last", of.last}, {"slope", of.slope},
                 {"median", of.median}, {"min", of.least},   {"max", of.most}};
  }
  const auto uneven = bench::uneven(printed);
  if (uneven.empty()) return;
  summary["uneven"] = uneven;
  caller_.console.say(
      caller_.console.paint.yellow("ranks with different counts end up waiting for each other:") + "\n");
  for (const auto& line : uneven) caller_.console.say(fmt::format("  {}\n", text::printable(line)));
}

void Run::save(const std::string& name, const Json& content, const std::filesystem::path& folder) {
  save_text(folder / name, json_text(content, 2) + "\n");
}

/// `file`: in the run directory, or absolute.
void Run::save_text(const std::filesystem::path& file, const std::string& text) {
  const auto wrote = sys::write_file_atomically(paths_.folder / file, text);
  if (wrote || trouble_said_) return;
  trouble_said_ = true;
  caller_.console.say(fmt::format("nlaunch: {}\n", wrote.error().first_message()));
}

namespace {

/// Prints that the supervisor was killed, and writes it to the run directory.
void report_lost_supervisor(const supervise::SupervisorLost& lost, const report::Console& console) {
  std::vector<std::string> killed;
  std::vector<std::string> survivors;
  for (const auto& process : lost.swept.killed)
    killed.push_back(fmt::format("{} (pid {})", process.name, process.pid));
  for (const auto& left : lost.swept.survivors)
    survivors.push_back(fmt::format("{} (pid {})", left.name, left.pid));
  console.say(fmt::format("\nnlaunch: the supervisor {}; {} of the run {} killed\n", lost.status.str(),
                          text::count(killed.size(), "process"), killed.size() == 1 ? "was" : "were"));
  for (const auto& survivor : survivors) console.say(fmt::format("still alive: {}\n", survivor));
  if (lost.run_folder.empty()) return;
  const auto summary = supervise::summary_of_lost_supervisor(lost.status, killed, survivors);
  const auto wrote = sys::write_file_atomically(std::filesystem::path(lost.run_folder) / "summary.json",
                                                json_text(summary, 2) + "\n");
  if (!wrote) console.say(fmt::format("nlaunch: {}\n", wrote.error().first_message()));
}

/// Its processes have started, and nothing has decided the outcome: otherwise the agents stop immediately.
bool goes_on(const std::filesystem::path& run_folder) {
  bool started = false;
  const auto events = supervise::read_events(run_folder / "events.jsonl");
  if (!events) return false;
  for (const auto& event : *events) {
    const auto what = event.value("event", "");
    if (what == "attempt" || what == "run-ending" || what == "end") started = false;
    if (what == "attempt-started") started = true;
  }
  return started;
}

/// If this fails, the run is lost.
void become_successor(const supervise::SupervisorLost& lost, unsigned successions,
                      const report::Console& console) {
  const auto program = launch::find_install().program;
  std::vector<std::string> words{program, "resume", lost.run_folder, "--successions",
                                 std::to_string(successions)};
  if (console.quiet) words.emplace_back("--quiet");
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  console.say(fmt::format(
      "\nnlaunch: the supervisor {}; its agents keep running, and another one takes over the run\n",
      lost.status.str()));
  ::execv(program.c_str(), argv.data());
  console.say(fmt::format("nlaunch: cannot start '{}': {}\n", program, std::strerror(errno)));
}

}  // namespace

supervise::GuardianLink guard_run(const plan::Plan& plan, const Caller& caller, Guarding how) {
  using Clock = std::chrono::steady_clock;
  // A leader that dies right after it took over, again and again, has a bug: another one would die as well.
  constexpr unsigned kMostInARow = 5;
  static constexpr auto kSoon = std::chrono::seconds(5);
  supervise::Successor successor{.inherits = how.inherits, .spared = std::move(how.spared)};
  const auto in_a_row = [before = how.successions, begin = Clock::now()] {
    return Clock::now() - begin < kSoon ? before + 1 : 1;
  };
  if (plan::outlives_leader(plan) && how.scratch.empty())
    successor.become = [in_a_row, console = caller.console](const supervise::SupervisorLost& lost) {
      if (in_a_row() <= kMostInARow && goes_on(lost.run_folder)) become_successor(lost, in_a_row(), console);
    };
  return supervise::enter_guarded(
      [console = caller.console, scratch = how.scratch](const supervise::SupervisorLost& lost) {
        report_lost_supervisor(lost, console);
        if (!scratch.empty()) launch::remove_scratch(scratch);
      },
      successor);
}

}  // namespace nlaunch::session
