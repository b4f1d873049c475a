#include "emit/import/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <memory>

#include "base/text.h"
#include "config/names.h"

namespace nlaunch::emit {
namespace {

constexpr unsigned kDeepest = 8;               // variables within variables
constexpr std::size_t kMostLookups = 200'000;  // of these: a script can make them grow without end
constexpr std::size_t kMostPieces = 64;        // of a value
constexpr std::size_t kMostWords = 2000;       // of a variable
constexpr std::size_t kLongest = 16U << 10U;   // characters of a value

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool has(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}

/// The name of a variable that people give the job's first node or its address.
bool is_named_head(std::string_view name) {
  const auto lower = text::lower(name);
  const bool first = has(lower, "head") || has(lower, "master") || has(lower, "first_node");
  return first && (has(lower, "node") || has(lower, "ip") || has(lower, "addr") || has(lower, "host"));
}

bool is_pattern(std::string_view text) {
  if (has(text, "$")) return false;
  const auto open = text.find('{');
  const auto braces =
      open == std::string_view::npos ? std::string_view() : text.substr(open, text.find('}', open) - open);
  return text.find_first_of("*?") != std::string_view::npos || has(braces, ",") || has(braces, "..");
}

/// The part that a word consists of, or nullptr; an empty text, of the quotes around it, does not count.
const lint::Part* only_part(const lint::Word& word) {
  const lint::Part* only = nullptr;
  for (const auto& part : word.parts) {
    if (part.kind == lint::Part::Kind::text && part.text.empty()) continue;
    if (only != nullptr) return nullptr;
    only = &part;
  }
  return only;
}

}  // namespace

lint::Script script_of(std::string text) {
  return lint::read_shell(std::make_shared<const SourceFile>(SourceFile{"", std::move(text)}));
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

void Values::assign(const lint::Assignment& assignment, bool sure, std::uint32_t line) {
  const auto before = known_.find(assignment.name);
  if (assignment.append || (!sure && before != known_.end())) {
    if (assignment.append && before != known_.end())
      before->second.elements.insert(before->second.elements.end(), assignment.elements.begin(),
                                     assignment.elements.end());
    return;
  }
  Known known{assignment.value, assignment.elements, assignment.array, of(assignment.value)};
  if (known.value.pieces.size() > kMostPieces || known.value.known().size() > kLongest)
    known.value = Value::shell({});
  const bool unknown = known.value.has(Piece::Kind::shell);
  if (assignment.array && std::ranges::any_of(known.elements, [this](const auto& one) {
        return of(one).has(Piece::Kind::head);
      })) {
    known.value = Value::head();
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
    if (!arguments_.contains(old) && has(fallback, "$")) fallback.clear();
    arguments_[assignment.name] = {old.substr(8), fallback, line};
    known.value = Value::just(fmt::format("${{vars.{}}}", assignment.name));
  }
  known_[assignment.name] = std::move(known);
}

void Values::forget(const std::string& name) {
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
      piece.pattern = piece.pattern && !word.quoted;
      value.add(std::move(piece));
    }
  }
  value.word = &word;
  return value;
}

bool Values::may_go_on(unsigned depth) const {
  return depth < kDeepest && ++lookups_ < kMostLookups;
}

const Values::Known* Values::array(const lint::Word& word) const {
  const auto* part = only_part(word);
  if (part == nullptr || part->kind != lint::Part::Kind::unknown) return nullptr;
  const auto& written = part->text;
  const bool all = written.starts_with("${") && (written.ends_with("[@]}") || written.ends_with("[*]}"));
  const auto known = all ? known_.find(written.substr(2, written.size() - 6)) : known_.end();
  return known == known_.end() ? nullptr : &known->second;
}

bool Values::is_arguments(const lint::Word& word) {
  const auto* part = only_part(word);
  if (part == nullptr || part->kind == lint::Part::Kind::text) return false;
  const auto& text = part->text;
  return text == "@" || text == "*" || text.starts_with("${@") || text.starts_with("${*");
}

void Values::shift(std::size_t count) {
  if (!given_) return;
  const auto most = static_cast<std::ptrdiff_t>(std::min(count, given_->size()));
  given_->erase(given_->begin(), given_->begin() + most);
}

/// Of `$@` all, of `${@:2}` the second and those behind it.
std::vector<Value> Values::arguments_in(const lint::Word& word) const {
  if (!given_) return {};
  const auto& written = only_part(word)->text;
  const auto colon = std::min(written.find(':'), written.size() - 1);
  std::size_t first = 1;
  std::from_chars(written.data() + colon + 1, written.data() + written.size(), first);
  const auto before = std::min(std::max<std::size_t>(first, 1) - 1, given_->size());
  return {given_->begin() + static_cast<std::ptrdiff_t>(before), given_->end()};
}

std::vector<Value> Values::split(const lint::Word& word, unsigned depth) const {
  if (!may_go_on(depth)) return {of(word)};
  if (is_arguments(word)) return arguments_in(word);
  std::vector<Value> out;
  if (const auto* elements = array(word)) {
    for (const auto& element : elements->elements) {
      for (auto& value : split(element, depth + 1)) out.push_back(std::move(value));
      if (out.size() > kMostWords) break;
    }
    return out;
  }
  const bool alone =
      word.parts.size() == 1 && word.parts[0].kind == lint::Part::Kind::variable && !word.quoted;
  const auto known = alone ? known_.find(word.parts[0].text) : known_.end();
  if (known == known_.end() || config::is_reserved_variable(word.parts[0].text)) return {of(word)};
  const auto script = script_of(inner(known->second.word, depth + 1));
  for (const auto& command : script.commands) {
    if (command.nested) continue;
    for (const auto& one : command.words) {
      if (out.size() > kMostWords) break;
      for (auto& value : split(one, depth + 1)) {
        value.word = nullptr;
        out.push_back(std::move(value));
      }
    }
  }
  return out.size() > 1 ? out : std::vector<Value>{of(word)};
}

std::string Values::inner(const lint::Word& word, unsigned depth) const {
  std::string out;
  for (const auto& part : word.parts) {
    if (out.size() > kLongest) break;
    if (part.kind == lint::Part::Kind::text) {
      out += part.text;
      continue;
    }
    lint::Word alone{{part}, {}, true};
    const auto* elements = array(alone);
    if (elements != nullptr && may_go_on(depth)) {
      for (const auto& element : elements->elements) {
        if (&element != elements->elements.data()) out += ' ';
        out += inner(element, depth + 1);
      }
      continue;
    }
    if (part.kind == lint::Part::Kind::unknown) {
      out += part.text;
      continue;
    }
    const auto known = known_.find(part.text);
    const auto more = known == known_.end() || !may_go_on(depth) ? "" : inner(known->second.word, depth + 1);
    const bool several = more.find_first_of(" \n") != std::string::npos && !has(more, "$(");
    out += several ? more : fmt::format("${{{}}}", part.text);
  }
  return out;
}

}  // namespace nlaunch::emit
