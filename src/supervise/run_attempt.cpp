#include "supervise/run_attempt.h"

#include <fmt/format.h>

#include "supervise/supervisor.h"

namespace nlaunch::supervise {

std::filesystem::path attempt_folder(const std::filesystem::path& run_folder, unsigned number) {
  return run_folder / fmt::format("attempt-{}", number);
}

Outcome run_attempt(const Attempt& attempt) {
  sys::Loop loop;
  auto* output = attempt.terminal == nullptr ? nullptr : &attempt.terminal->output();
  const auto logs = attempt_folder(attempt.run_folder, attempt.number) / "logs";
  Supervisor supervisor(loop,
                        {.plan = attempt.plan,
                         .attempt = attempt.number,
                         .logs = logs,
                         .hosts = {},
                         .events = attempt.events,
                         .guardian = attempt.guardian,
                         .messages = attempt.terminal == nullptr ? nullptr : &attempt.terminal->messages(),
                         .output = output,
                         .judge = attempt.judge,
                         .address_of = attempt.address_of,
                         .rebinder = attempt.rebinder});
  LocalBackend backend(loop, supervisor.rules(),
                       {attempt.node, logs, output, attempt.color, 0, attempt.hooks, attempt.plan.watch,
                        attempt.plan.checkpoint ? attempt.plan.checkpoint->saved : ""},
                       [&](const ProcessEvent& process_event) { supervisor.on(process_event); });
  return supervisor.run(backend);
}

}  // namespace nlaunch::supervise
