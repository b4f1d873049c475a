#pragma once
#include <sys/types.h>

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launch/run_dir/run_folder.h"
#include "plan/plan.h"
#include "session/caller.h"

namespace nlaunch::session {

/// Something that a person wants to hear of a run.
struct Notice {
  NotifyOn on{};
  std::string text;  ///< one sentence, which names the run
};

/// Which notices the events of a run are. Pure.
class Notices {
 public:
  explicit Notices(const plan::Plan& plan);
  /// The next event, with its fields.
  std::optional<Notice> take(std::string_view event, const nlohmann::ordered_json& fields);

 private:
  std::string name_;               ///< "grpo on isambard"
  std::set<std::string> all_;      ///< processes that are to be up; tasks are not
  std::set<std::string> checked_;  ///< of these, those that a check tells to be ready
  std::set<std::string> awaited_;  ///< not up yet
  std::set<NotifyOn> wanted_;
  std::string how_;  ///< the last attempt ended
  bool told_ready_ = false;
};

/// Sends them, each by a process of its own: whatever becomes of it, the run goes on. Nothing of the URL of a
/// webhook is on a command line or in an output.
class Notifier {
 public:
  /// All arguments outlive this. A webhook whose URL cannot be read is said once, and left out.
  Notifier(const plan::Plan& plan, const launch::RunPaths& paths, const Caller& caller);
  /// Gives the last ones some seconds.
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  void take(std::string_view event, const nlohmann::ordered_json& fields);

 private:
  void wait(std::chrono::milliseconds most);
  void send(std::vector<std::string> argv, const std::string& input);

  const plan::Plan& plan_;
  const launch::RunPaths& paths_;
  const Caller& caller_;
  Notices notices_;
  std::string webhook_;  ///< its URL; empty: none
  std::vector<pid_t> running_;
};

/// {"text", "event", "run", "name", "site", "folder"}: what chat programs call an incoming webhook shows
/// "text".
nlohmann::ordered_json to_json(const Notice& notice, const plan::Plan& plan, const launch::RunPaths& paths);

/// A configuration for curl (curl(1), --config) that posts `json` to `url`.
std::string curl_config(const std::string& url, const std::string& json);

}  // namespace nlaunch::session
