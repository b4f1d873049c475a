#include <fmt/format.h>

#include "base/registry.h"
#include "base/text.h"
#include "plan/container.h"
#include "preflight/ask/inquiries.h"
#include "preflight/checks.h"
#include "sys/command.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

constexpr auto kContainer = "container";

/// Nothing starts there, or the container does but not the probe.
Row judge_silent_container(const std::string& role, const Answer& answer, const plan::Role& of) {
  const auto words = answer.said.value("words", "");
  if (!words.empty()) {
    return failed(kContainer, role, fmt::format("no program starts in the container: {}", words),
                  "a container that starts",
                  {fmt::format("try it manually, in {}: {} true", of.workdir, text::shell_join(of.wrapper))});
  }
  return unknown(kContainer, role,
                 fmt::format("programs start in the container, but nlaunch-probe does not, so nothing is "
                             "checked there: {}; it needs glibc (2.28) and the file that nlaunch mounts",
                             answer.error));
}

Row judge_container(const plan::Role& role, const json& said, bool needs_gpus) {
  for (const auto& [file, why] : said.value("unreadable", std::map<std::string, std::string>())) {
    return failed(kContainer, role.name, fmt::format("'{}' cannot be read in the container: {}", file, why),
                  "the files that the role preloads",
                  {fmt::format("mount it, or remove what hides it: {}", text::shell_join(role.wrapper))});
  }
  if (needs_gpus && !said.value("gpus", false)) {
    return failed(
        kContainer, role.name, "it has no GPU: /dev/nvidiactl does not exist", "the GPUs of the role",
        {"use `apptainer exec --nv`, `bwrap --dev-bind /dev /dev`, or enroot with its hook 98-nvidia.sh"});
  }
  return passed(kContainer, role.name,
                fmt::format("{}, glibc {}", said.value("os", "no /etc/os-release"), said.value("glibc", "")));
}

std::vector<Row> check_container(const NodeObservations& observations) {
  std::vector<Row> rows;
  for (const auto& [index, process] : observations.first_of_roles()) {
    const auto& role = observations.plan.roles[index];
    const auto* answer = observations.answer("container/" + role.name);
    if (answer == nullptr) continue;
    rows.push_back(answer->error.empty()
                       ? judge_container(role, answer->said, observations.has_gpus() && role.gpus > 0)
                       : judge_silent_container(role.name, *answer, role));
  }
  return rows;
}

const Registered<NodeCheck> container_check{{
    .order = 80,
    .name = kContainer,
    .what = "each role's container starts, and has its GPUs and the files that the role preloads",
    .judge = check_container,
}};

bool has_container(const NodeObservations& observations, std::uint32_t role) {
  return plan::is_container(observations.plan.roles[role].wrapper);
}

/// Everything that is preloaded there, as passed to the loader.
std::vector<std::string> preloaded(const NodeObservations& /*observations*/,
                                   const plan::BoundProcess* process) {
  const auto value = variable_of(*process, "LD_PRELOAD").value_or("");
  return value.empty() ? std::vector<std::string>() : text::split(value, ':');
}

/// Whether anything at all starts in the container: `words` if not.
json try_without_probe(const plan::BoundProcess& process) {
  auto start = plan::start_of_probe(process, {"true"});
  sys::SpawnRequest request;
  request.argv = std::move(start.argv);
  request.env = std::move(start.env);
  request.cwd = process.workdir;
  const auto said = sys::run_command(std::move(request), std::chrono::seconds(20));
  if (!said) return {{"words", said.error().first_message()}};
  if (said->timed_out) return {{"words", "it did not exit within 20 s"}};
  if (said->status.ok()) return json::object();
  return {{"words", fmt::format("{}: {}", said->status.str(), text::printable(text::trim(said->err)))}};
}

const Registered<Inquiry> container_inquiry{{
    .name = kContainer,
    .deadline = std::chrono::seconds(20),  // an image may have to be mounted first
    .of = Inquiry::Of::roles,
    .arguments = preloaded,
    .concerns = has_container,
    .otherwise = try_without_probe,
}};

}  // namespace
}  // namespace nlaunch::preflight
