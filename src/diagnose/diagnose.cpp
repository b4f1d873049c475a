#include "diagnose/diagnose.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/text.h"
#include "diagnose/collector.h"
#include "diagnose/inputs.h"
#include "diagnose/process_facts.h"
#include "diagnose/ranking.h"
#include "diagnose/scanner.h"
#include "sys/wait_status.h"

namespace nlaunch::diagnose {
namespace {

/// The origin of a file, from its name: "rank3.log", "learner.0.log".
Origin whose_file(const std::string& name) {
  static const re2::RE2 kRank(R"((?i)rank[-_.=]?(\d+)[^/]*$)");
  Origin origin;
  origin.process = process_of_file(name);
  if (origin.process.empty()) re2::RE2::PartialMatch(name, kRank, &origin.rank);
  return origin;
}

/// What the run that is read says about the process that wrote this log.
FileStanding standing_of(const Diagnosis& diagnosis, const std::string& name) {
  if (!diagnosis.run) return {};
  const auto process = process_of_file(name);
  FileStanding standing;
  if (const auto found = diagnosis.run->standing.find(process); found != diagnosis.run->standing.end())
    standing.of = found->second;
  if (const auto found = diagnosis.run->log_when_decided.find(process);
      found != diagnosis.run->log_when_decided.end() && standing.of != Standing::failed &&
      !is_error_record(name))
    standing.decided_at = found->second;
  return standing;
}

/// A shell continues after a program that does not exist, so its message alone is not a failure. It is one if
/// nothing follows it, and certainly if its process exited with the code that shells use for it.
std::optional<Confidence> proof_of(const Diagnosis& diagnosis, const Finding& missing) {
  constexpr int kNotFound = 127;
  const auto& input = diagnosis.inputs[missing.position.file];
  if (diagnosis.run) {
    const auto& run = *diagnosis.run;
    if (run.unread.empty() && !run.failed) return std::nullopt;
    if (run.code == kNotFound && process_of_file(input.name) == run.first) return Confidence::sure;
  }
  if (input.last.empty() || text::trim(missing.text) != input.last) return std::nullopt;
  return Confidence::likely;
}

/// If there is no other problem, a program that does not exist may still be the cause.
void confirm_missing_program(Diagnosis& diagnosis, const Collector& collected) {
  // That the first process exited is known for every failed run.
  const bool nothing_else = std::ranges::all_of(diagnosis.findings, [](const Finding& finding) {
    return finding.weight == kEndOfFirst || finding.category == "entrypoint-missing";
  });
  if (!nothing_else) return;
  std::optional<Finding> confirmed;
  for (const auto& [signature, tally] : collected.tallies()) {
    if (signature->kind != Kind::hint || signature->category != "entrypoint-missing") continue;
    for (const auto& [file, missing] : tally.last) {
      const auto proof = proof_of(diagnosis, missing);
      if (!proof || (confirmed && (confirmed->confidence == Confidence::sure || proof != Confidence::sure)))
        continue;
      confirmed = missing;
      confirmed->confidence = *proof;
    }
  }
  if (!confirmed) return;
  confirmed->role = Role::cause;
  diagnosis.findings.clear();
  std::erase_if(diagnosis.notes, [&](const Finding& note) { return note.category == confirmed->category; });
  diagnosis.findings.push_back(std::move(*confirmed));
}

/// What the cause means for the process that it is about.
void complete_cause(Diagnosis& diagnosis) {
  if (!diagnosis.run || diagnosis.findings.empty()) return;
  auto& cause = diagnosis.findings.front();
  if (cause.culprits.empty() || !depends_on_process(cause.signature)) return;
  const auto& run = *diagnosis.run;
  const auto& process = cause.culprits.front().process;
  const auto host = run.hosts.find(process);
  const auto facts =
      read_process_facts(run.folder, run.attempt, process, host == run.hosts.end() ? "" : host->second);
  if (facts) complete(cause, *facts);
}

/// The meaning of an exit that nlaunch did not request.
struct End {
  std::string_view how;  ///< the name of a signal
  std::string_view category;
  std::string_view why;
  std::string_view fix;
};
constexpr End kEnds[] = {
    {"SIGKILL", "process-killed", "was killed (SIGKILL), not by nlaunch",
     "find out what killed it: the kernel when memory ran out (dmesg -T | grep -i oom; the memory limit of "
     "the job), the scheduler, or a person"},
    {"SIGSEGV", "segfault-native-library", "crashed in native code (SIGSEGV)",
     "set PYTHONFAULTHANDLER=1 to print where; check for a core dump"},
    {"SIGBUS", "segfault-native-library",
     "crashed in native code (SIGBUS): often because /dev/shm or a disk is full",
     "check df -h /dev/shm; set PYTHONFAULTHANDLER=1 to print where"},
    {"SIGABRT", "aborted", "was aborted by its own native code (SIGABRT)",
     "see its last lines; set PYTHONFAULTHANDLER=1 to print where"},
    {"SIGTERM", "process-terminated", "was terminated (SIGTERM), not by nlaunch",
     "find out what sent SIGTERM: a person, the scheduler, or a site script"},
    {"SIGINT", "process-terminated", "was interrupted (SIGINT), not by nlaunch",
     "find out what sent SIGINT: a person or a script"},
};

constexpr End kOutOfMemory{
    "SIGKILL", "host-oom",
    "was killed by the kernel: the node or the memory limit of the job had no memory left",
    "request more memory for the job (--mem), or use less in it: fewer data loader workers, no offload to "
    "the host, smaller buffers; dmesg -T on the node shows the sizes"};

const End* end_by(std::string_view signal, const RunFolder& run) {
  if (run.out_of_memory && (signal == kOutOfMemory.how || signal.empty())) return &kOutOfMemory;
  const auto* const found = std::ranges::find(kEnds, signal, &End::how);
  return found == std::end(kEnds) ? nullptr : found;
}

/// At the end of the log of a process of the run.
Finding at_the_end_of(const Diagnosis& diagnosis, const std::string& process) {
  Finding finding;
  finding.signature = "summary";
  finding.confidence = Confidence::sure;
  for (std::size_t i = 0; i < diagnosis.inputs.size(); ++i) {
    if (process.empty() || process_of_file(diagnosis.inputs[i].name) != process) continue;
    finding.position = {static_cast<std::uint32_t>(i), diagnosis.inputs[i].lines};
    finding.text = diagnosis.inputs[i].last;
    break;
  }
  return finding;
}

Origin origin_from(const KnownCulprit& culprit) {
  Origin origin;
  origin.process = culprit.process;
  origin.actor = culprit.program;
  origin.pid = culprit.pid;
  return origin;
}

/// "VLLM::EngineCore (pid 4711) of engine.0"
std::string name_of(const Origin& origin) {
  auto program = origin;
  program.process.clear();
  program.rank.clear();
  return program.empty() ? origin.process : fmt::format("{} of {}", program.str(), origin.process);
}

Finding end_of(Finding finding, const Origin& who, const End& end, int weight) {
  finding.category = end.category;
  finding.why = fmt::format("{} {}", name_of(who), end.why);
  finding.fix = end.fix;
  finding.culprits = {who};
  finding.weight = weight;
  // The count is that of the whole memory cgroup: it may have been another process in it.
  if (end.category == kOutOfMemory.category) finding.confidence = Confidence::likely;
  return finding;
}

Finding end_of_hang(const Diagnosis& diagnosis, const KnownHang& hang) {
  const auto first = hang.culprits.empty() ? KnownCulprit() : hang.culprits.front();
  auto finding = at_the_end_of(diagnosis, first.process);
  finding.category = "hang";
  finding.why = diagnosis.run->what;
  finding.fix = "run nlaunch evidence to see what each process did";
  if (hang.doing == "stopped") {
    finding.category = "process-stopped";
    finding.fix = fmt::format(
        "kill -CONT {} (SIGCONT) continues it; find out what stopped it: a debugger, a person, or shell job "
        "control",
        first.pid);
  } else if (hang.doing == "uninterruptible") {
    finding.category = "process-stuck";
    finding.fix =
        "a file server, disk or driver does not respond: see the kernel log of that node (dmesg -T)";
  } else if (hang.doing == "paused") {
    finding.fix =
        "POST /resume continues it; find out what paused it: a weight sync that failed before it resumed, or "
        "a person";
  }
  for (const auto& culprit : hang.culprits) finding.culprits.push_back(origin_from(culprit));
  finding.weight = hang.sure ? kSureHang : kEndOfFirst;
  if (!hang.sure) finding.confidence = Confidence::unsure;
  return finding;
}

/// The process that was asked to exit before the run was decided, according to its own log.
std::optional<Finding> asked_to_end(const Collector& collector, const RunFolder& run) {
  if (collector.asked_to_end().empty()) return std::nullopt;
  const auto& [file, asked] = *collector.asked_to_end().begin();
  if (asked.culprits.empty()) return std::nullopt;
  auto finding = end_of(asked, asked.culprits.front(), *end_by("SIGTERM", run), kLostChild);
  finding.confidence = Confidence::likely;
  return finding;
}

/// Whether a process was asked to exit because another process of the same server was killed: one that its
/// server asked, or a part of the server. A server that is asked itself kills its parts in the end.
bool is_reaction(const Finding& asked, const Collector& collector, const RunFolder& run) {
  if (!run.lost_child) return false;
  const auto& killed = *run.lost_child;
  const auto* end = end_by(killed.how, run);
  const auto& who = asked.culprits.front();
  if (end == nullptr || end->category == "process-terminated" || who.process != killed.process) return false;
  if (collector.killed_by_server().contains(killed.pid)) return false;
  if (asked.signature == kPassedOn) return true;
  const bool is_part = !who.actor.empty() && !text::lower(who.actor).contains("server");
  return is_part && who.pid != killed.pid && who.pid != run.first_known.pid;
}

Finding early_end(const Diagnosis& diagnosis, const KnownCulprit& early) {
  auto finding = at_the_end_of(diagnosis, early.process);
  finding.category = "ended-early";
  finding.why = fmt::format("{} {}", early.process, early.how);
  finding.fix =
      "was this intended (early stopping, a limit of time or of samples)? If not, see its last lines; the "
      "run can resume from its last checkpoint";
  finding.confidence = Confidence::unsure;
  finding.weight = kEndOfFirst;
  finding.culprits = {origin_from(early)};
  return finding;
}

Finding end_of_child(const Diagnosis& diagnosis, const KnownCulprit& child) {
  static constexpr End kOrderly{"exited", "process-terminated",
                                "exited normally (exit code 0), as after a SIGTERM",
                                "find out what sent SIGTERM: a person, the scheduler, or a site script"};
  static constexpr End kUnknown{"", "process-exited", "exited; Linux before 6.15 tells only its parent how",
                                "check dmesg -T on that node (the OOM killer), and its own output above"};
  const auto* by_signal = end_by(child.how, *diagnosis.run);
  const auto& end = by_signal != nullptr ? *by_signal : child.how.empty() ? kUnknown : kOrderly;
  auto finding = end_of(at_the_end_of(diagnosis, child.process), origin_from(child), end, kLostChild);
  if (by_signal == nullptr) {
    finding.confidence = Confidence::likely;
    finding.weight = kKilledFirst;
  }
  return finding;
}

/// Of a process whose output is on another node.
std::optional<Finding> known_exception(const Diagnosis& diagnosis) {
  const auto& run = *diagnosis.run;
  const bool has_output = std::ranges::any_of(
      diagnosis.inputs, [&](const Input& input) { return process_of_file(input.name) == run.first; });
  if (run.exception.empty() || has_output) return std::nullopt;
  auto finding = at_the_end_of(diagnosis, run.first);
  finding.category = "python-exception";
  finding.text = run.exception;
  finding.why = fmt::format("Python raised {} in {} and nothing caught it",
                            run.exception.substr(0, run.exception.find(':')), run.first);
  finding.fix = "the log of that process, on its node, has the traceback";
  finding.weight = kException;
  Origin who;
  who.process = run.first;
  finding.culprits = {who};
  return finding;
}

Finding seen_cause(const Diagnosis& diagnosis, const KnownCause& cause) {
  auto finding = at_the_end_of(diagnosis, diagnosis.run->first);
  finding.category = cause.category;
  finding.why = cause.why;
  finding.fix = cause.fix;
  finding.confidence = cause.sure ? Confidence::sure : Confidence::likely;
  finding.weight = cause.sure ? kSeenCause : kEndOfFirst;
  Origin who;
  who.process = diagnosis.run->first;
  finding.culprits = {who};
  return finding;
}

/// A process that does nothing wrong by itself, but has lost a part of its own: that is why others wait for
/// it.
bool explains(const KnownCulprit& lost, const KnownHang& hang, const RunFolder& run) {
  constexpr std::string_view kOwnReasons[] = {"stopped", "uninterruptible", "paused"};
  const bool of_the_culprit = hang.culprits.size() == 1 && hang.culprits.front().process == lost.process;
  return of_the_culprit && end_by(lost.how, run) != nullptr &&
         std::ranges::find(kOwnReasons, hang.doing) == std::end(kOwnReasons);
}

Finding end_of_child_before(const Diagnosis& diagnosis, const KnownCulprit& child) {
  auto finding = end_of_child(diagnosis, child);
  finding.confidence = Confidence::likely;
  return finding;
}

/// What the summary of a run knows about its end: what was killed, what blocked it, what failed first.
std::optional<Finding> known_end(const Diagnosis& diagnosis, const Collector& collector) {
  if (!diagnosis.run || diagnosis.inputs.empty()) return std::nullopt;
  const auto& run = *diagnosis.run;
  if (!run.failed)
    return run.ended_early ? std::optional(early_end(diagnosis, *run.ended_early)) : std::nullopt;
  if (run.hang && run.hang->sure) {
    if (run.lost_child && explains(*run.lost_child, *run.hang, run))
      return end_of_child_before(diagnosis, *run.lost_child);
    return end_of_hang(diagnosis, *run.hang);
  }
  if (run.cause && run.cause->sure) return seen_cause(diagnosis, *run.cause);
  const bool by_itself = run.code.value_or(0) <= kOfSignals;
  if (auto asked = asked_to_end(collector, run); asked && by_itself && !is_reaction(*asked, collector, run))
    return asked;
  if (run.lost_child) return end_of_child(diagnosis, *run.lost_child);
  if (run.hang) return end_of_hang(diagnosis, *run.hang);
  if (run.cause) return seen_cause(diagnosis, *run.cause);
  auto finding = at_the_end_of(diagnosis, run.first);
  const auto* end = by_itself ? nullptr : end_by(sys::signal_name(*run.code - kOfSignals), run);
  if (end != nullptr && !run.first.empty())
    return end_of(std::move(finding), origin_from(run.first_known), *end, kKilledFirst);
  if (auto raised = known_exception(diagnosis)) return raised;
  finding.category = "process-exited";
  finding.why = run.what;
  finding.fix = "its last lines say why, in a form that nlaunch does not recognize";
  if (run.code == 0) {
    finding.category = "ended-early";
    finding.fix = "see its last lines; a role that may exit while the others continue needs exit: ok";
  }
  finding.confidence = Confidence::unsure;
  finding.weight = kEndOfFirst;
  Origin who;
  who.process = run.first;
  if (!run.first.empty()) finding.culprits = {who};
  return finding;
}

/// Collects what is found, and notes what was read.
class Reading : public InputSink {
 public:
  Reading(Diagnosis& diagnosis, Collector& collector) : diagnosis_(diagnosis), collector_(collector) {}

  void on_run(RunFolder run) override {
    diagnosis_.run = std::move(run);  // how its processes exited decides what their lines mean
  }
  void on_stream(const std::string& name) override {
    diagnosis_.inputs.push_back({.name = name});
    collector_.begin(whose_file(name), standing_of(diagnosis_, name));
  }
  void on_match(const Match& match) override { collector_.on_match(match); }
  void on_line(const Line& line) override { collector_.on_line(line); }
  void on_end(const StreamEnd& end, const std::string& remark) override {
    auto& input = diagnosis_.inputs.back();
    input.bytes = end.bytes;
    input.lines = end.lines;
    input.last = end.last;
    input.remark = remark;
  }
  void on_unread(const Diagnostics& why) override { diagnosis_.unread.append(why); }

 private:
  Diagnosis& diagnosis_;
  Collector& collector_;
};

}  // namespace

Diagnosis diagnose(const std::vector<std::string>& paths, const Options& options) {
  Diagnosis diagnosis;
  Collector collector;
  Reading reading(diagnosis, collector);
  read_inputs(paths, options, options.threads, reading);
  collector.finish();
  for (auto& finding : ranked(collector, known_end(diagnosis, collector))) {
    (finding.role == Role::note ? diagnosis.notes : diagnosis.findings).push_back(std::move(finding));
  }
  confirm_missing_program(diagnosis, collector);
  complete_cause(diagnosis);
  return diagnosis;
}

}  // namespace nlaunch::diagnose
