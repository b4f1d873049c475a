#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/described.h"
#include "base/diagnostic.h"
#include "base/units.h"

/// What a person asks of a run that goes on, from another terminal or another node: a file in `requests/` of
/// the attempt, which the run answers there. The folder is the user's own; what is in it is of one version.
namespace nlaunch::supervise {

struct RunRequest {
  enum class Kind {
    restart,  ///< of a role, a replica
    drain,    ///< a node
    scale,    ///< a role, to `count` replicas
    update,   ///< roles, to another plan
  };
  BOOST_DESCRIBE_NESTED_ENUM(Kind, restart, drain, scale, update)
  Kind kind = Kind::restart;
  std::string what;         ///< "engine", "engine.3", "nid001"; of `update` the plan's file in the attempt
  std::uint32_t count = 0;  ///< of `scale`
};

struct Answer {
  bool granted = false;
  std::string text;  ///< what is done, or why not
};

/// The plan that an `update` names. Its name begins so, and it is in the attempt's folder itself.
inline constexpr std::string_view kUpdatePlan = "update-";

/// Asks the run of this attempt, and waits up to `limit` for the answer; nothing: it did not take the
/// request.
Result<std::optional<Answer>> ask(const std::filesystem::path& attempt, const RunRequest& request,
                                  Duration limit);

/// A request that was made, and where its answer goes.
struct PendingRequest {
  std::filesystem::path answer;
  RunRequest request;
};
/// Takes those that are there; what is none is removed.
std::vector<PendingRequest> take_requests(const std::filesystem::path& attempt);
void answer(const PendingRequest& pending, const Answer& answer);

}  // namespace nlaunch::supervise
