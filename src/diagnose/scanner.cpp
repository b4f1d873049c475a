#include "diagnose/scanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>

#include "base/text.h"
#include "diagnose/analysis.h"
#include "diagnose/literals.h"
#include "diagnose/times.h"

namespace nlaunch::diagnose {
namespace {

constexpr std::size_t kBuffer = 256U << 10U;
// A line is examined this far before and after a literal; a line longer than the buffer is examined in
// pieces.
constexpr std::size_t kBefore = 2U << 10U;
constexpr std::size_t kAfter = 6U << 10U;
// A progress bar rewrites its line with \r: what follows is a separate line with the same number.
constexpr std::string_view kLineEnds = "\r\n";

struct LiteralsOfAll {
  std::vector<std::string> literals;
  std::vector<std::vector<std::uint32_t>> signatures;
};

LiteralsOfAll literals_of_all() {
  std::map<std::string, std::vector<std::uint32_t>> by_literal;
  const auto all = signatures();
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    const auto literals = required_literals(all[i].pattern);
    if (literals.empty()) throw std::logic_error(fmt::format("signature {} requires no literal", all[i].id));
    for (const auto& literal : literals) {
      if (literal.size() < Prefilter::kShortest)
        throw std::logic_error(
            fmt::format("signature {}: '{}' is too short to search for: {} characters, not {}", all[i].id,
                        literal, literal.size(), Prefilter::kShortest));
      by_literal[literal].push_back(i);
    }
  }
  LiteralsOfAll out;
  for (auto& [literal, of] : by_literal) {
    out.literals.push_back(literal);
    out.signatures.push_back(std::move(of));
  }
  return out;
}

/// For each signature, whether an analysis wants the lines after it.
std::vector<bool> read_on_after() {
  std::vector<bool> wanted;
  for (const auto& signature : signatures()) {
    wanted.push_back(std::ranges::any_of(analyses(), [&](const AnalysisEntry* analysis) {
      return std::ranges::find(analysis->reads_on_after, signature.id) != analysis->reads_on_after.end();
    }));
  }
  return wanted;
}

/// "node1:29500", also for "node1, 29500".
std::string address_of(std::string_view peer) {
  const auto comma = peer.find(", ");
  if (comma == std::string_view::npos) return std::string(peer);
  return fmt::format("{}:{}", peer.substr(0, comma), peer.substr(comma + 2));
}

std::uint64_t newlines_in(std::string_view text) {
  constexpr std::size_t kBlock = 64;  // a loop of so many bytes is compiled to vector instructions
  std::uint64_t count = 0;
  for (; text.size() >= kBlock; text.remove_prefix(kBlock)) {
    unsigned char of_block = 0;
    for (std::size_t i = 0; i < kBlock; ++i) of_block += static_cast<unsigned char>(text[i] == '\n');
    count += of_block;
  }
  return count + static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
}

/// The line that ends where another one starts.
std::string_view line_before(std::string_view region, std::size_t begin) {
  const auto last = begin == 0 ? std::string_view::npos : region.substr(0, begin).find_last_not_of(kLineEnds);
  if (last == std::string_view::npos) return {};
  const auto end = last + 1;
  const auto from = end < kBefore ? 0 : end - kBefore;
  const auto newline = region.substr(from, end - from).find_last_of(kLineEnds);
  return newline == std::string_view::npos ? region.substr(from, end - from)
                                           : region.substr(from + newline + 1, end - from - newline - 1);
}

}  // namespace

std::string_view Match::operator[](std::string_view group) const {
  const auto found = std::ranges::find(groups, group, &std::pair<std::string_view, std::string_view>::first);
  return found == groups.end() ? std::string_view() : found->second;
}

const Catalogue& catalogue() {
  static const Catalogue made = [] {
    auto all = literals_of_all();
    return Catalogue{Prefilter(all.literals), std::move(all.signatures), read_on_after(), all.literals};
  }();
  return made;
}

Scanner::Scanner() : buffer_(kBuffer), tried_until_(signatures().size()) {}

void Scanner::begin(std::uint32_t file, Listener& listener) {
  listener_ = &listener;
  used_ = 0;
  offset_ = 0;
  position_ = {file, 1};
  last_.clear();
  wanted_ = 0;
  std::ranges::fill(tried_until_, 0U);
}

std::span<char> Scanner::room() {
  return std::span(buffer_).subspan(used_);
}

void Scanner::filled(std::size_t size) {
  used_ += size;
  if (used_ < kBuffer) return;
  const auto end = std::string_view(buffer_.data(), used_).rfind('\n');
  if (end != std::string_view::npos) return scan(end + 1, end + 1);
  scan(used_, kBuffer - kAfter);  // its end is examined once more, together with what follows
}

StreamEnd Scanner::finish() {
  const bool open = used_ > 0 && buffer_[used_ - 1] != '\n';
  if (used_ > 0) scan(used_, used_);
  const auto last = text::trim(last_);
  return {.bytes = offset_,
          .lines = position_.line - (open ? 0 : 1),
          .last = std::string(text::trim(last.substr(last.rfind('\n') + 1)))};
}

void Scanner::keep_last(std::string_view part) {
  constexpr std::size_t kMost = 1024;
  const auto end = part.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return;
  const auto said = part.substr(0, end + 1);
  last_.append(said.substr(said.size() - std::min(said.size(), kMost)));
  last_ += part.find('\n', end) == std::string_view::npos ? part.substr(end + 1) : "\n";
  if (last_.size() > kMost) last_.erase(0, last_.size() - kMost);
}

void Scanner::scan(std::size_t size, std::size_t done) {
  const std::string_view region(buffer_.data(), size);
  counted_ = 0;
  shown_ = 0;
  shown_line_ = position_.line;
  catalogue().prefilter.search(region, hits_);
  for (const auto& found : hits_) hit(region, found);
  show_lines(region, region.size());
  count_to(region, region.size());
  keep_last(region.substr(0, done));
  offset_ += done;
  used_ -= done;
  std::memmove(buffer_.data(), buffer_.data() + done, used_);
}

void Scanner::count_to(std::string_view region, std::size_t at) {
  if (at <= counted_) return;
  position_.line += newlines_in(region.substr(counted_, at - counted_));
  counted_ = at;
}

void Scanner::hit(std::string_view region, const Prefilter::Hit& found) {
  const auto near = found.at < kBefore ? 0 : found.at - kBefore;
  const auto newline = region.substr(near, found.at - near).find_last_of(kLineEnds);
  const auto begin = newline == std::string_view::npos ? near : near + newline + 1;
  const auto after = region.substr(found.at, kAfter);
  const auto end = found.at + std::min(after.find_first_of(kLineEnds), after.size());
  show_lines(region, begin);
  count_to(region, begin);
  previous_ = line_before(region, begin);
  bool reads_on = false;
  for (const auto index : catalogue().signatures_of[found.literal]) {
    if (offset_ + found.at < tried_until_[index]) continue;
    const bool matched = try_signature(index, region.substr(begin, end - begin), offset_ + begin);
    reads_on = reads_on || (matched && catalogue().reads_on[index]);
  }
  if (reads_on) read_on(region, begin);
}

/// Shows the lines that follow the one that begins here.
void Scanner::read_on(std::string_view region, std::size_t begin) {
  if (std::exchange(wanted_, kLinesAfter) == 0) {
    shown_ = std::min(region.size(), region.find('\n', begin));
    shown_ += shown_ < region.size() ? 1 : 0;
    shown_line_ = position_.line + 1;
  }
}

bool Scanner::try_signature(std::size_t index, std::string_view line, std::uint64_t offset) {
  const auto& signature = signatures()[index];
  const auto& regex = signature.regex();
  const re2::StringPiece all(line.data(), line.size());
  std::vector<re2::StringPiece> groups(1 + static_cast<std::size_t>(regex.NumberOfCapturingGroups()));
  auto from = tried_until_[index] > offset ? static_cast<std::size_t>(tried_until_[index] - offset) : 0;
  tried_until_[index] = offset + line.size();
  bool matched = false;
  while (from < line.size() && regex.Match(all, from, line.size(), re2::RE2::UNANCHORED, groups.data(),
                                           static_cast<int>(groups.size()))) {
    tell(signature, line, offset, groups);
    const auto end = static_cast<std::size_t>(groups[0].data() + groups[0].size() - line.data());
    from = std::max(end, from + 1);
    matched = true;
  }
  return matched;
}

void Scanner::tell(const Signature& signature, std::string_view line, std::uint64_t offset,
                   const std::vector<re2::StringPiece>& groups) {
  Match match{.signature = &signature,
              .position = position_,
              .line = line,
              .before = {},
              .offset = offset,
              .previous = previous_,
              .groups = {},
              .origin = {},
              .time = time_of(line)};
  match.before = line.substr(0, static_cast<std::size_t>(groups[0].data() - line.data()));
  match.level = level_of(match.before);
  for (const auto& [name, number] : signature.regex().NamedCapturingGroups()) {
    const auto& group = groups[static_cast<std::size_t>(number)];
    if (group.data() == nullptr || group.empty()) continue;
    const std::string_view value(group.data(), group.size());
    // RE2 accepts a name once: "host2" is another place for a host.
    const auto part = std::string_view(name).substr(0, name.find_last_not_of("0123456789") + 1);
    match.groups.emplace_back(part, value);
    match.origin.set(part, value);
    if (part == "peer") match.origin.peer = address_of(value);
  }
  match.origin.fill(origin_of(match.before));
  listener_->on_match(match);
}

void Scanner::show_lines(std::string_view region, std::size_t until) {
  while (wanted_ > 0 && shown_ < until) {
    const auto newline = region.find('\n', shown_);
    const auto end = std::min(newline, region.size());
    listener_->on_line(
        {{position_.file, shown_line_}, region.substr(shown_, std::min(end - shown_, kAfter))});
    --wanted_;
    ++shown_line_;
    shown_ = std::min(end + 1, region.size());
  }
}

}  // namespace nlaunch::diagnose
