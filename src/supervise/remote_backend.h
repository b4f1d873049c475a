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

/// What a node's agent is told about its processes.
namespace node_command {
struct Perform {
  NodeAction action;
};
struct Ending {};
struct Finish {
  std::optional<ProcessIndex> of{};  ///< whose last lines are wanted
};
}  // namespace node_command
using NodeCommand = std::variant<node_command::Perform, node_command::Ending, node_command::Finish>;

/// The agents of many nodes: actions go to the node where the process lives, and what each node tells is put
/// in one order of time.
class RemoteBackend : public ProcessBackend {
 public:
  /// Brings a command to a node's agent, by the node's index in the plan. Not called for a lost one.
  using Send = std::function<void(std::uint32_t node, const NodeCommand& command)>;
  /// More than an agent needs to kill what is left (LocalBackend's limit).
  static constexpr Duration kForTheEnd = std::chrono::seconds(30);
  /// `hosts` by index of the node in the plan. An agent that does not tell its end within `for_the_end` is
  /// given up.
  RemoteBackend(sys::Loop& loop, const plan::Plan& plan, const Rules& rules, std::vector<std::string> hosts,
                Send send, Tell tell, Duration for_the_end = kForTheEnd);
  ~RemoteBackend() override;

  void perform(const NodeAction& action) override;
  void ending() override;
  void finish(std::optional<ProcessIndex> of, std::function<void(BackendEnd)> done) override;

  /// What a node's agent tells, with the time of its own clock.
  void on_event(std::uint32_t node, ProcessEvent process_event);
  /// Nothing is left alive on the node.
  void on_end(std::uint32_t node, BackendEnd end);
  /// The connection to the node's agent has ended.
  void lose(std::uint32_t node, const std::string& why);

 private:
  using Clock = std::chrono::steady_clock;
  struct State {
    std::string host;
    bool lost = false;
    bool ended = false;                ///< its end has come
    std::optional<Duration> offset{};  ///< from its clock to ours, too large by the fastest message's way
    std::vector<ProcessIndex> processes{};
  };

  void send(std::uint32_t node, const NodeCommand& command);
  void send_all(const NodeCommand& command);
  void pass_on(ProcessEvent process_event);
  void release();
  void conclude_if_done();
  [[nodiscard]] Duration since_start() const;

  sys::Loop& loop_;
  Send send_;
  Tell tell_;
  Duration for_the_end_;
  Clock::time_point start_ = Clock::now();
  std::vector<State> nodes_;
  std::vector<std::uint32_t> node_of_;  ///< by ProcessIndex
  std::multimap<Duration, ProcessEvent> held_;
  std::optional<sys::Loop::TimerId> release_;
  std::optional<sys::Loop::TimerId> deadline_;
  std::function<void(BackendEnd)> done_;
  BackendEnd end_;
};

}  // namespace nlaunch::supervise
