#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "shell/recorder.h"
#include "shell/words.h"

namespace nlaunch::shell {

/// What appears to have failed in a recording (RecordRequest::failing), and the time of day that its programs
/// see: for a server that fails, `sleep` takes the time that it says.
class Failing {
 public:
  /// `request` must outlive this object.
  explicit Failing(const RecordRequest& request) : request_(request) {}

  [[nodiscard]] bool any() const { return request_.failing.has_value(); }
  /// A server fails: none answers, and none that has exited appears to be alive.
  [[nodiscard]] bool server() const { return any() && request_.failing->serves; }
  /// A server runs on, and does not answer.
  [[nodiscard]] bool server_hangs() const { return server() && request_.failing->hangs; }

  /// True if the last of the commands is one that fails: the first time with all tasks of its step, a server
  /// and FailingProgram::always each time.
  [[nodiscard]] bool is_now(const std::vector<RecordedCommand>& commands);
  /// True after that.
  [[nodiscard]] bool has_begun() const { return first_.has_value(); }

  /// True if this file is the output of what failed.
  [[nodiscard]] bool wrote(const std::string& path) const { return outputs_.contains(path); }

  /// True if a search on this line ends the other way (FailingProgram::otherwise).
  [[nodiscard]] bool is_otherwise(std::uint32_t line) const {
    return any() && request_.failing->otherwise.contains(line);
  }

  /// Queries to the hosts of the job fail.
  [[nodiscard]] bool silent() const { return server() && (!request_.failing->joins || has_begun()); }
  /// True for a query that then fails: to a host of the job, or for one of its processes unless the server
  /// hangs.
  [[nodiscard]] bool concerns(const Words& query) const;

  /// The script has slept: `sleep 5`.
  void slept(const Words& argv) { slept_ += seconds_of_sleep(argv); }
  [[nodiscard]] bool may_be_ahead() const { return request_.later > 0 || server(); }
  [[nodiscard]] std::chrono::seconds ahead() const {
    return std::chrono::seconds(request_.later + (server() ? slept_ : 0));
  }
  /// That `date` tells: the same for all tasks.
  [[nodiscard]] std::uint64_t now() const { return began_ + static_cast<std::uint64_t>(ahead().count()); }

 private:
  [[nodiscard]] bool each_time() const { return request_.failing->serves || request_.failing->always; }

  const RecordRequest& request_;
  const std::uint64_t began_ = static_cast<std::uint64_t>(::time(nullptr));
  std::vector<std::size_t> turns_;    ///< the launchers of those that started, or their own numbers
  std::optional<std::size_t> first_;  ///< the one of the first that failed
  std::set<std::uint32_t> ranks_;     ///< of its tasks that failed
  std::set<std::string> outputs_;     ///< files of what failed
  std::uint64_t slept_ = 0;           ///< seconds, by `sleep` in the foreground
};

/// `curl`, `nc`, `ray`: asks whether something answers on a host of the job.
bool asks_host(const Words& query);

/// curl, wget
bool asks_by_http(const Words& query);

}  // namespace nlaunch::shell
