#include "supervise/outcome.h"

#include <fmt/format.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "base/exit_code.h"
#include "base/format.h"
#include "base/text.h"
#include "supervise/stop_signal.h"

namespace nlaunch::supervise {
namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

constexpr int kCannotBeStarted = 127;  // as in a shell
constexpr int kEndedTooEarly = 1;      // exited with 0 although it should have kept running
constexpr int kServesNobody = 1;

/// "learner.2", "learner.2 (rank 2) on node1"
std::string who(const ProcessReport& process) {
  if (process.host.empty()) return process.name;
  const auto rank = process.rank < 0 ? std::string() : fmt::format(" (rank {})", process.rank);
  return fmt::format("{}{} on {}", process.name, rank, process.host);
}

/// " after 0.1s, 2.2s into the run": for the process that failed first.
std::string after(const Outcome& outcome) {
  constexpr Duration kWithTheRun = std::chrono::seconds(1);
  const auto when = outcome.decided.value_or(outcome.took);
  const auto started = outcome.processes[*outcome.first].started.value_or(Duration{});
  if (started < kWithTheRun) return fmt::format(" after {}", in_seconds(when));
  return fmt::format(" after {}, {} into the run", in_seconds(when - started), in_seconds(when));
}

/// ", 80ms before engine.0 exited with code 1"
std::string before_the_next(const Outcome& outcome) {
  if (!outcome.first || !outcome.next) return {};
  const auto& first = outcome.processes[*outcome.first];
  const auto& next = outcome.processes[*outcome.next];
  if (!first.ended || !next.ended || !next.status) return {};
  return fmt::format(", {} before {} {}", in_seconds(*next.ended - *first.ended), who(next),
                     next.status->str());
}

Json milliseconds(const std::optional<Duration>& duration) {
  return duration ? Json(duration->count()) : Json(nullptr);
}

Json status_json(const std::optional<sys::WaitStatus>& status) {
  if (!status) return nullptr;
  if (status->by_signal()) return {{"signal", sys::signal_name(status->signal())}};
  return {{"code", status->code()}};
}

Json child_json(const ChildReport& child) {
  return {{"name", text::printable(child.child.title)},
          {"pid", child.child.pid},
          {"ended_ms", child.at.count()},
          {"end", status_json(child.status)}};
}

/// The first line of a message that is not blank, shortened.
std::string first_line(const std::string& message) {
  constexpr std::size_t kLongest = 200;
  const auto begin =
      std::string_view(message).substr(std::min(message.find_first_not_of(" \t\r\n"), message.size()));
  const auto line = text::printable(text::trim(begin.substr(0, begin.find('\n'))));
  const auto characters = text::characters(line);
  if (characters.size() <= kLongest) return line;
  return line.substr(0, static_cast<std::size_t>(characters[kLongest].data() - line.data())) + "...";
}

/// "; learner.1 raised RuntimeError: CUDA error": what ended the process that failed first.
std::string by_exception(const Outcome& outcome) {
  if (!outcome.first) return "";
  const auto& first = outcome.processes[*outcome.first];
  // What it raised after its stop signal is how it took that.
  const bool later = first.exception && first.exception->at > outcome.decided.value_or(outcome.took);
  if (!first.exception || (first.stopped && later)) return "";
  return fmt::format("; {} raised {}", first.name, first.exception->str());
}

/// "learner.3 raised RuntimeError 12.1s into the run, 350ms before learner.1 exited with code 1: CUDA error"
std::string raised_before(const Outcome& outcome, const ProcessFailed& failed) {
  const auto& first = outcome.processes[*outcome.first];
  const auto& raised = *first.exception;
  const auto& decider = outcome.processes[failed.process];
  const auto line = first_line(raised.message);
  return fmt::format("{} raised {} {} into the run, {} before {} {}{}{}", who(first),
                     raised.type.empty() ? "an exception" : raised.type, in_seconds(raised.at),
                     in_seconds(decider.ended.value_or(raised.at) - raised.at), who(decider),
                     failed.status.str(), line.empty() ? "" : ": ", line);
}

/// "; before that, VLLM::EngineCore (pid 4711) of engine.0 was killed by SIGKILL 69.7s into the run". `that`:
/// the time of what the sentence begins with. Empty if `said` names it.
std::string after_a_child(const Outcome& outcome, Duration that, std::string_view said = {}) {
  const auto lost = lost_child(outcome);
  if (!lost || said.contains(lost->child->child.str())) return "";
  return fmt::format("; {}{}", lost->child->at <= that ? "before that, " : "",
                     end_of_child(*lost->process, *lost->child));
}

/// "; crash loop: it failed the same way 3 times in a row, ..."
std::string crash_loop(const ProcessFailed& failed, std::string_view subject) {
  if (failed.alike == 0) return "";
  return fmt::format(
      "; crash loop: {} failed the same way {} times in a row, each time soon after its start, and is not "
      "restarted",
      subject, failed.alike);
}

}  // namespace

std::string end_of_child(const ProcessReport& process, const ChildReport& child) {
  return fmt::format("{} of {} {} {} into the run", child.child.str(), who(process),
                     child.status ? child.status->str() : "ended", in_seconds(child.at));
}

namespace {

/// A server also stops its parts like this when it stops itself.
bool was_orderly(const ChildReport& child) {
  return !child.status || child.status->ok() || was_asked_to_end(*child.status);
}

/// A server that fails on its own stops its parts first. One that has lost a part keeps running or exits
/// normally.
bool may_have_lost_it(const ProcessReport& process, Duration decided) {
  const bool went_on = !process.ended || *process.ended > decided;
  return went_on || (process.status && process.status->ok());
}

}  // namespace

bool LostChild::says_nothing() const {
  return was_orderly(*child) || child->status->signal() == SIGKILL;
}

std::optional<LostChild> lost_child(const Outcome& outcome) {
  // What hangs because a process is missing hangs until its timeouts expire.
  const bool hung = std::holds_alternative<Aborted>(outcome.cause);
  const Duration window = hung ? Duration(std::chrono::minutes(15)) : Duration(std::chrono::minutes(1));
  const auto decided = outcome.decided.value_or(outcome.took);
  std::optional<LostChild> part;
  std::optional<LostChild> failed;
  const auto keep_first = [](std::optional<LostChild>& first, const LostChild& child) {
    if (!first || child.child->at < first->child->at) first = child;
  };
  for (const auto& process : outcome.processes) {
    for (const auto& child : process.children) {
      if (child.at + window < decided || child.at > decided) continue;
      if (comes_and_goes(child.child.title)) continue;
      const bool orderly = was_orderly(child);
      if (is_part_of_server(child.child.title) && (!orderly || may_have_lost_it(process, decided)))
        keep_first(part, {&process, &child});
      if (!orderly || (child.status && !child.status->ok())) keep_first(failed, {&process, &child});
    }
  }
  // Ray's own processes kill their helpers when they exit.
  const auto& lost = part ? part : failed;
  const bool by_itself = lost && !part && was_orderly(*lost->child);
  const bool with_a_code =
      lost && lost->child->status && !lost->child->status->ok() && lost->child->status->signal() == 0;
  return by_itself || with_a_code ? std::nullopt : lost;
}

std::string Exception::str() const {
  const auto line = first_line(message);
  if (type.empty()) return line;
  return line.empty() ? type : fmt::format("{}: {}", type, line);
}

namespace {

std::string_view role_of(const ProcessReport& process) {
  return std::string_view(process.name).substr(0, process.name.find('.'));
}

/// An exception before this moment came before the failure that decided the outcome. Nothing: none did.
std::optional<Duration> end_of(const ProcessReport& decider, sys::WaitStatus status) {
  // After its exception, Python stops threads and closes communicators. The others do not wait for that.
  constexpr Duration kToExit = std::chrono::seconds(5);
  // PyTorch's watchdog aborts a rank that waits for another one. Any other signal comes from outside, or is
  // a crash.
  if (status.by_signal() && status.signal() != SIGABRT) return std::nullopt;
  if (decider.exception) return decider.exception->at;
  return decider.ended ? std::optional(*decider.ended - kToExit) : std::nullopt;
}

/// The latest moment at which it can have raised its exception, next to the clock of another process. The
/// clocks of two nodes are compared by messages: see RemoteBackend.
Duration latest_of(const ProcessReport& process, const ProcessReport* other) {
  constexpr Duration kClockError = std::chrono::milliseconds(10);
  const bool one_clock = other == nullptr || process.host == other->host;
  return process.exception->at + process.exception->within + (one_clock ? Duration() : kClockError);
}

/// Whether its exception can be why the run ended. `decider`: null if no exit decided it.
bool may_be_first(const ProcessReport& process, const ProcessReport* decider, Duration decided) {
  // What hangs because a process is missing hangs until its timeouts expire.
  constexpr Duration kLongestTimeout = std::chrono::minutes(15);
  if (&process == decider || !process.exception || process.ended_before || !process.lost.empty())
    return false;
  if (process.status && process.status->ok()) return false;
  if (process.exception->at + kLongestTimeout < decided) return false;
  // When a process without an exception failed is known from its peers alone.
  return decider == nullptr || decider->exception || role_of(process) == role_of(*decider);
}

}  // namespace

std::optional<std::size_t> first_to_raise(const Outcome& outcome) {
  const auto* failed = std::get_if<ProcessFailed>(&outcome.cause);
  const auto* aborted = std::get_if<Aborted>(&outcome.cause);
  if (failed == nullptr && (aborted == nullptr || aborted->exit_code != exit_code::stalled))
    return std::nullopt;
  const auto decided = outcome.decided.value_or(outcome.took);
  const auto* decider = failed == nullptr ? nullptr : &outcome.processes[failed->process];
  const auto end = decider == nullptr ? std::optional(decided) : end_of(*decider, failed->status);
  if (!end) return std::nullopt;
  std::optional<std::size_t> first;
  Duration earliest = *end;
  for (std::size_t i = 0; i < outcome.processes.size(); ++i) {
    const auto& process = outcome.processes[i];
    if (!may_be_first(process, decider, decided) || latest_of(process, decider) >= earliest) continue;
    earliest = latest_of(process, decider);
    first = i;
  }
  return first;
}

std::string in_seconds(Duration duration) {
  const auto ms = duration.count();
  return ms < 1000 ? fmt::format("{}ms", ms) : fmt::format("{:.1f}s", static_cast<double>(ms) / 1000);
}

std::string_view name_of(const Cause& cause) {
  return std::visit(
      Overloaded{[](const Finished&) { return "finished"; }, [](const ProcessFailed&) { return "failed"; },
                 [](const StartFailed&) { return "not-started"; },
                 [](const NeverReady&) { return "not-ready"; }, [](const PartLost&) { return "failed"; },
                 [](const Unresponsive&) { return "unresponsive"; },
                 [](const StoppedBySignal& stopped) {
                   const bool by_hand = stopped.signal == SIGINT || stopped.signal == SIGQUIT ||
                                        stopped.signal == stop_signal();
                   return by_hand ? "interrupted" : "terminated";
                 },
                 [](const GuardianGone&) { return "killed"; }, [](const WalltimeNear&) { return "walltime"; },
                 [](const NodeLost&) { return "node-lost"; },
                 [](const Aborted& aborted) {
                   return aborted.exit_code == exit_code::stalled ? "stalled" : "aborted";
                 }},
      cause);
}

int exit_code(const Cause& cause) {
  return std::visit(
      Overloaded{[](const Finished&) { return exit_code::ok; },
                 [](const ProcessFailed& failed) {
                   return failed.status.ok() ? kEndedTooEarly : failed.status.shell_code();
                 },
                 [](const StartFailed&) { return kCannotBeStarted; },
                 [](const NeverReady&) { return exit_code::not_ready; },
                 [](const PartLost&) { return kServesNobody; },
                 [](const Unresponsive&) { return exit_code::stalled; },
                 [](const StoppedBySignal& stopped) { return exit_code_of_stop(stopped.signal); },
                 [](const GuardianGone&) { return exit_code::internal; },
                 [](const WalltimeNear&) { return exit_code::walltime; },
                 [](const NodeLost&) { return 128 + SIGKILL; },
                 [](const Aborted& aborted) { return aborted.exit_code; }},
      cause);
}

int exit_code(const Outcome& outcome) {
  return exit_code(outcome.cause);
}

std::string sentence(const Outcome& outcome) {
  const auto name = outcome.first ? who(outcome.processes[*outcome.first]) : std::string();
  const auto decided = outcome.decided.value_or(outcome.took);
  const auto when = in_seconds(decided);
  return std::visit(
      Overloaded{
          [&](const Finished&) { return fmt::format("finished after {}", when); },
          [&](const ProcessFailed& failed) {
            const auto* first = outcome.first ? &outcome.processes[*outcome.first] : nullptr;
            if (first != nullptr && *outcome.first != failed.process && first->exception)
              return raised_before(outcome, failed) + after_a_child(outcome, first->exception->at) +
                     crash_loop(failed, outcome.processes[failed.process].name);
            return fmt::format("{} {}{}{}{}{}{}{}", name, failed.status.str(),
                               failed.status.ok() ? " but was expected to keep running," : "", after(outcome),
                               before_the_next(outcome), after_a_child(outcome, decided),
                               crash_loop(failed, "it"), by_exception(outcome));
          },
          [&](const StartFailed& failed) { return fmt::format("{}: {}", name, failed.reason); },
          [&](const NeverReady& never) {
            return never.has_ended
                       ? fmt::format("{} exited with code 0{}, before it was ready", name, after(outcome))
                       : fmt::format("{} was not ready in time ({})", name, outcome.not_ready);
          },
          [&](const PartLost& lost) {
            return fmt::format("{}, and {} did not exit within {}", lost.reason, name,
                               in_seconds(kTimeToEndWithoutPart));
          },
          [&](const Unresponsive& silent) {
            return fmt::format("{} stopped responding ({}) {} into the run", name, silent.reason, when);
          },
          [&](const StoppedBySignal& stopped) {
            return fmt::format("stopped by {} after {}", name_of_stop(stopped.signal), when);
          },
          [&](const GuardianGone&) { return fmt::format("nlaunch was killed after {}", when); },
          [&](const WalltimeNear&) {
            return fmt::format("stopped after {} because the walltime is near", when);
          },
          [&](const NodeLost& lost) {
            return fmt::format("node {} was lost after {}: {}", lost.host, when, lost.why);
          },
          [&](const Aborted& aborted) {
            return fmt::format("{} ({} into the run){}{}", aborted.reason, when,
                               after_a_child(outcome, decided, aborted.reason), by_exception(outcome));
          }},
      outcome.cause);
}

std::string saved_sentence(const Outcome& outcome, const plan::Plan& plan) {
  if (!plan.checkpoint || std::holds_alternative<Finished>(outcome.cause)) return {};
  const auto& newest = outcome.checkpoint;
  if (!newest) return "no complete checkpoint was found";
  auto sentence = fmt::format("the newest complete checkpoint is {}", newest->path);
  if (!newest->step) return sentence;
  sentence += fmt::format(" (step {})", *newest->step);
  const auto after = outcome.last_step.value_or(0) - std::min(outcome.last_step.value_or(0), *newest->step);
  if (after == 1) sentence += "; the step after it is not saved";
  if (after > 1) sentence += fmt::format("; the {} steps after it are not saved", after);
  return sentence;
}

std::string advice(const Outcome& outcome) {
  if (std::holds_alternative<NeverReady>(outcome.cause)) return outcome.check;
  const auto* failed = std::get_if<ProcessFailed>(&outcome.cause);
  const auto lost = lost_child(outcome);
  // nlaunch does not kill processes during the run.
  const bool killed = (failed != nullptr && failed->status.signal() == SIGKILL) ||
                      (lost && lost->child->status && lost->child->status->signal() == SIGKILL);
  if (!killed) return {};
  if (outcome.oom_kills > 0) {
    return fmt::format(
        "the kernel's OOM killer was active: the job's memory cgroup counted {} during the run; `dmesg -T` "
        "on the node shows the sizes",
        text::count(outcome.oom_kills, "OOM kill"));
  }
  return "nlaunch did not send this SIGKILL; the usual cause is the kernel's OOM killer: check `dmesg -T` "
         "or `journalctl -k` on the node";
}

Json to_json(const ProcessReport& process) {
  auto children = Json::array();
  for (const auto& child : process.children) children.push_back(child_json(child));
  Json out{{"name", process.name},
           {"host", process.host},
           {"rank", process.rank},
           {"program", process.program},
           {"pid", process.pid},
           {"started_ms", milliseconds(process.started)},
           {"ready_ms", milliseconds(process.ready)},
           {"ended_ms", milliseconds(process.ended)},
           {"end", status_json(process.status)},
           {"restarts", process.restarts},
           {"children", std::move(children)},
           {"ended_early", process.ended_early},
           {"lost", process.lost},
           {"left_behind", process.left_behind},
           {"last_lines", process.last_lines},
           {"log", process.log},
           {"log_when_decided", process.log_when_decided ? Json(*process.log_when_decided) : Json(nullptr)}};
  if (const auto& raised = process.exception)
    out["exception"] = {
        {"type", raised->type}, {"message", raised->message}, {"raised_ms", raised->at.count()}};
  return out;
}

Json to_json(const Outcome& outcome) {
  Json summary = {{"outcome", name_of(outcome.cause)}, {"exit_code", exit_code(outcome)},
                  {"what", sentence(outcome)},         {"advice", advice(outcome)},
                  {"started", outcome.started_at},     {"ended", outcome.ended_at},
                  {"took_ms", outcome.took.count()},   {"decided_ms", milliseconds(outcome.decided)}};
  summary["first"] = outcome.first ? Json(outcome.processes[*outcome.first].name) : Json(nullptr);
  if (const auto lost = lost_child(outcome)) {
    summary["lost_child"] = child_json(*lost->child);
    summary["lost_child"]["process"] = lost->process->name;
  }
  summary["last_lines"] = outcome.last_lines;
  summary["processes"] = Json::array();
  summary["left_behind"] = outcome.left_behind;
  summary["survivors"] = outcome.survivors;
  summary["terminal_skipped"] = {{"lines", outcome.skipped.lines}, {"bytes", outcome.skipped.bytes}};
  summary["log_bytes_lost"] = outcome.lost_bytes;
  summary["oom_kills"] = outcome.oom_kills;
  summary["troubles"] = outcome.troubles;
  if (!outcome.watch.is_null()) summary["watch"] = outcome.watch;
  if (const auto& known = outcome.explanation)
    summary["explanation"] = {
        {"class", known->category}, {"why", known->why}, {"fix", known->fix}, {"sure", known->sure}};
  if (const auto& newest = outcome.checkpoint) {
    summary["checkpoint"] = {{"path", newest->path}};
    if (newest->step) summary["checkpoint"]["step"] = *newest->step;
    if (outcome.last_step) summary["checkpoint"]["last_step"] = *outcome.last_step;
  }
  return summary;
}

Json summary_of_lost_supervisor(sys::WaitStatus status, const std::vector<std::string>& killed,
                                const std::vector<std::string>& survivors) {
  const auto what = fmt::format("nlaunch's supervisor {}; the guardian ended the run", status.str());
  auto summary = stamped<Json>(formats::kSummary);
  summary.update({{"outcome", "killed"},
                  {"exit_code", exit_code::internal},
                  {"sentence", what},
                  {"what", what},
                  {"ended", utc_now()},
                  {"left_behind", killed},
                  {"survivors", survivors}});
  return summary;
}

}  // namespace nlaunch::supervise
