#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "sys/files.h"

namespace nlaunch::launch {

/// Where the runs of this user tell each other which ports they hold. One file for all users could be locked
/// from end to end by any of them.
std::string port_folder();

/// The ports of one run: free when taken, and kept from other runs while this lives. Between the binding of a
/// run and the moment when its servers listen, another run would find the same ports free. Those of other
/// users are seen once they listen.
class Ports {
 public:
  explicit Ports(const std::string& folder = port_folder());

  /// The first port from `wish` upwards that nobody has; after the last of nlaunch's range, its first.
  std::optional<std::uint16_t> take(std::uint16_t wish);

 private:
  bool lock(std::uint16_t port);

  std::set<std::uint16_t> taken_;
  sys::UniqueFd file_;  // byte N is locked for port N; without a folder of this user's own nothing is kept
};

}  // namespace nlaunch::launch
