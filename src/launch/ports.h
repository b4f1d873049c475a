#pragma once
#include <cstdint>
#include <optional>
#include <set>

namespace nlaunch::launch {

/// True when a server could listen on this TCP port of this machine now.
bool port_is_free(std::uint16_t port);

/// The first free port from `wish` upwards (around within nlaunch's range) that is not in `taken`, added to it.
std::optional<std::uint16_t> take_free_port(std::uint16_t wish, std::set<std::uint16_t>& taken);

}  // namespace nlaunch::launch
