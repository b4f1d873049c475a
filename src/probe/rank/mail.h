#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nlaunch::probe {

/// What the prober, which started this rank, says on standard input: "go [BYTES]", and "id KEY HEX", what
/// another rank of a communicator has told of it: its id, or where it listens. Ids travel this way and not
/// through files, because a file of another node may be seen only half a minute after it was looked for in
/// vain (NFS, acdirmin).
class Mail {
 public:
  /// `ids`: those that an earlier program of this process has read already.
  explicit Mail(std::map<std::string, std::string> ids = {}) : ids_(std::move(ids)) {}

  /// The largest message that all ranks have room for; nothing at the end of the input.
  std::optional<std::uint64_t> wait_for_go();
  /// The bytes of the id, or nothing at the end of the input.
  std::optional<std::string> wait_for_id(const std::string& key);
  /// Ids that nobody has asked for yet, with their keys, in hexadecimal.
  [[nodiscard]] const std::map<std::string, std::string>& ids() const { return ids_; }

 private:
  bool read_line();

  std::map<std::string, std::string> ids_;
  std::optional<std::uint64_t> go_;
};

std::string to_hex(const std::string& bytes);

}  // namespace nlaunch::probe
