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

/// The directory with the LogTimes of the logs in `logs`, each under the name of its process.
inline std::filesystem::path times_of_logs(const std::filesystem::path& logs) {
  return logs.parent_path() / "log-times";
}

/// The output of all processes: each to its own log file, byte for byte (except for secrets), and to the
/// terminal with a prefix that names the process.
class Output {
 public:
  struct Options {
    std::filesystem::path folder;  ///< of the log files; must exist
    const Masker& masker;          ///< must outlive this
    Terminal* terminal = nullptr;  ///< null: none
    Color color = Color::never;
    std::size_t name_width = 0;  ///< of the names on the terminal; 0: of the longest
    /// Called once, for the first file that cannot be written.
    std::function<void(const std::string& sentence)> trouble;
    /// Called with all output of each process, with secrets masked.
    std::function<void(std::size_t index, std::string_view bytes)> tap{};
  };

  /// `names` of the processes ("learner.0"); indices below are indices into them.
  Output(sys::Loop& loop, Options options, const std::vector<std::string>& names);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// The write end of a new pipe for the process's standard output and error; close it after the spawn.
  Result<sys::UniqueFd> open(std::size_t index);
  /// Calls `line` with each line of the process until it returns true. Call this before the spawn.
  void watch_lines(std::size_t index, std::function<bool(std::string_view line)> line);
  /// Reads what is still in the pipe, for at most a fifth of a second, and closes it, whoever else holds it.
  void close(std::size_t index);
  /// Checks whether the log files still exist.
  void check();

  /// The last lines that the process wrote, oldest first, with secrets masked and safe for a terminal.
  [[nodiscard]] std::vector<std::string> last_lines(std::size_t index, std::size_t count) const;
  [[nodiscard]] std::filesystem::path log_path(std::size_t index) const;
  /// Bytes missing from the log files.
  [[nodiscard]] std::uint64_t lost_bytes() const;

 private:
  struct Stream;
  /// Reads up to `blocks` blocks; false at the end of the stream or on an error.
  bool read_some(Stream& stream, int blocks);
  void take(Stream& stream, std::string_view bytes);
  void finish(Stream& stream);
  void close(Stream& stream);

  sys::Loop& loop_;
  Options options_;
  bool reported_ = false;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::string shown_;  // a block as the terminal gets it; a member to reuse its memory
  std::vector<char> block_;
};

}  // namespace nlaunch::supervise
