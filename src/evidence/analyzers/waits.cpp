#include "evidence/analyzers/waits.h"

#include <fmt/format.h>

#include "base/text.h"

namespace nlaunch::evidence {

Blame blame(const Waits& waits) {
  Blame result;
  std::set<std::size_t> waited_for;
  for (const auto& [waiter, others] : waits) waited_for.insert(others.begin(), others.end());
  for (const auto member : waited_for) {
    const auto own = waits.find(member);
    if (own == waits.end() || own->second.empty()) result.whom.insert(member);
  }
  result.sure = !result.whom.empty();
  if (!result.sure) result.whom = waited_for;
  return result;
}

std::string listed(const std::vector<std::string>& names) {
  if (names.size() < 2) return names.empty() ? "" : names.front();
  constexpr std::size_t kMost = 8;
  if (names.size() > kMost) {
    return fmt::format("{} and {} more", text::join(std::vector(names.begin(), names.begin() + kMost), ", "),
                       names.size() - kMost);
  }
  return fmt::format("{} and {}", text::join(std::vector(names.begin(), names.end() - 1), ", "),
                     names.back());
}

}  // namespace nlaunch::evidence
