#include "probe/transport_log.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace nlaunch::probe {
namespace {

/// The text after `mark`, or nothing.
std::optional<std::string_view> after(std::string_view line, std::string_view mark) {
  const auto at = line.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  return line.substr(at + mark.size());
}

/// The rank in front of "[", as in "1[0]".
std::optional<int> leading_rank(std::string_view text) {
  int rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || end == text.data() + text.size() || *end != '[') return std::nullopt;
  return rank;
}

std::string short_name(std::string_view detail) {
  const auto parts = text::split(detail, '/');
  return parts[0] == "NET" && parts.size() > 1 ? "NET/" + parts[1] : parts[0];
}

/// "... Channel 00/0 : 1[1] -> 0[0] [receive] via NET/Socket/0"
std::optional<PairTransport> read_channel(std::string_view line) {
  const auto channel = after(line, "NCCL INFO Channel ");
  if (!channel) return std::nullopt;
  const auto from = after(*channel, " : ");
  const auto to = after(*channel, " -> ");
  const auto via = after(*channel, " via ");
  if (!from || !to || !via) return std::nullopt;
  const auto sender = leading_rank(*from);
  const auto receiver = leading_rank(*to);
  if (!sender || !receiver) return std::nullopt;
  const std::string detail(text::trim(via->substr(0, via->find(" comm "))));
  return PairTransport{*sender, *receiver, short_name(detail), detail, 1};
}

void add(std::vector<PairTransport>& pairs, const PairTransport& found) {
  const auto same = std::ranges::find_if(pairs, [&](const PairTransport& pair) {
    return pair.from == found.from && pair.to == found.to && pair.via == found.via;
  });
  if (same == pairs.end()) {
    pairs.push_back(found);
  } else {
    ++same->channels;
  }
}

}  // namespace

TransportLog read_transport_log(std::string_view log) {
  TransportLog out;
  while (!log.empty()) {
    const auto line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    if (const auto pair = read_channel(line)) add(out.pairs, *pair);
    if (const auto network = after(line, "NCCL INFO Using network ")) out.network = text::trim(*network);
  }
  return out;
}

}  // namespace nlaunch::probe
