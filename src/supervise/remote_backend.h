#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "plan/plan.h"
#include "supervise/process_backend.h"
#include "sys/loop.h"

namespace nlaunch::supervise {

/// The commands to a node's agent about its processes.
namespace node_command {
struct Perform {
  NodeAction action;
};
struct Ending {};
struct Finish {
  std::optional<ProcessIndex> of{};  ///< the process whose last lines are wanted
};
}  // namespace node_command
using NodeCommand = std::variant<node_command::Perform, node_command::Ending, node_command::Finish>;

/// The agents of several nodes: sends each action to the node where the process lives, and merges the events
/// of all nodes into one order of time.
class RemoteBackend : public ProcessBackend {
 public:
  /// Sends a command to a node's agent, by the node's index in the plan. Not called for a lost node.
  using Send = std::function<void(std::uint32_t node, const NodeCommand& command)>;
  /// More than an agent needs to kill what is left (LocalBackend's limit).
  static constexpr Duration kForTheEnd = std::chrono::seconds(30);
  struct Options {
    std::vector<std::string> hosts;  ///< by index of the node in the plan; borrowed nodes join later
    Send send;
    Tell tell;
    /// Requests another agent in place of a lost node. Answered by `rejoin`, possibly never.
    std::function<void(std::uint32_t node)> recover{};
    /// Releases a node: its agent has to exit. Then as `recover`.
    std::function<void(std::uint32_t node)> release{};
    Duration for_the_end =
        kForTheEnd;  ///< an agent that does not report its end within this time is given up
  };
  RemoteBackend(sys::Loop& loop, const plan::Plan& plan, const Rules& rules, Options options);
  ~RemoteBackend() override;

  void perform(const NodeAction& action) override;
  void recover(const std::vector<ProcessIndex>& processes) override;
  void release(const std::vector<ProcessIndex>& processes) override;
  void ending() override;
  void finish(std::optional<ProcessIndex> of, std::function<void(BackendEnd)> done) override;

  /// An event from a node's agent, with the time of its own clock.
  void on_event(std::uint32_t node, ProcessEvent process_event);
  /// Nothing is left alive on the node.
  void on_end(std::uint32_t node, BackendEnd end);
  /// The connection to the node's agent was closed.
  void lose(std::uint32_t node, const std::string& why);
  /// An agent on `host` has replaced a lost node and has none of its processes.
  void rejoin(std::uint32_t node, const std::string& host);
  /// The end of the run is decided: no node may join any more.
  [[nodiscard]] bool is_ending() const { return ending_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct State {
    std::string host;
    bool lost = false;
    bool came = true;    ///< a borrowed node: at some time
    bool ended = false;  ///< it has reported its end
    std::optional<Duration>
        offset{};  ///< from its clock to ours, too large by the delay of the fastest message
    std::vector<ProcessIndex> processes{};
  };

  void send(std::uint32_t node, const NodeCommand& command);
  void send_all(const NodeCommand& command);
  void pass_on(ProcessEvent process_event);
  void release();
  void conclude_if_done();
  [[nodiscard]] Duration since_start() const;

  sys::Loop& loop_;
  Options options_;
  Clock::time_point start_ = Clock::now();
  std::vector<State> nodes_;
  std::vector<std::uint32_t> node_of_;  ///< by ProcessIndex
  std::multimap<Duration, ProcessEvent> held_;
  std::optional<sys::Loop::TimerId> release_;
  std::optional<sys::Loop::TimerId> deadline_;
  bool ending_ = false;
  std::function<void(BackendEnd)> done_;
  BackendEnd end_;
};

}  // namespace nlaunch::supervise
