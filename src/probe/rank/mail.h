#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nlaunch::probe {

/// What the prober, which started this rank, writes to standard input: "go [BYTES]", and "id KEY HEX", what
/// another rank of a communicator has published: its id, or where it listens. Ids are sent this way and not
/// through files, because a file from another node can take half a minute to become visible after a failed
/// lookup (NFS, acdirmin).
class Mail {
 public:
  /// `ids`: those that an earlier program of this process has already read.
  explicit Mail(std::map<std::string, std::string> ids = {}) : ids_(std::move(ids)) {}

  /// The largest message that all ranks have room for; nothing at end of input.
  std::optional<std::uint64_t> wait_for_go();
  /// The bytes of the id, or nothing at end of input.
  std::optional<std::string> wait_for_id(const std::string& key);
  /// Ids that have not been requested yet, with their keys, in hexadecimal.
  [[nodiscard]] const std::map<std::string, std::string>& ids() const { return ids_; }

 private:
  bool read_line();

  std::map<std::string, std::string> ids_;
  std::optional<std::uint64_t> go_;
};

std::string to_hex(const std::string& bytes);

}  // namespace nlaunch::probe
