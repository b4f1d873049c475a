#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/secrets.h"
#include "supervise/terminal.h"
#include "sys/files.h"
#include "sys/loop.h"

namespace nlaunch::supervise {

/// The output of all processes: each to its own log file, byte for byte (but for the secrets), and, with a
/// prefix that says whose line it is, to the terminal.
class Output {
 public:
  struct Options {
    std::filesystem::path folder;  ///< of the log files; exists
    const Masker& masker;          ///< outlives this
    Terminal* terminal = nullptr;  ///< null: none
    Color color = Color::never;
    std::size_t name_width = 0;  ///< of the names on the terminal; 0: of the longest
    /// Called once for the first file that cannot be written.
    std::function<void(const std::string& sentence)> trouble;
    /// Called with all output of each process, secrets masked.
    std::function<void(std::size_t index, std::string_view bytes)> tap{};
  };

  /// `names` of the processes ("learner.0"); an index below is an index into them.
  Output(sys::Loop& loop, Options options, const std::vector<std::string>& names);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// The end of a new pipe for the process's standard output and error, to be closed once it is spawned.
  Result<sys::UniqueFd> open(std::size_t index);
  /// Calls `line` with each line of the process until it returns true: to be called before it is spawned.
  void watch_lines(std::size_t index, std::function<bool(std::string_view line)> line);
  /// Reads what is still in the pipe, for a fifth of a second at most, and closes it, whoever else holds it.
  void close(std::size_t index);
  /// Looks whether the log files are still there.
  void check();

  /// The last lines that the process wrote, oldest first, secrets masked, harmless for a terminal.
  [[nodiscard]] std::vector<std::string> last_lines(std::size_t index, std::size_t count) const;
  [[nodiscard]] std::filesystem::path log_path(std::size_t index) const;
  /// What is missing in the log files.
  [[nodiscard]] std::uint64_t lost_bytes() const;

 private:
  struct Stream;
  /// Reads up to `blocks` blocks; false at the end of the stream, or when nothing more is there.
  bool read_some(Stream& stream, int blocks);
  void take(Stream& stream, std::string_view bytes);
  void finish(Stream& stream);
  void close(Stream& stream);

  sys::Loop& loop_;
  Options options_;
  bool reported_ = false;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::string shown_;  // a block as the terminal gets it; kept for its memory
  std::vector<char> block_;
};

}  // namespace nlaunch::supervise
