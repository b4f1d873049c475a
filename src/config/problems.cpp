#include "config/problems.h"

#include <algorithm>

#include "base/text.h"

namespace nlaunch::config {
namespace {

/// A message that quotes a value of a megabyte is cut, because the beginning is enough.
std::string shorten(std::string message) {
  constexpr std::size_t kLongest = 400;
  if (message.size() <= kLongest) return message;
  const auto characters = text::characters(std::string_view(message).substr(0, kLongest));
  const auto last = characters.back();
  message.resize(static_cast<std::size_t>(last.data() - message.data()));
  return message + "…";
}

}  // namespace

Diagnostic& Problems::error(std::string id, SourceSpan span, std::string message) {
  message = shorten(std::move(message));
  Diagnostic made{Severity::error, std::move(id), std::move(message), std::move(span), {}, {}};
  if (seen_++ >= kMost) return surplus_ = std::move(made);
  return kept_.emplace_back(std::move(made));
}

void Problems::append(const Diagnostics& other) {
  for (const auto& item : other.items()) {
    const auto same = [&](const Diagnostic& kept) {
      return kept.message == item.message && kept.span.file == item.span.file &&
             kept.span.line == item.span.line && kept.span.column == item.span.column;
    };
    if (std::ranges::none_of(kept_, same)) error(item.id, item.span, item.message) = item;
  }
}

Diagnostics Problems::take() const {
  auto sorted = kept_;
  const auto place = [](const Diagnostic& d) { return std::pair(d.span.line, d.span.column); };
  const auto earlier = [&](const Diagnostic& a, const Diagnostic& b) {
    return a.span.file == b.span.file && place(a) < place(b);
  };
  // Files stay in the order in which they were read, so sort only within each.
  for (auto start = sorted.begin(); start != sorted.end();) {
    const auto same = [&](const Diagnostic& d) { return d.span.file == start->span.file; };
    const auto end = std::stable_partition(start, sorted.end(), same);
    std::stable_sort(start, end, earlier);
    start = end;
  }
  Diagnostics all;
  for (auto& item : sorted) all.add(std::move(item));
  if (seen_ > kMost) all.error("config.more", {}, fmt::format("{} more errors are not shown", seen_ - kMost));
  return all;
}

std::string suggest(std::string_view name, std::span<const std::string> candidates) {
  constexpr std::size_t kMostListed = 40;
  if (const auto near = text::nearest(name, candidates)) return fmt::format("did you mean '{}'?", *near);
  if (candidates.empty()) return {};
  const auto listed = candidates.first(std::min(candidates.size(), kMostListed));
  return fmt::format("allowed: {}{}", text::join(listed, ", "),
                     candidates.size() > kMostListed ? ", ..." : "");
}

}  // namespace nlaunch::config
