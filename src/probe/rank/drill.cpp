#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/backend.h"
#include "probe/gloo/rehearsal.h"
#include "probe/output.h"
#include "probe/rank/session.h"

/// The drills of a session.
namespace nlaunch::probe {
namespace {

using nlohmann::json;

/// After the drill's deadline, for a rank that is not inside a call to report that it waits.
constexpr Duration kInside = std::chrono::seconds(1);

json drill_line(const std::string& group, const std::string& drill, json seen) {
  seen["event"] = "drill";
  seen["group"] = group;
  seen["drill"] = drill;
  return seen;
}

}  // namespace

bool Session::drilled() const {
  return std::ranges::any_of(spec_.groups,
                             [this](const GroupSpec& group) { return group.drill && takes_part(group); });
}

/// Before a library reads it.
void Session::take_drill_environment() const {
  for (const auto& group : spec_.groups) {
    if (!group.drill || !takes_part(group)) continue;
    for (const auto& [name, value] : group.drill->env) ::setenv(name.c_str(), value.c_str(), 1);
  }
}

bool Session::drill(std::size_t index) {
  const auto& group = spec_.groups[index];
  const auto& drill = *group.drill;
  std::vector<JoinRequest> requests;
  for (unsigned i = 0; i < drill.communicators; ++i) {
    requests.push_back(request(index, "drill." + std::to_string(i)));
    requests.back().op = drill.deadline;
  }
  const auto& launches = drill.does.at(static_cast<std::size_t>(requests.front().rank));
  const bool on_gpu = traits_of(group.backend).needs_gpu;
  if (on_gpu && !gpu_)
    return fail("join", group.name,
                failure("probe.spec", "a rank without a GPU cannot join an NCCL group").error());
  expect("join", group.name, spec_.join);
  const auto begin = std::chrono::steady_clock::now();
  const auto since = [begin] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const auto rehearsal = on_gpu ? gpu_->rehearse(drill, requests) : rehearse_gloo(drill, requests);
  if (!rehearsal) return fail("join", group.name, rehearsal.error());
  emit({{"event", "joined"}, {"group", group.name}, {"seconds", since()}});
  expect("collective", group.name, spec_.op);
  if (auto ready = (*rehearsal)->prepare(); !ready) return fail("collective", group.name, ready.error());
  const auto limit = drill.deadline + kInside;
  watchdog_.expect(limit, [this, &group, &drill, &launches, limit] {
    emit(drill_line(group.name, drill.name,
                    {{"launched", launches.size()},
                     {"ended", "blocked"},
                     {"text", gpu_ ? gpu_->last_error() : ""},
                     {"wrong", 0},
                     {"seconds", std::chrono::duration<double>(limit).count()}}));
    done();
    linger();
  });
  emit(drill_line(group.name, drill.name, play(**rehearsal, launches, drill.deadline)));
  watchdog_.done();
  return true;
}

void Session::linger() const {
  char ignored = 0;
  while (::read(STDIN_FILENO, &ignored, 1) > 0) {
  }
}

}  // namespace nlaunch::probe
