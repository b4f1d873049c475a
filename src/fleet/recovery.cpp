#include "fleet/recovery.h"

#include <algorithm>

namespace nlaunch::fleet {
namespace {

constexpr Duration kFirstWait = std::chrono::seconds(2);
constexpr Duration kLongestWait = std::chrono::minutes(1);

Duration wait_after(unsigned failures) {
  if (failures < 2) return {};
  auto wait = kFirstWait;
  for (unsigned i = 2; i < failures && wait < kLongestWait; ++i) wait *= 2;
  return std::min(wait, kLongestWait);
}

}  // namespace

void HostHistory::failed(const std::string& host, Duration now) {
  auto& failures = failures_[host];
  ++failures.times;
  failures.last = now;
}

unsigned HostHistory::failures_of(const std::string& host) const {
  const auto found = failures_.find(host);
  return found == failures_.end() ? 0 : found->second.times;
}

std::optional<HostHistory::Choice> HostHistory::choose(const std::vector<std::string>& candidates,
                                                       const std::set<std::string>& in_use,
                                                       Duration now) const {
  std::optional<Choice> best;
  unsigned least = 0;
  for (const auto& host : candidates) {
    if (in_use.contains(host) || out_.contains(host)) continue;
    const auto found = failures_.find(host);
    const auto failures = found == failures_.end() ? Failures() : found->second;
    const auto wait = std::max(Duration(), failures.last + wait_after(failures.times) - now);
    const bool sooner = best && wait < best->wait;
    const bool better = best && wait == best->wait && failures.times < least;
    if (best && !sooner && !better) continue;
    best = {host, failures.times == 0 ? Duration() : wait};
    least = failures.times;
  }
  return best;
}

}  // namespace nlaunch::fleet
