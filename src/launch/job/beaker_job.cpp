#include "launch/job/beaker_job.h"

#include <nlohmann/json.hpp>

#include "base/packed.h"
#include "base/text.h"
#include "emit/beaker_spec.h"
#include "launch/job/job_script.h"
#include "plan/json.h"
#include "sys/command.h"
#include "sys/spawn.h"

namespace nlaunch::launch {

Result<std::string> make_beaker_spec(const plan::Plan& plan, const std::vector<std::string>& arguments) {
  constexpr std::size_t kLongest = 128U
                                   << 10U;  // of a variable including its name (execve(2), MAX_ARG_STRLEN)
  const auto text = frozen_plan_text(plan);
  if (!text) return std::unexpected(text.error());
  auto packed = pack(*text);
  const auto size = emit::kPlanVariable.size() + 1 + packed.size() + 1;
  if (size > kLongest) {
    return failure("launch.plan-size",
                   "the plan takes {} KiB, but an environment variable can hold at most {} KiB: use fewer "
                   "processes or shorter texts",
                   (size >> 10U) + 1, kLongest >> 10U);
  }
  return emit::beaker_spec(plan, {std::move(packed), arguments});
}

Result<plan::Plan> plan_from_variable(const std::string& variable,
                                      const std::vector<std::string>& environment) {
  constexpr std::size_t kLargest = 1U << 30U;
  const auto packed = sys::env_value(environment, variable);
  if (packed.empty())
    return failure("launch.plan", "the variable {} does not hold a plan: it is not set", variable);
  const auto text = unpack(packed, kLargest);
  if (!text)
    return failure("launch.plan", "the variable {} does not hold a plan: it is truncated or something else",
                   variable);
  return plan::from_json(*text, "env:" + variable);
}

BeakerCommand beaker_command(const plan::Plan& plan, const std::filesystem::path& spec,
                             const std::vector<std::string>& environment) {
  const auto& programs = plan.beaker.submit;
  BeakerCommand command;
  for (const auto& program : programs) {
    const auto found = sys::find_program(program, sys::env_value(environment, "PATH"), "");
    if (!found) continue;
    command.program = *found;
    break;
  }
  command.words = {command.program.value_or(programs.front()), "experiment", "create", spec.string()};
  if (!plan.beaker.workspace.empty())
    command.words.insert(command.words.end(), {"--workspace", plan.beaker.workspace});
  return command;
}

Result<std::string> submit_to_beaker(const BeakerCommand& command,
                                     const std::vector<std::string>& environment) {
  constexpr Duration kPatience = std::chrono::minutes(2);
  sys::SpawnRequest request;
  request.argv = command.words;
  request.env = environment;
  const auto said = sys::run_command(std::move(request), kPatience);
  if (!said) return std::unexpected(said.error());
  if (said->timed_out)
    return failure("launch.submit", "{} did not answer within {}", command.words[0],
                   format_duration(kPatience));
  if (said->status.ok()) return std::string(text::trim(said->out.empty() ? said->err : said->out));
  const auto words = text::trim(said->err.empty() ? said->out : said->err);
  Diagnostics diagnostics;
  diagnostics
      .error("launch.submit", {},
             fmt::format("{} {}: {}", command.words[0], said->status.str(), text::printable(words)))
      .hint = "the spec: " + command.words[3];
  return std::unexpected(std::move(diagnostics));
}

}  // namespace nlaunch::launch
