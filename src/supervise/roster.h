#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "supervise/state_machine.h"

namespace nlaunch::supervise {

/// Which replicas of the roles with ports can be addressed, as this changes during a run. Standbys cannot,
/// until one of the others is lost or restarts.
class Roster {
 public:
  /// HOST:PORT of a process of the plan, as others currently reach it.
  using AddressOf = std::function<std::string(const plan::Process& process)>;
  Roster(const plan::Plan& plan, const Rules& rules, AddressOf address_of);

  /// What the previous leader of this attempt last announced for a role.
  void begin_with(std::uint32_t role, std::uint64_t generation, const std::vector<std::string>& addresses);

  struct Change {
    std::uint32_t role = 0;        ///< index into Plan::roles
    std::uint64_t generation = 0;  ///< generation 1 is that of the start, with all replicas
    std::vector<std::string> addresses, added, removed;
  };
  /// `touched`: the processes with events since the last call.
  std::vector<Change> update(const State& state, std::span<const ProcessIndex> touched);

 private:
  struct Member {
    ProcessIndex leader = 0;  ///< of a replica
    bool used = false;        ///< its address is announced
    std::string address{};    ///< last announced address, once anything has changed
  };
  struct Role {
    std::uint64_t generation = 1;
    std::vector<Member> members;
  };

  static bool is_fit(const State& state, const Member& member);
  Change change_of(const State& state, std::uint32_t index);
  [[nodiscard]] ProcessIndex leader_of(ProcessIndex process) const;
  [[nodiscard]] const plan::Process& process_of(ProcessIndex process) const;

  const plan::Plan& plan_;
  const Rules& rules_;
  AddressOf address_of_;
  std::map<std::uint32_t, Role> roles_;  ///< the roles that have ports
  std::vector<bool> fit_;                ///< whether it can be used, as of the last update; by process
};

}  // namespace nlaunch::supervise
