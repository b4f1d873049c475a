#include <fmt/format.h>

#include "base/text.h"
#include "plan/container.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

constexpr auto kCheck = "container";

/// Nothing, or the container, runs there.
Row judge_silent(const std::string& role, const Answer& answer, const plan::Role& of) {
  const auto words = answer.said.value("words", "");
  if (!words.empty()) {
    return failed(kCheck, role, fmt::format("no program starts in it: {}", words), "a container that starts",
                  {fmt::format("try it by hand, in {}: {} true", of.workdir, text::shell_join(of.wrapper))});
  }
  return unknown(
      kCheck, role,
      fmt::format("programs start in it, but nlaunch-probe does not, and so nothing is checked there: "
                  "{}; it needs the glibc (2.28) and the file that nlaunch mounts",
                  answer.error));
}

Row judge_answer(const plan::Role& role, const json& said, bool needs_gpus) {
  for (const auto& [file, why] : said.value("unreadable", std::map<std::string, std::string>())) {
    return failed(kCheck, role.name, fmt::format("'{}' cannot be read in it: {}", file, why),
                  "the files that the role preloads",
                  {fmt::format("mount it, or take out what hides it: {}", text::shell_join(role.wrapper))});
  }
  if (needs_gpus && !said.value("gpus", false)) {
    return failed(kCheck, role.name, "it has no GPU: /dev/nvidiactl is not there", "the GPUs of the role",
                  {"`apptainer exec --nv`; `bwrap --dev-bind /dev /dev`; enroot with its hook 98-nvidia.sh"});
  }
  return passed(kCheck, role.name,
                fmt::format("{}, glibc {}", said.value("os", "no /etc/os-release"), said.value("glibc", "")));
}

}  // namespace

std::vector<Row> check_container(const NodeObservations& observations) {
  std::vector<Row> rows;
  for (const auto& [index, process] : observations.first_of_roles()) {
    const auto& role = observations.plan.roles[index];
    const auto* answer = observations.answer("container/" + role.name);
    if (answer == nullptr) continue;
    rows.push_back(answer->error.empty()
                       ? judge_answer(role, answer->said, observations.has_gpus() && role.gpus > 0)
                       : judge_silent(role.name, *answer, role));
  }
  return rows;
}

}  // namespace nlaunch::preflight
