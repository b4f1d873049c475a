#include "launch/job/replica.h"

#include "base/text.h"
#include "launch/machine.h"
#include "sys/spawn.h"

namespace nlaunch::launch {
Result<std::optional<Replica>> find_replica(const std::vector<std::string>& environment) {
  const auto variable = [&](const char* name) { return std::string(sys::env_value(environment, name)); };
  const auto rank = variable("BEAKER_REPLICA_RANK");
  const auto count = variable("BEAKER_REPLICA_COUNT");
  if (rank.empty() && count.empty()) return std::nullopt;
  const auto index = text::whole_number<std::uint32_t>(rank);
  const auto all = text::whole_number<std::uint32_t>(count);
  if (!index || !all || *index >= *all) {
    return failure("launch.replica",
                   "BEAKER_REPLICA_RANK='{}' and BEAKER_REPLICA_COUNT='{}' do not describe a replica",
                   text::printable(rank), text::printable(count));
  }
  Replica replica{*index, *all, variable("BEAKER_LEADER_REPLICA_HOSTNAME"), variable("BEAKER_NODE_HOSTNAME")};
  if (replica.host.empty()) replica.host = this_host().host;
  if (replica.leader.empty() && replica.count > 1) {
    return failure(
        "launch.replica",
        "BEAKER_LEADER_REPLICA_HOSTNAME is not set: the task needs leaderSelection and hostNetworking");
  }
  return replica;
}

bool in_beaker_job(const std::vector<std::string>& environment) {
  return !sys::env_value(environment, "BEAKER_JOB_ID").empty();
}

}  // namespace nlaunch::launch
