#include "supervise/progress.h"

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

/// Steps over what stands in brackets, from its opening one.
std::size_t after_class(std::string_view pattern, std::size_t i) {
  i += pattern.substr(i).starts_with("[^") ? 2 : 1;
  if (i < pattern.size() && pattern[i] == ']') ++i;
  while (i < pattern.size() && pattern[i] != ']') i += pattern[i] == '\\' ? 2 : 1;
  return i;
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
  if (pattern.find('|') != std::string_view::npos || pattern.find("(?") != std::string_view::npos) return {};
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
    } else if (c == '[') {
      i = after_class(pattern, i);
    } else if (c == '(') {
      ++depth;
    } else if (c == ')') {
      --depth;
    }
    const bool optional = i + 1 < pattern.size() && is_quantifier(pattern[i + 1]);
    if (!plain || depth > 0 || optional) {
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
}

std::optional<Reported> ProgressPattern::match(std::string_view line) const {
  if (!regex_) return Reported{};
  if (!contains(line, literal_)) return std::nullopt;
  std::string step;
  std::string seconds;
  const re2::StringPiece text(line.data(), line.size());
  const int groups = regex_->NumberOfCapturingGroups();
  const bool fits = groups == 0   ? RE2::PartialMatch(text, *regex_)
                    : groups == 1 ? RE2::PartialMatch(text, *regex_, &step)
                                  : RE2::PartialMatch(text, *regex_, &step, &seconds);
  if (!fits) return std::nullopt;
  return Reported{number<std::uint64_t>(step), number<double>(seconds)};
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

void ProgressReader::look_at(std::string_view line) {
  if (lines_) {
    if (auto reported = pattern_->match(line)) reported_ = reported;
  }
  for (std::size_t i = 0; i < remarks().size(); ++i) {
    if (contains(line, remarks()[i].phrase)) found_.push_back(i);
  }
}

}  // namespace nlaunch::supervise
