#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/described.h"
#include "base/diagnostic.h"
#include "base/units.h"

/// What a user requests of a run in progress, from another terminal or another node: a file in `requests/` of
/// the attempt, which the run answers there. The directory belongs to the user; all files in it are of one
/// version.
namespace nlaunch::supervise {

struct RunRequest {
  enum class Kind {
    restart,  ///< a role or a replica
    drain,    ///< a node
    scale,    ///< a role, to `count` replicas
    update,   ///< roles, to another plan
  };
  BOOST_DESCRIBE_NESTED_ENUM(Kind, restart, drain, scale, update)
  Kind kind = Kind::restart;
  std::string what;         ///< "engine", "engine.3", "nid001"; for `update` the plan file in the attempt
  std::uint32_t count = 0;  ///< for `scale`
};

struct Answer {
  bool granted = false;
  std::string text;  ///< what is done, or why not
};

/// The prefix of the file name of the plan for `update`, which is directly in the attempt's directory.
inline constexpr std::string_view kUpdatePlan = "update-";

/// Sends a request to the run of this attempt and waits up to `limit` for the answer; empty: the run did not
/// take the request.
Result<std::optional<Answer>> ask(const std::filesystem::path& attempt, const RunRequest& request,
                                  Duration limit);

/// A pending request, and where its answer goes.
struct PendingRequest {
  std::filesystem::path answer;
  RunRequest request;
};
/// Takes all pending requests; invalid files are removed.
std::vector<PendingRequest> take_requests(const std::filesystem::path& attempt);
void answer(const PendingRequest& pending, const Answer& answer);

}  // namespace nlaunch::supervise
