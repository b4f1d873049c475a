#include "import/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <memory>
#include <utility>

#include "base/text.h"
#include "config/names.h"

namespace nlaunch::import {
namespace {

constexpr unsigned kDeepestVariables = 8;             // variables within variables
constexpr std::size_t kMostLookups = 200'000;         // of these: a script can make them grow without end
constexpr std::size_t kMostPieces = 64;               // of a value
constexpr std::size_t kMostParts = 2000;              // of a word
constexpr std::size_t kLongestVariable = 16U << 10U;  // characters of a value
constexpr std::size_t kMostDoubts = 6;                // of a value

/// The name of a variable that people give the job's first node or its address.
bool is_named_head(std::string_view name) {
  const auto lower = text::lower(name);
  const bool first = lower.contains("head") || lower.contains("master") || lower.contains("first_node");
  return first &&
         (lower.contains("node") || lower.contains("ip") || lower.contains("addr") || lower.contains("host"));
}

bool is_pattern(std::string_view text) {
  if (text.contains("$")) return false;
  const auto open = text.find('{');
  const auto braces =
      open == std::string_view::npos ? std::string_view() : text.substr(open, text.find('}', open) - open);
  return text.find_first_of("*?") != std::string_view::npos || braces.contains(",") || braces.contains("..");
}

}  // namespace

const lint::Part* only_part(const lint::Word& word) {
  const lint::Part* only = nullptr;
  for (const auto& part : word.parts) {
    if (part.kind == lint::Part::Kind::text && part.text.empty()) continue;
    if (only != nullptr) return nullptr;
    only = &part;
  }
  return only;
}

bool is_glob(std::string_view text) {
  return !text.contains("$") && text.find_first_of("*?") != std::string_view::npos;
}

lint::Script script_of(std::string text) {
  return lint::read_shell(std::make_shared<const SourceFile>(SourceFile{"", std::move(text)}));
}

lint::Word quoted_word(std::string_view text) {
  std::string quoted = "x=\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size())
      quoted += text[i++];
    else if (text[i] == '"')
      quoted += '\\';
    quoted += text[i];
  }
  const auto script = script_of(quoted + "\"");
  for (const auto& command : script.commands) {
    if (!command.nested && !command.assignments.empty()) return command.assignments.front().value;
  }
  return {{{lint::Part::Kind::text, std::string(text)}}, {}, true};
}

lint::Word word_of(const lint::Heredoc& heredoc) {
  auto text = std::string_view(heredoc.text);
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (heredoc.literal) return {{{lint::Part::Kind::text, std::string(text)}}, {}, true};
  std::string kept;  // a quote means nothing in there, nor does a backslash in front of it
  for (std::size_t i = 0; i < text.size(); ++i)
    kept += text.substr(i, 2) == "\\\"" ? "\\\\" : text.substr(i, 1);
  return quoted_word(kept);
}

Value Value::just(std::string text) {
  return {{{Piece::Kind::text, std::move(text)}}, nullptr};
}
Value Value::shell(std::string written) {
  return {{{Piece::Kind::shell, std::move(written)}}, nullptr};
}
Value Value::head() {
  return {{{Piece::Kind::head, {}}}, nullptr};
}

void Value::doubt(Doubt one) {
  if (doubts.size() < kMostDoubts && std::ranges::find(doubts, one) == doubts.end())
    doubts.push_back(std::move(one));
}

bool Value::has(Piece::Kind kind) const {
  return std::ranges::find(pieces, kind, &Piece::kind) != pieces.end();
}

std::optional<std::string> Value::text() const {
  if (has(Piece::Kind::head) || has(Piece::Kind::shell)) return std::nullopt;
  return known();
}

std::string Value::known() const {
  std::string out;
  for (const auto& piece : pieces) {
    if (piece.kind == Piece::Kind::text) out += piece.text;
  }
  return out;
}

void Value::add(Piece piece) {
  const bool joins = !pieces.empty() && piece.kind == Piece::Kind::text && pieces.back().kind == piece.kind &&
                     pieces.back().pattern == piece.pattern;
  if (joins) {
    pieces.back().text += piece.text;
  } else {
    pieces.push_back(std::move(piece));
  }
}

std::string literal(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "${") out += '$';
    out += text[i];
  }
  return out;
}

void Values::keep(const std::string& name) {
  if (shells_ == 0) return;
  const auto known = known_.find(name);
  kept_.emplace_back(name, known == known_.end() ? std::nullopt : std::optional(known->second));
}

std::size_t Values::begin_shell() {
  ++shells_;
  return kept_.size();
}

void Values::end_shell(std::size_t begun) {
  for (; kept_.size() > begun; kept_.pop_back()) {
    auto& [name, known] = kept_.back();
    if (known)
      known_[name] = std::move(*known);
    else
      known_.erase(name);
  }
  --shells_;
}

/// `NAME+=…`: of an array more elements, of a text more text.
void Values::append(Known& known, const lint::Assignment& assignment) {
  if (assignment.array) {
    known.elements.insert(known.elements.end(), assignment.elements.begin(), assignment.elements.end());
    if (!known.array) known.value = Value::shell(fmt::format("${{{}}}", assignment.name));
    known.array = true;
    return;
  }
  const auto more = of(assignment.value);
  for (auto piece : more.pieces) known.value.add(std::move(piece));
  for (const auto& one : more.doubts) known.value.doubt(one);
  auto& parts = known.word.parts;
  parts.insert(parts.end(), assignment.value.parts.begin(), assignment.value.parts.end());
  if (known.value.pieces.size() > kMostPieces || known.value.known().size() > kLongestVariable ||
      parts.size() > kMostParts)
    known.value = Value::shell(fmt::format("${{{}}}", assignment.name));
}

void Values::doubt(const std::string& name, Doubt why) {
  keep(name);
  const auto before = known_.find(name);
  if (before != known_.end()) return before->second.value.doubt(std::move(why));
  Known known;
  known.word.parts.push_back({lint::Part::Kind::unknown, fmt::format("${{{}}}", name)});
  known.value = variable(name);
  known.value.doubt(std::move(why));
  known_[name] = std::move(known);
}

void Values::assign(const lint::Assignment& assignment, bool sure, std::uint32_t line, bool conditional) {
  const auto before = known_.find(assignment.name);
  const auto& name = assignment.name;
  const bool of_array = assignment.array && assignment.elements.empty() && !assignment.value.parts.empty();
  if (of_array && !assignment.append) {  // NAME[…]=…
    doubt(name, {line, fmt::format("an element of {} is set by itself: {}", name, kThatLine)});
    known_[name].array = true;
    return;
  }
  if (assignment.append && before != known_.end()) {
    keep(name);
    append(before->second, assignment);
    if (conditional)
      before->second.value.doubt(
          {line, fmt::format("{} grows here in a loop or under a condition, and has it once: {}", name,
                             kThatLine)});
    return;
  }
  if (!sure && before != known_.end()) {
    const auto other = of(assignment.value).text();
    const bool same = !assignment.array && other && other == before->second.value.text();
    if (!same)
      doubt(name,
            {line, fmt::format("{} gets another value here, and has the first one: {}", name, kThatLine)});
    return;
  }
  keep(name);
  Known known{assignment.value, assignment.elements, assignment.array, of(assignment.value)};
  known.value.word = nullptr;
  if (assignment.append) {  // to what the caller has
    known.value = variable(name);
    append(known, assignment);
    known.word.parts.insert(known.word.parts.begin(),
                            {lint::Part::Kind::unknown, fmt::format("${{{}:-}}", name)});
  }
  // X="$X more": what X was until here.
  std::vector<lint::Part> parts;
  for (auto& part : known.word.parts) {
    const bool itself = part.kind == lint::Part::Kind::variable && part.text == name;
    if (!itself)
      parts.push_back(std::move(part));
    else if (before != known_.end())
      parts.insert(parts.end(), before->second.word.parts.begin(), before->second.word.parts.end());
    if (parts.size() > kMostParts) break;
  }
  known.word.parts = std::move(parts);
  if (conditional)
    known.value.doubt({line, fmt::format("{} is set in a loop or under a condition: {}", name, kThatLine)});
  if (known.value.pieces.size() > kMostPieces || known.value.known().size() > kLongestVariable)
    known.value = Value::shell({});
  const bool unknown = known.value.has(Piece::Kind::shell);
  if (assignment.array && !known.elements.empty()) {
    known.value = of(known.elements.front());
    known.value.word = nullptr;
    const bool nodes = known.elements.size() == 1 && known.value.has(Piece::Kind::head);
    if (nodes) known.value = Value::head();
  } else if (unknown && is_named_head(assignment.name)) {
    known.value = Value::head();
  }
  // An argument of the script gets the name of the variable that takes it.
  const auto text = known.value.text().value_or("");
  constexpr std::string_view kArgument = "${vars.argument";
  if (text.starts_with(kArgument) && text.find('}') == text.size() - 1) {
    const auto old = text.substr(7, text.size() - 8);
    std::string fallback;
    const auto* part = only_part(assignment.value);
    if (part != nullptr && part->kind == lint::Part::Kind::unknown) {
      const auto at = part->text.find(":-");
      if (at != std::string::npos) fallback = part->text.substr(at + 2, part->text.size() - at - 3);
    }
    if (!arguments_.contains(old) && fallback.contains("$")) fallback.clear();
    arguments_[assignment.name] = {old.substr(8), fallback, line};
    known.value = Value::just(fmt::format("${{vars.{}}}", assignment.name));
  }
  known_[assignment.name] = std::move(known);
}

void Values::forget(const std::string& name) {
  keep(name);
  known_.erase(name);
}

Value Values::variable(const std::string& name) const {
  // Where the ranks meet is nlaunch's to say, whatever the script has.
  if (name == "MASTER_ADDR" || name == "MASTER_PORT") return Value::shell(fmt::format("${}", name));
  if (name == "VIRTUAL_ENV")
    return Value::just(fmt::format("${{env.VIRTUAL_ENV:-{}}}", venv_.empty() ? ".venv" : venv_));
  if (const auto known = known_.find(name); known != known_.end()) return known->second.value;
  if (const auto number = numbers_.find(name); number != numbers_.end())
    return Value::just(std::to_string(number->second));
  if (name == "SLURM_LOCALID") return Value::shell("$LOCAL_RANK");
  if (config::is_reserved_variable(name)) return Value::shell(fmt::format("${}", name));
  if (name.size() == 1 && given_ && name[0] >= '1' && name[0] <= '9') {
    const auto at = static_cast<std::size_t>(name[0] - '1');
    return at < given_->size() ? (*given_)[at] : Value::just("");
  }
  if (name.size() == 1 && name[0] >= '0' && name[0] <= '9')
    return name == "0" ? Value::shell("$0") : Value::just(fmt::format("${{vars.argument{}}}", name));
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kSame{{
      {"SLURM_SUBMIT_DIR", "."},
      {"PWD", "."},
      {"SLURM_JOB_ID", "${run.id}"},
      {"SLURM_JOBID", "${run.id}"},
      {"SLURM_JOB_NAME", "${run.name}"},
      {"SLURM_NODEID", "${self.node}"},
      {"SLURM_PROCID", "${self.index}"},
      {"HOSTNAME", "${self.host}"},
      {"SLURMD_NODENAME", "${self.host}"},
      {"SLURM_TMPDIR", "${node.scratch}"},
  }};
  const auto same = std::ranges::find(kSame, name, &std::pair<std::string_view, std::string_view>::first);
  if (same != kSame.end()) return Value::just(std::string(same->second));
  if (!is_name_character(name[0]) || name.starts_with("SLURM_"))
    return Value::shell(fmt::format("${}", name));
  const bool always = name == "HOME" || name == "USER" || name == "LOGNAME";
  return Value::just(fmt::format("${{env.{}{}}}", name, always ? "" : ":-"));
}

Value Values::of(const lint::Word& word, unsigned depth) const {
  Value value;
  for (const auto& part : word.parts) {
    if (part.kind == lint::Part::Kind::text) {
      const bool home =
          &part == &word.parts.front() && !word.quoted && (part.text == "~" || part.text.starts_with("~/"));
      if (home) value.add({Piece::Kind::text, "${env.HOME}"});
      const auto text = literal(std::string_view(part.text).substr(home ? 1 : 0));
      value.add({Piece::Kind::text, text, !word.quoted && is_pattern(text)});
      continue;
    }
    const auto inner =
        part.kind == lint::Part::Kind::variable ? variable(part.text) : expansion(part.text, depth);
    for (auto piece : inner.pieces) {
      const bool output = piece.kind == Piece::Kind::shell &&
                          (piece.text.starts_with("$(") || piece.text[0] == '`') &&
                          !piece.text.starts_with("$((");
      const bool glob = piece.kind == Piece::Kind::text && is_glob(piece.text);
      piece.pattern = (piece.pattern || glob || output) && !word.quoted;
      value.add(std::move(piece));
    }
    for (const auto& doubt : inner.doubts) value.doubt(doubt);
  }
  value.word = &word;
  return value;
}

bool Values::may_go_on(unsigned depth) const {
  return depth < kDeepestVariables && ++lookups_ < kMostLookups;
}

}  // namespace nlaunch::import
