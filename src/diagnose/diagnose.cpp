#include "diagnose/diagnose.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <csignal>

#include "base/text.h"
#include "diagnose/collector.h"
#include "diagnose/inputs.h"
#include "diagnose/ranking.h"
#include "diagnose/scanner.h"

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
Standing standing_of(const Diagnosis& diagnosis, const std::string& name) {
  if (!diagnosis.run) return Standing::unknown;
  const auto found = diagnosis.run->standing.find(process_of_file(name));
  return found == diagnosis.run->standing.end() ? Standing::unknown : found->second;
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
  if (!diagnosis.findings.empty()) return;
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
  std::erase_if(diagnosis.notes, [&](const Finding& note) { return note.category == confirmed->category; });
  diagnosis.findings.push_back(std::move(*confirmed));
}

/// How a process ended that failed first, by its exit code as a shell has it.
struct FirstEnd {
  int code;
  std::string_view category;
  std::string_view why;
  std::string_view fix;
};
constexpr FirstEnd kFirstEnds[] = {
    {kOfSignals + SIGKILL, "process-killed", "it was killed (SIGKILL), and not by nlaunch",
     "who kills: the kernel where memory runs out (dmesg -T | grep -i oom; the memory limit of the job), the "
     "scheduler, a person"},
    {kOfSignals + SIGSEGV, "segfault-native-library", "native code in it crashed (SIGSEGV)",
     "PYTHONFAULTHANDLER=1 prints where; a core dump"},
    {kOfSignals + SIGBUS, "segfault-native-library",
     "native code in it crashed (SIGBUS): often /dev/shm or a disk is full",
     "df -h /dev/shm; PYTHONFAULTHANDLER=1 prints where"},
    {kOfSignals + SIGABRT, "aborted", "native code in it gave up (SIGABRT)",
     "its last lines; PYTHONFAULTHANDLER=1 prints where"},
    {kOfSignals + SIGTERM, "process-terminated", "it was asked to end (SIGTERM), and not by nlaunch",
     "who ends it: a person, the scheduler, a script of the site"},
    {kOfSignals + SIGINT, "process-terminated", "it was interrupted (SIGINT), and not by nlaunch",
     "who ends it: a person, a script"},
};

/// What the summary of a run knows of the process that failed first.
std::optional<Finding> end_of_first(const Diagnosis& diagnosis) {
  if (!diagnosis.run || !diagnosis.run->failed || diagnosis.inputs.empty()) return std::nullopt;
  const auto& run = *diagnosis.run;
  Finding finding;
  finding.category = "process-exited";
  finding.signature = "summary";
  finding.weight = kEndOfFirst;
  finding.why = run.what;
  finding.fix = "its last lines say why, in words that nlaunch does not know";
  finding.confidence = Confidence::unsure;
  for (const auto& end : kFirstEnds) {
    if (run.code != end.code) continue;
    finding.category = end.category;
    finding.why = fmt::format("{}: {}", run.what, end.why);
    finding.fix = end.fix;
    finding.weight = kKilledFirst;
    finding.confidence = Confidence::sure;
  }
  for (std::size_t i = 0; i < diagnosis.inputs.size(); ++i) {
    if (process_of_file(diagnosis.inputs[i].name) != run.first) continue;
    finding.position = {static_cast<std::uint32_t>(i), diagnosis.inputs[i].lines};
    finding.text = diagnosis.inputs[i].last;
    Origin origin;
    origin.process = run.first;
    finding.culprits = {origin};
    break;
  }
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
  for (auto& finding : ranked(collector, end_of_first(diagnosis))) {
    (finding.role == Role::note ? diagnosis.notes : diagnosis.findings).push_back(std::move(finding));
  }
  confirm_missing_program(diagnosis, collector);
  return diagnosis;
}

}  // namespace nlaunch::diagnose
