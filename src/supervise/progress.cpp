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

ProgressPattern::ProgressPattern(const std::string& pattern) {
  if (pattern.empty()) return;
  regex_ = std::make_unique<RE2>(pattern, RE2::Quiet);
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

bool ProgressReader::needs_every_line() const {
  return (lines_ && !pattern_->takes_any_line()) || saved_ != nullptr;
}

/// Of text that mentions nothing, only the ends are cut into lines: the lines of which they are a part may.
void ProgressReader::feed(std::string_view bytes) {
  constexpr std::string_view kEnds = "\r\n";
  const auto last = bytes.find_last_of(kEnds);
  if (needs_every_line() || last == std::string_view::npos) return cut(bytes);
  const auto begin = bytes.find_first_of(kEnds) + 1;
  const auto whole = bytes.substr(begin, last + 1 - begin);
  const auto mentioned = [&](const Remark& remark) { return contains(whole, remark.phrase); };
  if (may_have_link(whole) || std::ranges::any_of(remarks(), mentioned)) return cut(bytes);
  cut(bytes.substr(0, begin));
  cut(bytes.substr(last + 1));
}

void ProgressReader::cut(std::string_view bytes) {
  const auto look = [this](std::string_view line, bool) { look_at(line); };
  // A progress bar overwrites its line repeatedly and ends it once.
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
  if (std::string path;
      saved_ != nullptr && RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *saved_, &path))
    checkpoints_.push_back(std::move(path));
  for (std::size_t i = 0; i < remarks().size(); ++i) {
    if (contains(line, remarks()[i].phrase)) found_.push_back(i);
  }
  if (auto link = link_in(line)) add_link(links_, std::move(*link));
}

}  // namespace nlaunch::supervise
