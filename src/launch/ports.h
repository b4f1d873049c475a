#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "sys/files.h"

namespace nlaunch::launch {

/// Where runs of one machine tell each other what they hold.
std::string lock_folder();
/// Makes that folder for everybody (as /tmp is) when it is not there.
void make_lock_folder(const std::string& folder);

/// The ports of one run: free when taken, and kept from other runs while this lives. Between the binding of a
/// run and the moment when its servers listen, another run would find the same ports free.
class Ports {
 public:
  explicit Ports(const std::string& folder = lock_folder());

  /// The first port from `wish` upwards, around within nlaunch's range, that nobody has.
  std::optional<std::uint16_t> take(std::uint16_t wish);

 private:
  bool lock(std::uint16_t port);

  std::set<std::uint16_t> taken_;
  sys::UniqueFd file_;  // byte N is locked for port N; without the file nothing is kept from others
};

}  // namespace nlaunch::launch
