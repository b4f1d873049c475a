#include "supervise/child_watch.h"

#include <fmt/format.h>
#include <poll.h>

#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include "base/text.h"
#include "sys/pidfd.h"
#include "sys/sweep.h"

namespace nlaunch::supervise {
namespace {

constexpr Duration kBetweenLooks = std::chrono::seconds(1);
/// Each needs a descriptor; beyond this number they are data loaders and the like.
constexpr std::size_t kMostWatched = 256;

}  // namespace

std::string Child::str() const {
  return fmt::format("{} (pid {})", text::printable(title), pid);
}

bool is_part_of_server(std::string_view title) {
  return title.starts_with("VLLM::") || title.starts_with("sglang::") || title == "raylet" ||
         title == "gcs_server";
}

bool was_asked_to_end(const sys::WaitStatus& status) {
  const int signal = status.signal();
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGPIPE;
}

bool comes_and_goes(std::string_view title) {
  return title == "ray::IDLE" || title == "ray::DashboardAgent" || title == "ray::RuntimeEnvAgent";
}

ChildWatch::ChildWatch(sys::Loop& loop, Roots roots, Ended ended)
    : loop_(loop), roots_(std::move(roots)), ended_(std::move(ended)) {
  timer_ = loop_.after(kBetweenLooks, [this] { look(); });
}

ChildWatch::~ChildWatch() {
  if (timer_) loop_.cancel(*timer_);
  for (const auto& [id, watched] : watched_) {
    if (watched.handle) loop_.unwatch(watched.handle.get());
  }
}

void ChildWatch::look() {
  std::map<sys::ProcessId, Watched> seen;
  const auto all = sys::processes_by_parent();
  for (const auto& [root, leader] : roots_()) {
    for (const auto& info : sys::descendants(leader, all)) take(root, info, seen);
  }
  // A watched process is reported through its descriptor, even if it is no longer below its parent.
  for (auto& [id, watched] : watched_) {
    if (watched.handle) seen.try_emplace(id, std::move(watched));
  }
  watched_ = std::move(seen);
  timer_ = loop_.after(kBetweenLooks, [this] { look(); });
}

void ChildWatch::take(ProcessIndex root, const sys::ProcessInfo& info,
                      std::map<sys::ProcessId, Watched>& seen) {
  const sys::ProcessId id{info.pid, info.start_ticks};
  auto known = watched_.extract(id);
  const bool twice = !known.empty();
  if (!twice && !sys::is_alive(info)) return;  // already reported
  auto watched = twice ? std::move(known.mapped()) : Watched{.root = root, .child = {info.pid, ""}};
  // A title can appear later than the process, and disappears once it has exited and was not reaped.
  const auto arguments = sys::command_line(info.pid);
  if (!twice || !arguments.empty()) watched.child.title = sys::process_title(arguments, info.name);
  if (twice && !watched.handle && seen.size() < kMostWatched) {
    watched.handle = sys::open_pidfd(info.pid);
    if (watched.handle) loop_.watch(watched.handle.get(), [this, id] { ended(id); });
  }
  seen.emplace(id, std::move(watched));
}

void ChildWatch::report_exited(ProcessIndex root) {
  std::vector<sys::ProcessId> gone;
  for (const auto& [id, watched] : watched_) {
    if (watched.root != root || !watched.handle) continue;
    pollfd handle{watched.handle.get(), POLLIN, 0};
    if (::poll(&handle, 1, 0) == 1) gone.push_back(id);
  }
  for (const auto& id : gone) ended(id);
}

void ChildWatch::ended(sys::ProcessId id) {
  auto node = watched_.extract(id);
  if (node.empty()) return;
  const auto& watched = node.mapped();
  const auto status = sys::status_of_ended(watched.handle.get(), id.pid);
  loop_.unwatch(watched.handle.get());
  // The loop still uses it until this call returns.
  loop_.post([handle = std::make_shared<sys::UniqueFd>(std::move(node.mapped().handle))] {});
  ended_(watched.root, watched.child, status);
}

}  // namespace nlaunch::supervise
