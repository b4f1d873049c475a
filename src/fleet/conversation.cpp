#include "fleet/conversation.h"

#include <fmt/format.h>

#include "base/text.h"

namespace nlaunch::fleet {
namespace {

/// Few enough that little is kept for each of many agents; many enough that confirmations are rare.
constexpr std::uint64_t kConfirmEach = 16;

}  // namespace

bool Conversation::confirmed(std::uint64_t count) {
  if (count < confirmed_ || count - confirmed_ > unconfirmed_.size()) return false;
  unconfirmed_.erase(unconfirmed_.begin(),
                     unconfirmed_.begin() + static_cast<std::ptrdiff_t>(count - confirmed_));
  confirmed_ = count;
  return true;
}

bool Conversation::receive() {
  return ++received_ % kConfirmEach == 0;
}

std::string addressed(const Address& address, std::string_view text) {
  switch (address.to) {
    case Address::To::node:
      return fmt::format("{} {}", address.node, text);
    case Address::To::arrival:
      return fmt::format("+{} {}", address.node, text);
    case Address::To::all:
      return fmt::format("* {}", text);
    case Address::To::peer:
      break;
  }
  return std::string(text);
}

std::optional<Addressed> read_address(std::string_view text) {
  if (text.starts_with('{')) return Addressed{{}, text};
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  auto word = text.substr(0, space);
  text.remove_prefix(space + 1);
  if (word == "*") return Addressed{{Address::To::all}, text};
  const bool arrives = word.starts_with('+');
  if (arrives) word.remove_prefix(1);
  const auto node = text::whole_number<std::uint32_t>(word);
  if (!node) return std::nullopt;
  return Addressed{{arrives ? Address::To::arrival : Address::To::node, *node}, text};
}

}  // namespace nlaunch::fleet
