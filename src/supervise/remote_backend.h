#pragma once
#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "supervise/process_backend.h"
#include "sys/channel.h"
#include "sys/loop.h"

namespace nlaunch::supervise {

/// The agents of many nodes: actions go to the node where the process lives, and what each node tells is put
/// in one order of time.
class RemoteBackend : public ProcessBackend {
 public:
  struct Node {
    std::string host;
    sys::Channel* channel = nullptr;  ///< outlives this
  };
  /// `nodes` by index in the plan.
  RemoteBackend(sys::Loop& loop, const plan::Plan& plan, const Rules& rules, std::vector<Node> nodes,
                Tell tell);
  ~RemoteBackend() override;

  void perform(const NodeAction& action) override;
  void ending() override;
  void finish(std::optional<ProcessIndex> of, std::function<void(BackendEnd)> done) override;

  /// A message of a node's agent: {"notice": ...} or {"end": ...}. What cannot be read makes the node a lost
  /// one.
  void hear(std::uint32_t node, const nlohmann::json& message);
  /// The connection to the node's agent has ended.
  void lose(std::uint32_t node, const std::string& why);

 private:
  using Clock = std::chrono::steady_clock;
  struct State {
    Node node;
    bool lost = false;
    bool ended = false;                ///< its end has come
    std::optional<Duration> offset{};  ///< from its clock to ours, too large by the fastest message's way
    std::vector<ProcessIndex> processes{};
  };

  void send(std::uint32_t node, const nlohmann::json& message);
  void send_all(const nlohmann::json& message);
  void pass_on(ProcessEvent process_event);
  void release();
  void conclude_if_done();
  [[nodiscard]] Duration since_start() const;

  sys::Loop& loop_;
  Tell tell_;
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
