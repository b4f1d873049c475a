#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

namespace nlaunch::probe {

/// `names NAME...`: what names (and this host's own, the first one) mean here, by getaddrinfo, which may
/// hang:
///   event "names"; names [{name, addresses [IPv4], error (text, where there are none), interface (by which a
///   packet to the first address would leave; of an own address the interface that has it), own (true: of
///   this host's name)}].
nlohmann::json resolve_names(std::span<const std::string> names);

}  // namespace nlaunch::probe
