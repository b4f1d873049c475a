#include "commands/run_submit_beaker.h"

#include <nlohmann/json.hpp>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/beaker_job.h"
#include "launch/run_folder.h"
#include "plan/json.h"
#include "report/plan_text.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;

int submit_beaker(const plan::Plan& plan, const SubmitOptions& options, const Context& context) {
  const auto spec = launch::make_beaker_spec(plan, options.arguments);
  if (!spec) return context.console.error(spec.error());
  const auto paths = launch::make_run_folder(options.runs_dir, plan.name);
  if (!paths) return context.console.error(paths.error());
  const auto file = paths->folder / "beaker.yaml";
  auto saved = sys::write_file_atomically(file, *spec);
  if (saved)
    saved = sys::write_file_atomically(paths->folder / "plan.json", json_text(plan::to_json(plan), 2) + "\n");
  if (!saved) return context.console.error(saved.error());
  const auto command = launch::beaker_command(plan, file, context.environment);
  if (!command.program) {
    context.console.say(fmt::format(
        "nlaunch run: nothing was submitted: there is no {} on PATH here. The spec is written; where "
        "there is one, type:\n  {}\n",
        text::join(plan.beaker.submit, " and no "), text::shell_join(command.words)));
    return exit_code::usage;
  }
  const auto said = launch::submit_to_beaker(command, context.environment);
  if (!said) return context.console.error(said.error());
  const nlohmann::json job{{"beaker", *said}, {"site", plan.site}};
  if (saved = sys::write_file_atomically(paths->folder / "job.json", json_text(job, 2) + "\n"); !saved)
    context.console.say(render(saved.error()));
  if (!context.console.quiet) {
    context.console.say(fmt::format("{} on {}: {}\n", context.console.paint.bold(plan.name), plan.site,
                                    report::placement_line(plan)));
    context.console.say(fmt::format("{}\nthe spec: {}\n", text::printable(*said), file.string()));
  }
  if (const auto pointed = launch::point_latest(*paths); !pointed)
    context.console.say(render(pointed.error()));
  return exit_code::ok;
}

}  // namespace nlaunch::commands
