#include "supervise/throughput.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/text.h"

namespace nlaunch::supervise {
namespace {

/// Those of a vLLM server have some hundred kilobytes.
constexpr std::size_t kLongestMetrics = 4U << 20U;

Duration now() {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

/// A line is NAME{LABELS} VALUE [TIME]; a label can contain any text between its quotes.
std::optional<double> metric(std::string_view text, std::string_view name) {
  std::optional<double> sum;
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    if (line.starts_with('{')) {
      const auto end = line.rfind('}');
      if (end == std::string_view::npos) continue;
      line.remove_prefix(end + 1);
    }
    if (!line.starts_with(' ')) continue;
    const std::string value(text::trim(line));
    char* end = nullptr;
    const auto number = std::strtod(value.c_str(), &end);
    if (end != value.c_str()) sum = sum.value_or(0) + number;
  }
  return sum;
}

std::optional<std::string> ThroughputWatch::look(std::string_view metrics, Duration now) {
  const auto counter = metric(metrics, what_.counter);
  const auto busy = metric(metrics, what_.busy);
  const bool same = counter && last_ == counter;
  last_ = counter;
  if (!counter || !busy || *busy <= 0) {
    since_.reset();
    return std::nullopt;
  }
  if (!same || !since_) since_ = now;
  if (now - *since_ < what_.within) return std::nullopt;
  return fmt::format("{} has been stuck at {} for {} while {} is {}", what_.counter, *counter,
                     format_duration(what_.within), what_.busy, *busy);
}

ThroughputReader::ThroughputReader(sys::Loop& loop, const plan::Throughput& what, Idle idle)
    : loop_(loop), what_(what), watch_(what), idle_(std::move(idle)) {
  look_after_a_while();
}

ThroughputReader::~ThroughputReader() {
  loop_.cancel(next_);
}

void ThroughputReader::look_after_a_while() {
  next_ = loop_.after(what_.every, [this] {
    check_ = sys::NetCheck::fetch(loop_, *sys::parse_http_url(what_.metrics), what_.every, kLongestMetrics,
                                  [this](const auto& metrics) { judge(metrics); });
  });
}

void ThroughputReader::judge(const std::expected<std::string, std::string>& metrics) {
  const auto why = metrics ? watch_.look(*metrics, now()) : std::nullopt;
  if (!why) return look_after_a_while();
  const auto idle = std::exchange(idle_, nullptr);
  idle(*why);  // which may destroy this object
}

}  // namespace nlaunch::supervise
