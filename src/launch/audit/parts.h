#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "launch/audit/audit.h"

namespace nlaunch::launch {

/// To which role a process belongs, and its part there.
struct Standing {
  std::uint32_t role = 0;                ///< index into Plan::roles
  std::optional<std::uint32_t> process;  ///< index into Plan::processes, if certain
  Part part = Part::program;
  const ObservedProcess* forked_from = nullptr;  ///< the parent as which it counts
};

/// Determines the part of each observed process from its parent's. Keeps references to its arguments.
class Parts {
 public:
  Parts(const plan::Plan& plan, const plan::BoundNode& node, const Observations& seen)
      : plan_(plan), node_(node), seen_(seen) {}

  const Standing& of(sys::ProcessId id);

 private:
  [[nodiscard]] Standing find(const ObservedProcess& process);
  [[nodiscard]] std::optional<Standing> classified(const ObservedProcess& process) const;

  const plan::Plan& plan_;
  const plan::BoundNode& node_;
  const Observations& seen_;
  std::map<sys::ProcessId, Standing> known_;
};

/// The command line as one string.
std::string command_text(const ObservedProcess& process);

}  // namespace nlaunch::launch
