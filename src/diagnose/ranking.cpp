#include "diagnose/ranking.h"

#include <algorithm>
#include <map>

namespace nlaunch::diagnose {
namespace {

bool is_failure(Kind kind) {
  return kind != Kind::note && kind != Kind::clue && kind != Kind::fact && kind != Kind::end;
}

bool is_root(Kind kind) {
  return kind == Kind::root || kind == Kind::fallback;
}

/// Takes `other`, of the same class, into `finding`.
void merge(Finding& finding, Finding other) {
  const auto count = finding.count + other.count;
  const bool better =
      other.weight > finding.weight || (other.weight == finding.weight && earlier(other, finding));
  if (better) std::swap(finding, other);
  if (other.weight == finding.weight) {
    for (auto& origin : other.culprits) {
      if (std::ranges::find(finding.culprits, origin) == finding.culprits.end())
        finding.culprits.push_back(std::move(origin));
    }
  } else if (finding.culprits.empty()) {
    finding.culprits = std::move(other.culprits);
  }
  finding.count = count;
}

/// Of several descriptions of the same process, one that has all their parts.
std::vector<Origin> joined(const std::vector<Origin>& whos) {
  std::vector<Origin> out;
  for (const auto& origin : whos) {
    const auto same = std::ranges::find_if(out, [&](const Origin& known) {
      const auto agrees = [&](std::string Origin::*part) {
        return !(origin.*part).empty() && origin.*part == known.*part;
      };
      const auto differs = [&](std::string Origin::*part) {
        return !(origin.*part).empty() && !(known.*part).empty() && origin.*part != known.*part;
      };
      const bool task = agrees(&Origin::host) && ((!origin.task.empty() && origin.task == known.rank) ||
                                                  (!known.task.empty() && known.task == origin.rank));
      const bool one = task || agrees(&Origin::rank) || (agrees(&Origin::pid) && !differs(&Origin::host)) ||
                       agrees(&Origin::peer) ||
                       (agrees(&Origin::host) && origin.rank.empty() && known.pid.empty());
      return one && !differs(&Origin::rank) && !differs(&Origin::peer) && !differs(&Origin::host);
    });
    if (same == out.end()) {
      out.push_back(origin);
    } else {
      same->fill(origin);
    }
  }
  const auto all = out;
  std::erase_if(out, [&](const Origin& origin) {
    return std::ranges::any_of(all, [&](const Origin& other) {
      auto more = origin;
      more.fill(other);
      return origin != other && more == other;  // it says nothing that the other does not say
    });
  });
  return out;
}

Finding finding_of(const Signature& signature, const Tally& tally) {
  auto finding = tally.best;
  finding.count = tally.count;
  finding.culprits = is_root(signature.kind) ? tally.whos : finding.culprits;
  if (signature.kind == Kind::note) finding.role = Role::note;
  finding.confidence = signature.kind == Kind::root ? Confidence::sure : Confidence::likely;
  return finding;
}

using Classes = std::map<std::string, Finding>;

/// A failure that a warning explains is reported at that warning.
void take_clues(Classes& classes, const Collector& collected) {
  for (const auto& [signature, tally] : collected.tallies()) {
    const auto found = classes.find(signature->category);
    if (signature->kind != Kind::clue || found == classes.end()) continue;
    auto& finding = found->second;
    const auto& clue = tally.best;
    if (clue.position.file != finding.position.file || finding.position < clue.position) continue;
    finding.signature = clue.signature;
    finding.position = clue.position;
    finding.text = clue.text;
    finding.time = clue.time;
    finding.why = clue.why;
    finding.fix = clue.fix;
    finding.source = clue.source;
  }
}

/// That it exited says little if it has printed something itself.
bool adds_nothing(const Finding& end, const std::vector<Finding>& told, const Collector& collected) {
  return end.weight == kEndOfFirst && std::ranges::any_of(told, [&](const Finding& finding) {
           return end.culprits.empty() || collected.standing(finding.position.file) == Standing::failed;
         });
}

/// Where a line of the first process reports what nlaunch saw, the finding is at that line.
void move_to_its_line(Finding& seen, const std::vector<Finding>& told, const Collector& collected) {
  const auto line = std::ranges::find_if(told, [&](const Finding& finding) {
    return finding.category == seen.category && collected.standing(finding.position.file) == Standing::failed;
  });
  if (line == told.end()) return;
  seen.position = line->position;
  seen.text = line->text;
  seen.time = line->time;
}

/// If processes lost a peer, and one is known to have exited, it is the peer: the one on the host that they
/// lost, or else the first that exited.
void name_the_peer(Classes& classes, const Collector& collected) {
  const auto lost = classes.find("peer-process-died");
  if (lost == classes.end()) return;
  const Finding* ended = nullptr;
  for (const auto* category : {"process-exited", "process-killed"}) {
    const auto found = classes.find(category);
    if (found != classes.end() && (ended == nullptr || earlier(found->second, *ended)))
      ended = &found->second;
  }
  if (ended == nullptr) return;
  auto culprits = ended->culprits;
  for (const auto& [signature, tally] : collected.tallies()) {
    if (signature->kind != Kind::fatal) continue;
    for (const auto& origin : tally.whos) {
      const bool is_peer =
          !origin.host.empty() && std::ranges::any_of(lost->second.culprits, [&](const Origin& reporter) {
            return reporter.peer.substr(0, reporter.peer.find('.')) ==
                   origin.host.substr(0, origin.host.find('.'));
          });
      if (is_peer) culprits = {origin};
    }
  }
  auto& finding = lost->second;
  finding.why = "a process exited, and others lost their connection to it";
  finding.fix = "read the log of that process: it exited first";
  finding.culprits = std::move(culprits);
  if (!earlier(*ended, finding)) return;
  finding.position = ended->position;
  finding.text = ended->text;
  finding.time = ended->time;
}

/// What the process that holds up the others repeated to the end is why it does so.
void explain_the_hang(std::vector<Finding>& hints, const Collector& collected, const Finding& hang) {
  constexpr std::uint64_t kLastLines = 100;  // it may print some more when it is stopped
  if (hang.position.line == 0) return;       // its log was not read: the position is that of another one
  for (const auto& [signature, tally] : collected.tallies()) {
    const auto last = tally.last.find(hang.position.file);
    if (signature->kind != Kind::hint || signature->weight <= kEndOfFirst || last == tally.last.end())
      continue;
    const bool repeated = tally.count > 1;
    if (!repeated || last->second.position.line + kLastLines < hang.position.line) continue;
    auto reason = last->second;
    reason.count = 0;  // its lines are counted where it is a hint
    reason.confidence = Confidence::likely;
    reason.weight = hang.weight + 1;
    hints.push_back(std::move(reason));
  }
}

/// vLLM's engine not starting is what happened, whether it lacked memory or raised an exception.
void name_the_engine(Classes& classes) {
  const auto engine = classes.find("vllm-enginecore-start-failure");
  if (engine == classes.end()) return;
  for (const auto* category : {"cuda-oom", "python-exception"}) {
    const auto reason = classes.find(category);
    if (reason == classes.end() || reason->second.weight < engine->second.weight) continue;
    auto found = reason->second;
    found.category = engine->first;
    found.why = "vLLM's engine did not start: " + found.why;
    engine->second = std::move(found);
    classes.erase(reason);
  }
}

/// What other lines say about the same process; and if a cause names no origin and one process exited, that
/// one.
void complete_culprits(Classes& classes, const Collector& collected) {
  std::vector<Origin> known;
  std::vector<Origin> ended;
  for (const auto& [signature, tally] : collected.tallies()) {
    known.insert(known.end(), tally.whos.begin(), tally.whos.end());
    if (signature->kind == Kind::fatal) ended.insert(ended.end(), tally.whos.begin(), tally.whos.end());
  }
  ended = joined(ended);
  for (const auto& [category, finding] : classes)
    known.insert(known.end(), finding.culprits.begin(), finding.culprits.end());
  for (auto& [category, finding] : classes) {
    if (finding.culprits.empty() && ended.size() == 1 && finding.weight > kConsequence)
      finding.culprits = ended;
    for (auto& culprit : finding.culprits) {
      for (const auto& origin : known) {
        const bool same = !culprit.pid.empty() && culprit.pid == origin.pid &&
                          (culprit.host.empty() || origin.host.empty() || culprit.host == origin.host);
        if (!same) continue;
        const auto peer = culprit.peer;
        culprit.fill(origin);
        culprit.peer = peer;
      }
    }
  }
}

/// Failures that the run survived: its program succeeded after them, and no process failed.
bool got_over(const Finding& finding, const Collector& collected, bool failed) {
  const auto end = collected.good_ends().find(finding.position.file);
  if (failed || finding.lasting || end == collected.good_ends().end()) return false;
  return finding.position < end->second || finding.weight <= kConsequence;
}

/// For a run it is known which process failed first. Output of processes that exited after it explains
/// nothing, if the first one or its exit does; but an exception caused by a server leads on to that server.
void put_the_first_first(std::vector<Finding>& findings, const Collector& collected) {
  const auto of_the_first = [&](const Finding& finding) {
    return collected.standing(finding.position.file) == Standing::failed;
  };
  const bool explained = std::ranges::any_of(findings, [&](const Finding& finding) {
    return of_the_first(finding) && finding.weight > kConsequence && finding.weight != kOfAPeer;
  });
  if (!explained) return;
  for (auto& finding : findings) {
    if (collected.standing(finding.position.file) == Standing::stopped &&
        !collected.is_from_before(finding.position.file))
      finding.weight = std::min(finding.weight, kConsequence);
  }
}

void give_roles(std::vector<Finding>& findings) {
  for (auto& finding : findings) {
    const bool first = &finding == &findings.front();
    finding.role = first ? Role::cause : finding.weight <= kConsequence ? Role::consequence : Role::other;
    finding.severity = finding.role == Role::consequence ? Severity::warning : Severity::error;
    finding.culprits = joined(finding.culprits);
  }
}

}  // namespace

std::vector<Finding> ranked(const Collector& collected, const std::optional<Finding>& end) {
  std::vector<Finding> told;
  std::vector<Finding> hints;
  std::vector<Finding> notes;
  bool ended_badly = false;
  for (const auto& [signature, tally] : collected.tallies()) {
    ended_badly = ended_badly || signature->kind == Kind::fatal;
    if (signature->kind == Kind::hint)
      hints.push_back(finding_of(*signature, tally));
    else if (is_failure(signature->kind))
      told.push_back(finding_of(*signature, tally));
    else if (signature->kind == Kind::note)
      notes.push_back(finding_of(*signature, tally));
  }
  for (auto& finding : collected.analysed()) told.push_back(std::move(finding));
  if (end) {
    ended_badly = true;
    if (!adds_nothing(*end, told, collected)) {
      told.push_back(*end);
      if (end->weight == kSeenCause) move_to_its_line(told.back(), told, collected);
    }
  }
  const bool failed = !told.empty();
  if (end && end->category == "hang" && end->weight == kSureHang) explain_the_hang(hints, collected, *end);
  told.insert(told.end(), hints.begin(), hints.end());
  put_the_first_first(told, collected);
  Classes classes;
  for (auto& finding : told) {
    const auto [position, fresh] = classes.try_emplace(finding.category, finding);
    if (!fresh) merge(position->second, std::move(finding));
  }
  name_the_peer(classes, collected);
  name_the_engine(classes);
  complete_culprits(classes, collected);
  take_clues(classes, collected);

  std::vector<Finding> all;
  for (auto& [category, finding] : classes) {
    const bool wrong = failed && !got_over(finding, collected, ended_badly);
    if (!wrong) finding.role = Role::note;
    (wrong ? all : notes).push_back(std::move(finding));
  }
  std::ranges::stable_sort(all, [](const Finding& a, const Finding& b) {
    return a.weight != b.weight ? a.weight > b.weight : earlier(a, b);
  });
  give_roles(all);
  for (auto& note : notes) {
    note.severity = Severity::note;
    all.push_back(std::move(note));
  }
  return all;
}

}  // namespace nlaunch::diagnose
