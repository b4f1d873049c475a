#include "shell/allocation.h"

#include <fmt/format.h>

#include "base/text.h"

namespace nlaunch::shell {
namespace {

constexpr std::string_view kHost = "rec-node-";
constexpr std::string_view kAddress = "10.77.";
constexpr std::uint32_t kPerByte = 250;

}  // namespace

std::string Allocation::host(std::uint32_t node) {
  return fmt::format("{}{}", kHost, node);
}

std::string Allocation::address(std::uint32_t node) {
  return fmt::format("{}{}.{}", kAddress, (node + 1) / kPerByte, (node + 1) % kPerByte);
}

std::string Allocation::host_list() const {
  return nodes == 1 ? host(0) : fmt::format("{}[0-{}]", kHost, nodes - 1);
}

std::optional<std::uint32_t> node_of(std::string_view host) {
  if (host.starts_with(kHost)) {
    const auto number = host.substr(kHost.size());
    return text::whole_number<std::uint32_t>(number.substr(0, number.find('.')));
  }
  if (!host.starts_with(kAddress)) return std::nullopt;
  const auto bytes = text::split(host.substr(kAddress.size()), '.');
  const auto high = bytes.size() == 2 ? text::whole_number<std::uint32_t>(bytes[0]) : std::nullopt;
  const auto low = bytes.size() == 2 ? text::whole_number<std::uint32_t>(bytes[1]) : std::nullopt;
  if (!high || !low || *high * kPerByte + *low == 0) return std::nullopt;
  return *high * kPerByte + *low - 1;
}

}  // namespace nlaunch::shell
