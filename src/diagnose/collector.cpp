#include "diagnose/collector.h"

#include <algorithm>

#include <re2/re2.h>

#include "base/text.h"

namespace nlaunch::diagnose {
namespace {

constexpr std::size_t kMostRanks = 65536;
constexpr std::size_t kMostWhos = 256;
constexpr std::size_t kMostFiles = 4096;  // of these the last line of a hint is kept

/// What these signatures match spoils the result of a program, whatever its exit code.
constexpr std::string_view kOfTheResult = "nan.";

/// A traceback shows lines of the program, below their locations: "    raise ValueError(".
bool is_source_line(const Match& match) {
  static const re2::RE2 kRaise(R"re((?:^|\s)raise (?:[\w.]+\((?:[frb]*["'][^"']*)?)?$)re", re2::RE2::Latin1);
  const auto place = match.previous.find("  File \"");
  const bool below_its_place = place != std::string_view::npos &&
                               match.line.substr(std::min(place, match.line.size())).starts_with("    ");
  return below_its_place ||
         re2::RE2::PartialMatch(re2::StringPiece(match.before.data(), match.before.size()), kRaise);
}

/// A log can contain anything.
std::string shown_part(std::string_view matched) {
  constexpr std::size_t kLongest = 300;
  return text::printable(matched.substr(0, kLongest));
}

/// The text with the parts in place of their names in braces.
std::string filled(std::string text, const std::map<std::string, std::string>& parts) {
  for (const auto& [name, part] : parts) {
    const auto place = "{" + name + "}";
    for (auto at = text.find(place); at != std::string::npos; at = text.find(place, at + part.size()))
      text.replace(at, place.size(), part);
  }
  return text;
}

/// NCCL can do without its RAS.
bool is_of_ras(const Match& match) {
  return match.before.find(" ras/") != std::string_view::npos;
}

}  // namespace

Collector::Collector() {
  for (const auto* entry : analyses()) analyses_.push_back(entry->make());
}

void Collector::begin(Origin whose, FileStanding standing) {
  whose_ = std::move(whose);
  standings_.push_back(standing);
  is_ending_ = standing.of == Standing::asked;
  has_failed_ = false;
  whose_is_guessed_ = whose_.empty();
  last_who_ = {};
}

/// A line without an origin belongs to the file, or to the lines just before it.
void Collector::attribute(Origin& origin, LogPosition position) {
  constexpr std::uint64_t kNear = 8;
  if (origin.empty() && last_position_.file == position.file && position.line - last_position_.line <= kNear)
    origin = last_who_;
  if (origin.rank.empty() && origin.local_rank.empty()) origin.fill(whose_);
  origin.process = whose_.process;
  if (origin.empty()) return;
  last_who_ = origin;
  last_who_.peer.clear();
  last_position_ = position;
}

void Collector::on_match(const Match& found) {
  Match match = found;
  learn(match);
  attribute(match.origin, match.position);
  if (is_beyond_the_run(match)) return;
  match.aside = is_aside(match);
  match.aside = match.aside || std::ranges::any_of(analyses_, [&](const auto& analysis) {
                  return analysis->sets_aside(match);
                });
  for (const auto& analysis : analyses_) analysis->on_match(match);
  if (match.signature->kind == Kind::end) {
    good_ends_[match.position.file] = match.position;
  } else if (match.signature->kind != Kind::fact) {
    weigh(match);
  }
}

/// Output of a process that succeeded, or after the run was decided.
bool Collector::is_beyond_the_run(const Match& match) const {
  const auto& standing = standings_.at(match.position.file);
  const bool ended_well = standing.of == Standing::well && !match.signature->id.starts_with(kOfTheResult);
  return ended_well || (standing.decided_at && match.offset >= *standing.decided_at);
}

/// Failures that are mentioned in passing. After an orderly exit was requested, only lines that give a reason
/// count.
bool Collector::is_aside(const Match& match) {
  note_end(match);
  if (is_source_line(match) || is_of_ras(match)) return true;
  if (match.level == Level::info || match.level == Level::warning) return true;
  if (!is_ending_ || match.signature->kind == Kind::root) return false;
  has_failed_ = has_failed_ || match.signature->kind == Kind::consequence;
  return true;
}

/// The process that was asked to exit, in the log of one that nlaunch has not asked yet, or that failed by
/// itself.
void Collector::note_end(const Match& match) {
  const auto& id = match.signature->id;
  if (id == "end.forced") {
    for (const auto& [group, pid] : match.groups) killed_by_server_.emplace(pid);
    return;
  }
  const bool is_server = id == "end.server";
  const bool is_asked = id == "end.asked" || id == "end.part" || id == kPassedOn || is_server;
  if (!is_asked && id != "end.begun") return;
  is_ending_ = true;
  const auto& standing = standings_.at(match.position.file);
  if (!is_asked || has_failed_ || (standing.of != Standing::failed && !standing.decided_at)) return;
  const auto [noted, fresh] = asked_to_end_.try_emplace(match.position.file);
  // A server that exits normally after a part of it: it asked the part to exit, and was asked itself.
  if (fresh || (is_server && noted->second.signature == "end.part"))
    noted->second = finding_at(match, "process-terminated", id, 0);
}

/// A fallback waits for the end of its line: a signature that knows the line better may come after it.
void Collector::weigh(const Match& match) {
  const auto& signature = *match.signature;
  const bool is_failure = signature.kind != Kind::note && signature.kind != Kind::clue;
  if (match.aside && is_failure) return;
  has_failed_ = has_failed_ || signature.kind == Kind::root || signature.kind == Kind::consequence;
  // NCCL logs at INFO, in the same words, what it tries and can do without.
  if (is_failure && match.before.find("NCCL INFO ") != std::string_view::npos) return;
  const bool fallback = signature.kind == Kind::fallback || signature.kind == Kind::hint;
  if (fallback_ != nullptr && fallen_.position != match.position) keep_fallback();
  if (fallback &&
      (known_ == match.position || (fallback_ != nullptr && fallback_->weight >= signature.weight)))
    return;
  auto finding = finding_at(match, signature.category, signature.id, signature.weight);
  for (const auto& [group, matched] : match.groups) finding.parts[std::string(group)] = shown_part(matched);
  finding.why = filled(signature.why, finding.parts);
  finding.fix = filled(signature.fix, finding.parts);
  finding.source = signature.source;
  if (fallback) {
    fallback_ = &signature;
    fallen_ = std::move(finding);
    return;
  }
  if (is_failure) {
    known_ = match.position;
    fallback_ = nullptr;
  }
  keep(finding, signature);
}

void Collector::keep_fallback() {
  if (fallback_ != nullptr) keep(fallen_, *fallback_);
  fallback_ = nullptr;
}

void Collector::on_line(const Line& line) {
  for (const auto& analysis : analyses_) {
    if (analysis->lines_wanted() > 0) analysis->on_line(line);
  }
}

std::vector<Finding> Collector::analysed() const {
  std::vector<Finding> all;
  for (const auto& analysis : analyses_) {
    for (auto& finding : analysis->findings(world_)) all.push_back(std::move(finding));
  }
  return all;
}

void Collector::learn(const Match& match) {
  if (const auto size = text::whole_number<unsigned>(match["world"]); size && *size > 0)
    world_.size = std::max(world_.size.value_or(0), *size);
  // The processes of a server have their own ranks, and a process of a run has a name.
  const bool of_the_file = match.origin.actor.empty() && whose_.process.empty();
  if (match.signature->id == "world.ranks" && of_the_file && whose_.rank != match.origin.rank) {
    // A file about one rank belongs to that rank; one about several belongs to none.
    const auto only = whose_is_guessed_ ? match.origin.rank : std::string();
    whose_ = {};
    whose_.rank = only;
    whose_is_guessed_ = false;
  }
  const auto rank = text::whole_number<unsigned>(match.origin.rank);
  if (!rank || world_.origin.size() >= kMostRanks) return;
  world_.ranks.insert(*rank);
  world_.origin[*rank].fill(match.origin);
  if (match.signature->id == "gloo.closed")
    world_.blocked_elsewhere.try_emplace(
        *rank, finding_at(match, match.signature->category, match.signature->id, 0));
}

void Collector::keep(const Finding& finding, const Signature& signature) {
  auto& tally = tallies_[&signature];
  if (tally.count++ == 0) tally.best = finding;
  if (signature.kind == Kind::hint &&
      (tally.last.size() < kMostFiles || tally.last.contains(finding.position.file)))
    tally.last[finding.position.file] = finding;
  for (const auto& origin : finding.culprits) {
    if (tally.whos.size() < kMostWhos && std::ranges::find(tally.whos, origin) == tally.whos.end())
      tally.whos.push_back(origin);
  }
}

Finding finding_at(const Match& match, std::string_view category, std::string_view analysis, int weight) {
  Finding finding;
  finding.category = category;
  finding.signature = analysis;
  finding.weight = weight;
  finding.position = match.position;
  finding.text = excerpt(match.line, match.before);
  finding.time = match.time;
  if (!match.origin.empty()) finding.culprits = {match.origin};
  return finding;
}

std::string excerpt(std::string_view line, std::string_view before) {
  constexpr std::size_t kShown = 400;
  constexpr std::size_t kLead = 120;
  if (line.size() <= kShown) return std::string(line);
  const auto from = before.size() > kLead ? before.size() - kLead : 0;
  return (from > 0 ? "..." : "") + std::string(line.substr(from, kShown)) +
         (from + kShown < line.size() ? "..." : "");
}

bool earlier(const Finding& a, const Finding& b) {
  if (a.time && b.time && *a.time != *b.time) return *a.time < *b.time;
  return a.position < b.position;
}

}  // namespace nlaunch::diagnose
