#include "diagnose/scanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

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

/// "node1:29500", also for "node1, 29500".
std::string address_of(std::string_view peer) {
  const auto comma = peer.find(", ");
  if (comma == std::string_view::npos) return std::string(peer);
  return fmt::format("{}:{}", peer.substr(0, comma), peer.substr(comma + 2));
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
    return Catalogue{Prefilter(all.literals), std::move(all.signatures), all.literals};
  }();
  return made;
}

Scanner::Scanner(Listener& listener) : listener_(listener), tried_until_(signatures().size()) {
  buffer_.reserve(kBuffer);
}

void Scanner::begin(std::uint32_t file) {
  buffer_.clear();
  offset_ = 0;
  position_ = {file, 1};
  wanted_ = 0;
  std::ranges::fill(tried_until_, 0U);
}

void Scanner::feed(std::string_view bytes) {
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const auto part = bytes.substr(0, kBuffer - buffer_.size());
    buffer_ += part;
    bytes.remove_prefix(part.size());
    if (buffer_.size() < kBuffer) return;
    const auto end = buffer_.rfind('\n');
    if (end != std::string::npos) {
      scan(end + 1, end + 1);
    } else {  // its end is examined once more, together with what follows
      longest_ = std::max<std::uint64_t>(longest_, buffer_.size());
      scan(buffer_.size(), kBuffer - kAfter);
    }
  }
}

void Scanner::finish() {
  if (!buffer_.empty()) {
    const bool ends = buffer_.back() == '\n';
    scan(buffer_.size(), buffer_.size());
    if (!ends) ++lines_;
  }
}

void Scanner::scan(std::size_t size, std::size_t done) {
  const auto region = std::string_view(buffer_).substr(0, size);
  counted_ = 0;
  shown_ = 0;
  shown_line_ = position_.line;
  catalogue().prefilter.scan(region, [&](const Prefilter::Hit& found) { hit(region, found); });
  show_lines(region, region.size());
  count_to(region, region.size());
  offset_ += done;
  buffer_.erase(0, done);
}

void Scanner::count_to(std::string_view region, std::size_t at) {
  if (at <= counted_) return;
  const auto ended =
      static_cast<std::uint64_t>(std::ranges::count(region.substr(counted_, at - counted_), '\n'));
  position_.line += ended;
  lines_ += ended;
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
  for (const auto index : catalogue().signatures_of[found.literal]) {
    if (offset_ + found.at >= tried_until_[index])
      try_signature(index, region.substr(begin, end - begin), offset_ + begin);
  }
  const bool was_closed = wanted_ == 0;
  wanted_ = std::max(wanted_, listener_.lines_wanted());
  if (was_closed && wanted_ > 0) {
    shown_ = std::min(region.size(), region.find('\n', begin));
    shown_ += shown_ < region.size() ? 1 : 0;
    shown_line_ = position_.line + 1;
  }
}

void Scanner::try_signature(std::size_t index, std::string_view line, std::uint64_t offset) {
  const auto& signature = signatures()[index];
  const auto& regex = signature.regex();
  const re2::StringPiece all(line.data(), line.size());
  std::vector<re2::StringPiece> groups(1 + static_cast<std::size_t>(regex.NumberOfCapturingGroups()));
  auto from = tried_until_[index] > offset ? static_cast<std::size_t>(tried_until_[index] - offset) : 0;
  tried_until_[index] = offset + line.size();
  while (from < line.size() && regex.Match(all, from, line.size(), re2::RE2::UNANCHORED, groups.data(),
                                           static_cast<int>(groups.size()))) {
    tell(signature, line, offset, groups);
    const auto end = static_cast<std::size_t>(groups[0].data() + groups[0].size() - line.data());
    from = std::max(end, from + 1);
  }
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
  listener_.on_match(match);
}

void Scanner::show_lines(std::string_view region, std::size_t until) {
  while (wanted_ > 0 && shown_ < until) {
    const auto newline = region.find('\n', shown_);
    const auto end = std::min(newline, region.size());
    listener_.on_line({{position_.file, shown_line_}, region.substr(shown_, std::min(end - shown_, kAfter))});
    --wanted_;
    ++shown_line_;
    shown_ = std::min(end + 1, region.size());
  }
}

}  // namespace nlaunch::diagnose
