#include "diagnose/diagnose.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/text.h"
#include "diagnose/collector.h"
#include "diagnose/inputs.h"
#include "diagnose/ranking.h"
#include "diagnose/scanner.h"
#include "sys/wait_status.h"

namespace nlaunch::diagnose {
namespace {

/// Whom a file is about, by its name: "rank3.log", "learner.0.log".
Origin whose_file(const std::string& name) {
  static const re2::RE2 kRank(R"((?i)rank[-_.=]?(\d+)[^/]*$)");
  Origin origin;
  origin.process = process_of_file(name);
  if (origin.process.empty()) re2::RE2::PartialMatch(name, kRank, &origin.rank);
  return origin;
}

/// What the run that is read says of the process whose log this is.
FileStanding standing_of(const Diagnosis& diagnosis, const std::string& name) {
  if (!diagnosis.run) return {};
  const auto process = process_of_file(name);
  FileStanding standing;
  if (const auto found = diagnosis.run->standing.find(process); found != diagnosis.run->standing.end())
    standing.of = found->second;
  if (const auto found = diagnosis.run->log_when_decided.find(process);
      found != diagnosis.run->log_when_decided.end() && standing.of != Standing::failed)
    standing.decided_at = found->second;
  return standing;
}

/// Keeps the end of a text that comes in blocks, and its last line.
class LastLine {
 public:
  void feed(std::string_view block) {
    if (text::trim(block).empty()) return;
    end_.append(block.substr(block.size() - std::min(block.size(), kMost)));
    if (end_.size() > kMost) end_.erase(0, end_.size() - kMost);
  }
  [[nodiscard]] std::string take() const {
    const auto end = text::trim(end_);
    return std::string(text::trim(end.substr(end.rfind('\n') + 1)));
  }

 private:
  static constexpr std::size_t kMost = 1024;
  std::string end_;
};

/// A shell goes on behind a program that is not there, so its message alone is no failure. It is one where
/// nothing comes behind it, and for certain where its process ended with the code that shells have for it.
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

/// Where nothing else is wrong, a program that is not there may still be what ended it.
void confirm_missing_program(Diagnosis& diagnosis, const Collector& collected) {
  // That the first process exited is known of every run that failed.
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

/// What an end means that a process was not asked for by nlaunch.
struct End {
  std::string_view how;  ///< the name of a signal
  std::string_view category;
  std::string_view why;
  std::string_view fix;
};
constexpr End kEnds[] = {
    {"SIGKILL", "process-killed", "was killed (SIGKILL), and not by nlaunch",
     "who kills: the kernel where memory runs out (dmesg -T | grep -i oom; the memory limit of the job), the "
     "scheduler, a person"},
    {"SIGSEGV", "segfault-native-library", "crashed in native code (SIGSEGV)",
     "PYTHONFAULTHANDLER=1 prints where; a core dump"},
    {"SIGBUS", "segfault-native-library", "crashed in native code (SIGBUS): often /dev/shm or a disk is full",
     "df -h /dev/shm; PYTHONFAULTHANDLER=1 prints where"},
    {"SIGABRT", "aborted", "was aborted by its own native code (SIGABRT)",
     "its last lines; PYTHONFAULTHANDLER=1 prints where"},
    {"SIGTERM", "process-terminated", "was terminated (SIGTERM), and not by nlaunch",
     "who sends SIGTERM: a person, the scheduler, a script of the site"},
    {"SIGINT", "process-terminated", "was interrupted (SIGINT), and not by nlaunch",
     "who sends SIGINT: a person, a script"},
};

constexpr End kOutOfMemory{
    "SIGKILL", "host-oom",
    "was killed by the kernel: the node or the memory limit of the job had no memory left",
    "more memory for the job (--mem), less in it: fewer workers of data loaders, no offload to the host, "
    "smaller "
    "buffers; dmesg -T on the node has the sizes"};

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
  // The count is that of the whole memory cgroup: it may have been another process of it.
  if (end.category == kOutOfMemory.category) finding.confidence = Confidence::likely;
  return finding;
}

Finding end_of_hang(const Diagnosis& diagnosis, const KnownHang& hang) {
  const auto first = hang.culprits.empty() ? KnownCulprit() : hang.culprits.front();
  auto finding = at_the_end_of(diagnosis, first.process);
  finding.category = "hang";
  finding.why = diagnosis.run->what;
  finding.fix = "nlaunch evidence shows what each process did";
  if (hang.doing == "stopped") {
    finding.category = "process-stopped";
    finding.fix = fmt::format(
        "kill -CONT {} (SIGCONT) continues it; who stops: a debugger, a person, job control of a shell",
        first.pid);
  } else if (hang.doing == "uninterruptible") {
    finding.category = "process-stuck";
    finding.fix =
        "a file server, a disk or a driver does not answer: the kernel's log of that node (dmesg -T)";
  } else if (hang.doing == "paused") {
    finding.fix =
        "POST /resume continues it; who pauses: a weight sync that failed before it resumed, a person";
  }
  for (const auto& culprit : hang.culprits) finding.culprits.push_back(origin_from(culprit));
  finding.weight = hang.sure ? kSureHang : kEndOfFirst;
  if (!hang.sure) finding.confidence = Confidence::unsure;
  return finding;
}

/// Who was asked to end before the run was decided, by the words of its own log.
std::optional<Finding> asked_to_end(const Collector& collector, const RunFolder& run) {
  if (collector.asked_to_end().empty()) return std::nullopt;
  const auto& [file, asked] = *collector.asked_to_end().begin();
  if (asked.culprits.empty()) return std::nullopt;
  auto finding = end_of(asked, asked.culprits.front(), *end_by("SIGTERM", run), kLostChild);
  finding.confidence = Confidence::likely;
  return finding;
}

Finding early_end(const Diagnosis& diagnosis, const KnownCulprit& early) {
  auto finding = at_the_end_of(diagnosis, early.process);
  finding.category = "ended-early";
  finding.why = fmt::format("{} {}", early.process, early.how);
  finding.fix =
      "was it meant to (early stopping, a limit of time or of samples)? Else its last lines; the run can go "
      "on "
      "from its last checkpoint";
  finding.confidence = Confidence::unsure;
  finding.weight = kEndOfFirst;
  finding.culprits = {origin_from(early)};
  return finding;
}

Finding end_of_child(const Diagnosis& diagnosis, const KnownCulprit& child) {
  static constexpr End kOrderly{"exited", "process-terminated",
                                "ended in good order (exit code 0), as after a SIGTERM",
                                "who sends SIGTERM: a person, the scheduler, a script of the site"};
  static constexpr End kUnknown{"", "process-exited", "ended; Linux before 6.15 tells its parent alone how",
                                "dmesg -T on that node (the OOM killer); its own words above"};
  const auto* by_signal = end_by(child.how, *diagnosis.run);
  const auto& end = by_signal != nullptr ? *by_signal : child.how.empty() ? kUnknown : kOrderly;
  auto finding = end_of(at_the_end_of(diagnosis, child.process), origin_from(child), end, kLostChild);
  if (by_signal == nullptr) {
    finding.confidence = Confidence::likely;
    finding.weight = kKilledFirst;
  }
  return finding;
}

/// What the summary of a run knows of its end: who was killed, who held it up, who failed first.
std::optional<Finding> known_end(const Diagnosis& diagnosis, const Collector& collector) {
  if (!diagnosis.run || diagnosis.inputs.empty()) return std::nullopt;
  const auto& run = *diagnosis.run;
  if (!run.failed)
    return run.ended_early ? std::optional(early_end(diagnosis, *run.ended_early)) : std::nullopt;
  if (run.hang && run.hang->sure) return end_of_hang(diagnosis, *run.hang);
  const bool by_itself = run.code.value_or(0) <= kOfSignals;
  if (auto asked = asked_to_end(collector, run); asked && by_itself) return asked;
  if (run.lost_child) return end_of_child(diagnosis, *run.lost_child);
  if (run.hang) return end_of_hang(diagnosis, *run.hang);
  auto finding = at_the_end_of(diagnosis, run.first);
  const auto* end = by_itself ? nullptr : end_by(sys::signal_name(*run.code - kOfSignals), run);
  if (end != nullptr && !run.first.empty())
    return end_of(std::move(finding), origin_from(run.first_known), *end, kKilledFirst);
  finding.category = "process-exited";
  finding.why = run.what;
  finding.fix = "its last lines say why, in words that nlaunch does not know";
  if (run.code == 0) {
    finding.category = "ended-early";
    finding.fix = "its last lines; a role that may end while the others go on has exit: ok";
  }
  finding.confidence = Confidence::unsure;
  finding.weight = kEndOfFirst;
  Origin who;
  who.process = run.first;
  if (!run.first.empty()) finding.culprits = {who};
  return finding;
}

}  // namespace

Diagnosis diagnose(const std::vector<std::string>& paths, const Options& options) {
  Diagnosis diagnosis;
  Collector collector;
  Scanner scanner(collector);
  std::vector<char> block(128U << 10U);
  for_each_input(paths, options, diagnosis, [&](Input& input, sys::ByteSource& bytes) {
    const auto file = static_cast<std::uint32_t>(diagnosis.inputs.size() - 1);
    const auto lines = scanner.lines();
    collector.begin(whose_file(input.name), standing_of(diagnosis, input.name));
    scanner.begin(file);
    LastLine last;
    while (const auto got = bytes.read(block)) {
      scanner.feed({block.data(), got});
      last.feed({block.data(), got});
      input.bytes += got;
      if (!options.enough || !options.enough()) continue;
      input.remark = "reading was stopped";
      break;
    }
    scanner.finish();
    input.lines = scanner.lines() - lines;
    input.last = last.take();
  });
  collector.finish();
  for (auto& finding : ranked(collector, known_end(diagnosis, collector))) {
    (finding.role == Role::note ? diagnosis.notes : diagnosis.findings).push_back(std::move(finding));
  }
  confirm_missing_program(diagnosis, collector);
  return diagnosis;
}

}  // namespace nlaunch::diagnose
