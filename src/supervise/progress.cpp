#include "supervise/progress.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace nlaunch::supervise {
namespace {

bool contains(std::string_view text, std::string_view what) {
  return ::memmem(text.data(), text.size(), what.data(), what.size()) != nullptr;
}

template <class Number>
std::optional<Number> number(const std::string& text) {
  Number value{};
  const auto end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || !std::isfinite(static_cast<double>(value))) return std::nullopt;
  return value;
}

bool is_quantifier(char c) {
  return c == '*' || c == '?' || c == '{';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// The last character of what stands in brackets, from its opening one.
std::size_t end_of_class(std::string_view pattern, std::size_t i) {
  i += pattern.substr(i).starts_with("[^") ? 2 : 1;
  if (i < pattern.size() && pattern[i] == ']') ++i;
  while (i < pattern.size() && pattern[i] != ']') {
    if (pattern.substr(i).starts_with("[:")) {  // [[:digit:]_]
      const auto name = pattern.find(":]", i + 2);
      if (name != std::string_view::npos) i = name + 1;
    } else if (pattern[i] == '\\') {
      ++i;
    }
    ++i;
  }
  return i;
}

/// The last character of {3,5}, from its opening brace; that one where it is no such thing but a brace.
std::size_t end_of_repeat(std::string_view pattern, std::size_t i) {
  auto end = i + 1;
  while (end < pattern.size() && (is_digit(pattern[end]) || pattern[end] == ',')) ++end;
  return end < pattern.size() && pattern[end] == '}' ? end : i;
}

/// The last character of an escape, from its letter or digit: \x41, \x{41}, \pN, \p{Greek}, \101, \d.
std::size_t end_of_escape(std::string_view pattern, std::size_t i) {
  const char kind = pattern[i];
  const bool property = kind == 'p' || kind == 'P';
  if (is_digit(kind)) {
    while (i + 1 < pattern.size() && is_digit(pattern[i + 1])) ++i;
    return i;
  }
  if (kind != 'x' && !property) return i;
  if (pattern.substr(i + 1).starts_with("{")) return std::min(pattern.find('}', i), pattern.size());
  return i + (property ? 1 : 2);
}

bool is_letter_or_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

const std::vector<Remark>& remarks() {
  // torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, 2.0 to 2.9.
  static const std::vector<Remark> all{
      {"currently unknown. This can potentially cause a hang",
       "PyTorch guesses which GPU a rank uses: pass device_id=torch.device('cuda', local_rank) to "
       "init_process_group (a wrong guess hangs the first barrier)"},
      {"Guessing device ID based on global rank",
       "PyTorch guesses which GPU a rank uses: pass device_id=torch.device('cuda', local_rank) to "
       "init_process_group (a wrong guess hangs the first barrier)"},
  };
  return all;
}

std::string literal_of(std::string_view pattern) {
  constexpr std::string_view kSpecial = ".^$|()[]{}*+?";
  // Choices, flags such as (?i), and text that is quoted as a whole: nothing in them is sure.
  for (const auto* unsure : {"|", "\\Q"}) {
    if (pattern.find(unsure) != std::string_view::npos) return {};
  }
  for (auto at = pattern.find("(?"); at != std::string_view::npos; at = pattern.find("(?", at + 2)) {
    const auto kind = pattern.substr(at + 2);
    if (!kind.starts_with(':') && !kind.starts_with("P<")) return {};
  }
  std::string best;
  std::string run;
  int depth = 0;
  const auto end_run = [&] {
    if (run.size() > best.size()) best = run;
    run.clear();
  };
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    char c = pattern[i];
    bool plain = kSpecial.find(c) == std::string_view::npos;
    if (c == '\\' && i + 1 < pattern.size()) {
      c = pattern[++i];
      plain = kSpecial.find(c) != std::string_view::npos || c == '\\';
      if (is_letter_or_digit(c)) i = end_of_escape(pattern, i);
    } else if (c == '[') {
      i = end_of_class(pattern, i);
    } else if (c == '{') {
      i = end_of_repeat(pattern, i);
    } else if (c == '(') {
      ++depth;
    } else if (c == ')') {
      --depth;
    }
    // A quantifier is of a whole character, which may be of more bytes than one.
    const bool ascii = static_cast<unsigned char>(c) < 0x80U;
    const bool optional = i + 1 < pattern.size() && is_quantifier(pattern[i + 1]);
    if (!plain || !ascii || depth > 0 || optional) {
      end_run();
    } else {
      run += c;
    }
  }
  end_run();
  return best;
}

ProgressPattern::ProgressPattern(const std::string& pattern) {
  if (pattern.empty()) return;
  regex_ = std::make_unique<RE2>(pattern, RE2::Quiet);
  literal_ = literal_of(pattern);
  const auto& names = regex_->NamedCapturingGroups();
  const auto group = [&](const char* name) {
    const auto found = names.find(name);
    return found == names.end() ? 0 : found->second;
  };
  step_ = group("step");
  seconds_ = group("seconds");
  total_ = group("total");
  if (step_ > 0) return;
  const int groups = regex_->NumberOfCapturingGroups();
  step_ = groups > 0 ? 1 : 0;
  if (names.empty() && groups > 1) seconds_ = 2;
}

std::optional<Reported> ProgressPattern::match(std::string_view line) const {
  if (!regex_) return Reported{};
  if (!contains(line, literal_)) return std::nullopt;
  const re2::StringPiece text(line.data(), line.size());
  std::vector<re2::StringPiece> groups(static_cast<std::size_t>(std::max({step_, seconds_, total_}) + 1));
  if (!regex_->Match(text, 0, text.size(), RE2::UNANCHORED, groups.data(), static_cast<int>(groups.size())))
    return std::nullopt;
  const auto of = [&](int group) {
    const auto& found = groups[static_cast<std::size_t>(group)];
    return group == 0 ? std::string() : std::string(found.data(), found.size());
  };
  return Reported{number<std::uint64_t>(of(step_)), number<double>(of(seconds_)),
                  number<std::uint64_t>(of(total_))};
}

void ProgressReader::feed(std::string_view bytes) {
  const auto look = [this](std::string_view line, bool) { look_at(line); };
  // A progress bar writes its line over and over, and ends it once.
  for (auto over = bytes.find('\r'); over != std::string_view::npos; over = bytes.find('\r')) {
    cutter_.feed(bytes.substr(0, over), look);
    cutter_.feed("\n", look);
    bytes.remove_prefix(over + 1);
  }
  cutter_.feed(bytes, look);
}

void ProgressReader::finish() {
  cutter_.finish([this](std::string_view line, bool) { look_at(line); });
}

void ProgressReader::look_at(std::string_view line) {
  if (lines_) {
    if (auto reported = pattern_->match(line)) reported_ = reported;
  }
  for (std::size_t i = 0; i < remarks().size(); ++i) {
    if (contains(line, remarks()[i].phrase)) found_.push_back(i);
  }
}

}  // namespace nlaunch::supervise
