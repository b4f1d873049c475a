#include "probe/rank/transport_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
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

/// The rank before "[", as in "1[0]".
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

/// Names of the numbers that older releases print: NCCL_ALGO_* and NCCL_PROTO_* (NCCL v2.21.5,
/// src/include/nccl_common.h).
constexpr std::array<std::string_view, 6> kAlgorithms{"TREE",          "RING", "COLLNET_DIRECT",
                                                      "COLLNET_CHAIN", "NVLS", "NVLS_TREE"};
constexpr std::array<std::string_view, 3> kProtocols{"LL", "LL128", "SIMPLE"};

template <std::size_t N>
std::string named(std::string_view word, const std::array<std::string_view, N>& names) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return std::string(error == std::errc() && number < N ? names[number] : word);
}

std::string_view word_after(std::string_view line, std::string_view mark) {
  const auto rest = after(line, mark);
  return rest ? rest->substr(0, rest->find_first_of(" \r")) : std::string_view();
}

std::optional<Choice> read_choice_line(std::string_view line) {
  if (!after(line, " Bytes -> Algo ")) return std::nullopt;
  Choice choice{named(word_after(line, "-> Algo "), kAlgorithms),
                named(word_after(line, " proto "), kProtocols), 0};
  const auto channels = after(line, "channel{Lo..Hi}={");
  unsigned low = 0;
  unsigned high = 0;
  if (channels && std::sscanf(std::string(*channels).c_str(), "%u..%u", &low, &high) == 2)
    choice.channels = high - low + 1;
  return choice;
}

}  // namespace

std::optional<Choice> read_choice(std::string_view log) {
  std::optional<Choice> last;
  while (!log.empty()) {
    const auto line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    if (auto choice = read_choice_line(line)) last = std::move(choice);
  }
  return last;
}

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
