#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plan/bound.h"
#include "plan/plan.h"
#include "preflight/row.h"
#include "preflight/timeline.h"

/// Checks the machine and the libraries that a plan will use, before anything starts: with nlaunch-probe, one
/// per GPU of the plan on this node, each in its role's environment and with its role's libnccl.
namespace nlaunch::preflight {

struct Deadlines {
  Duration join = std::chrono::seconds(20);  ///< for all ranks of a group to join; also for opening the GPU
  Duration op = std::chrono::seconds(20);    ///< for one check or measurement of one size
};

/// One timed collective: the slowest rank's median.
struct Measurement {
  std::string group;
  std::string op;       ///< "all_reduce", "broadcast"
  std::string backend;  ///< "nccl", "gloo"
  std::uint32_t ranks = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;  ///< for one operation
  double busbw = 0;    ///< bytes/s, as nccl-tests counts it
  std::string kind{};  ///< of the group: "node", "world", "weight-sync"
  double floor = 0;    ///< bytes/s that the site expects at this size; 0: none
  double limit = 0;    ///< bytes/s that the links can carry, according to the site; 0: not set
};

/// A figure of one GPU, of a pair, or of a node.
struct Figure {
  std::string what;  ///< "p2p", "host_to_device", "device_to_host", "gemm", "pair", "clock"
  std::string host;  ///< empty if this machine is the only one
  std::string from;  ///< "GPU 0"; for a pair of nodes the name of the first
  std::string to{};  ///< of a pair; else empty
  double value = 0;
  std::string unit;  ///< "B/s", "FLOP/s", "s"
};

/// A summary of a node, in one line.
struct NodeSummary {
  std::string host;
  std::string arch;
  std::string gpu;  ///< model; several are joined by ", "
  std::uint32_t gpus = 0;
  std::string driver;
  std::string nccl;  ///< versions that its roles load, joined by ", "
};

struct Report {
  PreflightLevel level = PreflightLevel::standard;
  Status verdict = Status::pass;  ///< the worst of the rows
  std::vector<Row> rows{};
  std::vector<Measurement> measurements{};
  std::vector<Figure> figures{};
  std::vector<NodeSummary> nodes{};
  Duration elapsed{};
  bool cancelled = false;
  std::string plan{};     ///< name of the experiment, or of the machine's own plan
  std::string site{};     ///< name of the profile
  std::int64_t time = 0;  ///< when it finished, seconds since 1970
  std::string job{};      ///< of the scheduler, in which it ran; empty: none
};

/// What to check.
struct Options {
  PreflightLevel level = PreflightLevel::standard;
  bool ladder = false;  ///< one GPU, one node, two nodes, all: up to the first rung that fails
  /// receives progress messages, a few words each: "learner world: 4 of 16 groups"; may be empty
  std::function<void(const std::string&)> progress{};
  Timeline* timeline = nullptr;  ///< receives what took how long; null: nobody wants it

  void tell(const std::string& words) const {
    if (progress) progress(words);
  }
  /// Of nlaunch itself, until now.
  void took(const std::string& name, Timeline::Clock::time_point begin) const {
    if (timeline != nullptr) timeline->add("nlaunch", name, begin);
  }
};

struct Request {
  const plan::Plan& plan;
  const plan::BoundNode& node;
  std::string folder;  ///< of the attempt; "preflight" is created (or emptied) in it
  std::string probe;   ///< path of nlaunch-probe
  Options options{};
  Deadlines deadlines{};
  std::function<bool()> cancelled{};  ///< polled ten times a second; true stops the checks; may be empty
  std::string facts{};                ///< the recent output of `nlaunch-probe facts`; empty: it is run
  std::string address{};              ///< the address of this node for other nodes; empty: it is the only one
};

/// Runs all checks of the level on this machine. When it returns, every probe has been reaped and the GPUs'
/// memory is free again; a probe that SIGKILL did not kill within five seconds has its own row.
Report run(const Request& request);

}  // namespace nlaunch::preflight
