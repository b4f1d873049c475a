#include "session/run_request.h"

#include "base/exit_code.h"
#include "session/run_view.h"
#include "supervise/run_attempt.h"

namespace nlaunch::session {

int ask_run(const std::string& runs_dir, const std::string& run, const supervise::RunRequest& request,
            const Caller& caller) {
  /// A run polls every two seconds, and a file server may take time to show a new file. To bind another plan,
  /// nodes load their modules again.
  const Duration to_hear =
      std::chrono::seconds(request.kind == supervise::RunRequest::Kind::update ? 180 : 20);
  const auto view = view_run(runs_dir, run);
  if (!view) return caller.console.error(view.error());
  if (const auto own = check_owner(*view); !own) return caller.console.error(own.error());
  const auto refuse = [&](const std::string& why, int code) {
    caller.console.say(fmt::format("nlaunch {}: {}\n", name_of(request.kind), why));
    return code;
  };
  if (!view->alive)
    return refuse(fmt::format("run {} is not running: {}", view->id, view->state), exit_code::bad_input);
  const auto answer =
      supervise::ask(supervise::attempt_folder(view->folder, view->attempt), request, to_hear);
  if (!answer) return caller.console.error(answer.error());
  if (!*answer) {
    return refuse(fmt::format("run {} did not respond within {}: {}", view->id, format_duration(to_hear),
                              request.kind == supervise::RunRequest::Kind::update
                                  ? "its nodes may still be receiving the plan; check with `nlaunch ps`"
                                  : "its processes may not have started yet, or it is ending"),
                  exit_code::internal);
  }
  if (!(*answer)->granted) return refuse((*answer)->text, exit_code::bad_input);
  caller.console.result(fmt::format("run {}: {}\n", view->id, (*answer)->text));
  return exit_code::ok;
}

}  // namespace nlaunch::session
