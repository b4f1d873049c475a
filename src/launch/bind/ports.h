#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/diagnostic.h"
#include "sys/files.h"

namespace nlaunch::launch {

/// Where runs of one machine tell each other what they hold.
std::string lock_folder();
/// Opens a file there, to be locked; makes both for everybody (the folder as /tmp is) where they are not
/// there. Who made the folder can put there what he likes: a link, a FIFO or another name of a file elsewhere
/// is a failure, and is neither followed nor waited for nor written to.
Result<sys::UniqueFd> open_lock_file(const std::string& folder, const std::string& name);

/// The ports of one run: free when taken, and kept from other runs while this lives. Between the binding of a
/// run and the moment when its servers listen, another run would find the same ports free.
class Ports {
 public:
  explicit Ports(const std::string& folder = lock_folder());

  /// The first port from `wish` upwards that nobody has; after the last of nlaunch's range, its first.
  std::optional<std::uint16_t> take(std::uint16_t wish);

 private:
  bool lock(std::uint16_t port);

  std::set<std::uint16_t> taken_;
  sys::UniqueFd file_;  // byte N is locked for port N; without the file nothing is kept from others
};

}  // namespace nlaunch::launch
