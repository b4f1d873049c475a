#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plan/bound.h"
#include "plan/plan.h"
#include "preflight/row.h"

/// Checks the machine and the libraries that a plan will use, before anything starts: with nlaunch-probe, one
/// for each GPU of the plan on this node, each in its role's environment and with its role's libnccl.
namespace nlaunch::preflight {

struct Deadlines {
  Duration join = std::chrono::seconds(20);  ///< for all ranks of a group to meet; also for taking the GPU
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
};

struct Report {
  PreflightLevel level = PreflightLevel::standard;
  Status verdict = Status::pass;  ///< the worst of the rows
  std::vector<Row> rows;
  std::vector<Measurement> measurements;
  Duration elapsed{};
  bool cancelled = false;
};

struct Request {
  const plan::Plan& plan;
  const plan::BoundNode& node;
  std::string folder;  ///< of the attempt; "preflight" is made (or emptied) in it
  std::string probe;   ///< path of nlaunch-probe
  PreflightLevel level = PreflightLevel::standard;
  Deadlines deadlines{};
  std::function<void(const Row&)> on_row;  ///< called for each row as soon as it is known; may be empty
  std::function<bool()> cancelled;         ///< asked ten times a second; true stops the checks; may be empty
  std::string facts{};  ///< what `nlaunch-probe facts` said a moment ago; empty: it is asked
};

/// Runs all checks of the level on this machine. When it returns, every probe has been reaped and the GPUs'
/// memory is free again; a probe that even SIGKILL did not end within five seconds has a row of its own.
Report run(const Request& request);

}  // namespace nlaunch::preflight
