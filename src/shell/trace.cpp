#include "shell/trace.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "shell/traps.h"

namespace nlaunch::shell {
namespace {

constexpr char kMark = '\x01';

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Unquotes 'a b' and $'a\tb', as far as needed.
std::string unquoted(std::string value) {
  if (value.starts_with("$'")) value.erase(0, 1);
  if (value.size() > 1 && value.front() == '\'' && value.back() == '\'')
    value = value.substr(1, value.size() - 2);
  constexpr std::string_view kQuote = "'\\''";
  for (auto at = value.find(kQuote); at != std::string::npos; at = value.find(kQuote, at + 1))
    value.replace(at, kQuote.size(), "'");
  return value;
}

/// $'a\tb': from after the opening quote to after the closing one.
std::string escaped_text(std::string_view text, std::size_t& at) {
  constexpr std::string_view kLetters = "abefnrtv";
  constexpr std::string_view kMeanings = "\a\b\x1b\f\n\r\t\v";
  std::string out;
  for (; at < text.size() && text[at] != '\''; ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      out += text[at];
      continue;
    }
    const char next = text[++at];
    const auto letter = kLetters.find(next == 'E' ? 'e' : next);
    if (letter != std::string_view::npos) {
      out += kMeanings[letter];
    } else if (next >= '0' && next <= '7') {  // non-text bytes are traced as \NNN
      int code = 0;
      std::size_t digits = 0;
      for (; digits < 3 && at + digits < text.size() && text[at + digits] >= '0' && text[at + digits] <= '7';
           ++digits)
        code = code * 8 + (text[at + digits] - '0');
      out += static_cast<char>(code);
      at += digits - 1;
    } else {
      out += next;
    }
  }
  ++at;
  return out;
}

}  // namespace

std::vector<std::string> words_of(std::string_view traced) {
  std::vector<std::string> words;
  bool within = false;  // a word has started
  for (std::size_t at = 0; at < traced.size();) {
    const char c = traced[at];
    if (c == ' ' || c == '\t' || c == '\n') {
      within = false;
      ++at;
      continue;
    }
    if (!within) words.emplace_back();
    within = true;
    auto& word = words.back();
    if (c == '\'') {
      const auto end = std::min(traced.find('\'', at + 1), traced.size());
      word += traced.substr(at + 1, end - at - 1);
      at = end + 1;
    } else if (traced.substr(at).starts_with("$'")) {
      at += 2;
      word += escaped_text(traced, at);
    } else if (c == '\\' && at + 1 < traced.size()) {
      word += traced[at + 1];
      at += 2;
    } else {
      word += c;
      ++at;
    }
  }
  return words;
}

const TracedCommand* last_of_script(const std::vector<TracedCommand>& commands, pid_t shell) {
  const TracedCommand* last = nullptr;
  std::optional<std::string> trap;  // how its first command starts
  for (const auto& one : commands) {
    if (one.shell != shell) continue;
    // Everything before it belongs to the script; there is no second EXIT.
    if (trap && one.line == 1 && one.text.starts_with(*trap)) return last;
    last = &one;
    if (!one.text.starts_with("trap ")) continue;
    const auto change = trap_of(words_of(one.text));
    if (!change || !change->names("EXIT")) continue;
    trap = change->handler
               ? std::optional(change->handler->substr(0, change->handler->find_first_of("$\"'`;&|\n")))
               : std::nullopt;
    if (trap && text::trim(*trap).empty()) trap.reset();
    if (trap) *trap = text::trim(*trap);
  }
  return last;
}

void Trace::read(std::string_view bytes, const std::string& own) {
  pending_ += bytes;
  std::size_t begin = 0;
  for (auto end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n', begin)) {
    take(std::string_view(pending_).substr(begin, end - begin), own);
    begin = end + 1;
  }
  pending_.erase(0, begin);
}

const Place* Trace::place_of(pid_t pid) const {
  const auto found = places_.find(pid);
  return found == places_.end() ? nullptr : &found->second;
}

/// + MARK pid MARK script MARK line MARK command; a shell within a shell repeats the +.
void Trace::take(std::string_view line, const std::string& own) {
  const auto first = line.find(kMark);
  const bool begins = first != std::string_view::npos && first > 0 && line.find_first_not_of('+') == first;
  if (!begins) {  // of a value of several lines
    const auto place = places_.find(last_);
    if (place == places_.end()) return;
    constexpr std::size_t kLongest = 64U << 10U;
    if (place->second.command.size() > kLongest) return;
    place->second.command += '\n';
    place->second.command += line;
    if (!commands_.empty() && commands_.back().shell == last_) commands_.back().text = place->second.command;
    if (!last_assigned_) return;
    assignments_.pop_back();
    return note_assignment(place->second);
  }
  const auto parts = text::split(line.substr(first + 1), kMark);
  constexpr std::size_t kParts = 4;
  const auto pid = parts.size() < kParts ? std::nullopt : text::whole_number<pid_t>(parts[0]);
  if (!pid) return;
  Place place;
  place.script = parts[1];
  place.line = text::whole_number<std::uint32_t>(parts[2]).value_or(0);
  place.command = line.substr(first + 1 + parts[0].size() + parts[1].size() + parts[2].size() + 3);
  last_ = 0;
  last_assigned_ = false;
  if (place.script.starts_with(own) || place.command == kGoesOn) return;
  constexpr std::size_t kMost = 200'000;
  if (commands_.size() < kMost) commands_.push_back({*pid, place.script, place.line, 0, place.command});
  const auto known = places_.find(*pid);
  if (known == places_.end() && place.script.empty()) texts_.insert(*pid);
  // A script that became `bash -c TEXT` stays where it was; a text that sourced a file goes on.
  if (place.script.empty() && known != places_.end() && !known->second.script.empty() &&
      !texts_.contains(*pid))
    return;
  if (place.command == "set +x") place.line = 0;  // no trace from here on
  last_ = *pid;
  note_assignment(place);
  places_[*pid] = std::move(place);
}

/// `NAME=value`, `export NAME=value`.
void Trace::note_assignment(const Place& place) {
  std::string_view text = place.command;
  constexpr std::array<std::string_view, 5> kBefore{"export ", "declare -x ", "local ", "readonly ",
                                                    "declare "};
  for (const auto word : kBefore) {
    if (text.starts_with(word)) text.remove_prefix(word.size());
  }
  const bool whole = text.starts_with('\'');  // export 'NAME=a b'
  if (whole) text.remove_prefix(1);
  const auto end = static_cast<std::size_t>(std::ranges::find_if_not(text, is_of_name) - text.begin());
  last_assigned_ = end > 0 && end < text.size() && (text[0] < '0' || text[0] > '9') &&
                   (text[end] == '=' || text.substr(end).starts_with("+="));
  if (!last_assigned_) return;
  const auto equals = text.find('=', end);
  auto value = std::string(text.substr(equals + 1));
  if (whole) value.insert(0, 1, '\'');
  assignments_.push_back(
      {std::string(text.substr(0, end)), unquoted(std::move(value)), place.script, place.line});
}

bool compares_tasks(const std::string& traced, const Task& task, std::size_t size) {
  static const RE2 kTest(R"(^('\['|\[\[|test|case|\(\() )");
  if (!RE2::PartialMatch(traced, kTest)) return false;
  static const RE2 kName(R"(PROCID|NODEID|LOCALID|RANK)");
  // bash traces the names of these.
  if (traced.starts_with("((") || traced.starts_with("case ")) return RE2::PartialMatch(traced, kName);
  bool own = false;
  bool other = false;
  static const RE2 kNumber(R"((\d+))");
  std::uint32_t number = 0;
  for (re2::StringPiece rest(traced); RE2::FindAndConsume(&rest, kNumber, &number);) {
    const bool is_own = number == task.rank || number == task.node || number == task.local_rank;
    if (is_own && !own)
      own = true;
    else
      other = other || (number > 1 && number < size);
  }
  return own && other;
}

}  // namespace nlaunch::shell
