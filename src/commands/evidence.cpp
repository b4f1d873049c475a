#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/load.h"
#include "evidence/read.h"
#include "evidence/spec.h"
#include "launch/install.h"
#include "launch/job/step.h"
#include "launch/run_dir/run_folder.h"
#include "report/verdict_text.h"
#include "session/run_view.h"
#include "supervise/events.h"
#include "supervise/investigation.h"
#include "supervise/run_attempt.h"
#include "sys/command.h"
#include "sys/files.h"
#include "sys/proc.h"

// `nlaunch evidence`: what the processes of a run are doing now, and which one blocks the others.
namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

namespace fs = std::filesystem;

struct EvidenceArgs {
  std::string run;
  std::string runs_dir = "runs";
  bool json = false;
};

evidence::Subject subject_of(const ProcessView& process, const fs::path& attempt) {
  evidence::Subject subject;
  subject.name = process.name;
  subject.pid = process.alive ? process.pid : 0;
  subject.ended = process.alive ? "" : process.state;
  subject.log = (attempt / "logs" / (process.name + ".log")).string();
  const auto environment = process.alive ? sys::initial_environment(process.pid) : std::vector<std::string>{};
  const auto value = [&](const char* name) { return std::string(sys::env_value(environment, name)); };
  subject.ras = value("NCCL_RAS_ADDR");
  subject.recorder_pipe = value("TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
  subject.recorder_dump = value("TORCH_FR_DUMP_TEMP_FILE");
  if (subject.recorder_dump.empty()) subject.recorder_dump = value("TORCH_NCCL_DEBUG_INFO_TEMP_FILE");
  return subject;
}

/// For the processes on this machine.
evidence::Spec spec_of(const RunView& view) {
  evidence::Spec spec;
  const auto attempt = supervise::attempt_folder(view.folder, view.attempt);
  spec.folder = fs::absolute(attempt / "evidence" / supervise::utc_stamp()).string();
  spec.host = launch::node_name(sys::own_environment());
  spec.probe = launch::find_install().probe;
  spec.ending = view.ending;
  for (const auto& process : view.processes) {
    if (process.here) spec.processes.push_back(subject_of(process, attempt));
  }
  const auto plan = launch::plan_of_run(view.folder);
  if (!plan) return spec;
  for (const auto& secret : plan->secrets) spec.secrets.push_back(secret.name);
  for (auto& subject : spec.processes) {
    const auto process = std::ranges::find_if(
        plan->processes, [&](const auto& one) { return plan->name_of(one) == subject.name; });
    if (process != plan->processes.end() && process->rank >= 0) subject.rank = process->rank;
  }
  return spec;
}

/// In a separate process: what hangs with the run must not hang this one.
Result<void> collect_apart(const evidence::Spec& spec) {
  const auto all = fs::path(spec.folder).parent_path();
  std::error_code error;
  if (fs::is_symlink(all, error))
    return failure("evidence.collect", "{} is a symlink: refusing to write through it",
                   text::printable(all.string()));
  const sys::UniqueFd file(::memfd_create("collect", MFD_CLOEXEC));
  if (!file || !sys::write_all(file.get(), json_text(to_json(spec))) || ::lseek(file.get(), 0, SEEK_SET) != 0)
    return failure("evidence.collect", "cannot pass the request to nlaunch collect");
  sys::SpawnRequest request;
  request.argv = {launch::find_install().program, "collect", "-"};
  request.env = sys::own_environment();
  request.in = file.get();
  constexpr Duration kToEnd = std::chrono::seconds(5);
  const auto said = sys::run_command(std::move(request), spec.deadline + kToEnd);
  if (!said) return std::unexpected(said.error());
  if (said->timed_out || !said->status.ok()) {
    return failure("evidence.collect", "nlaunch collect {}: {}",
                   said->timed_out ? "timed out" : said->status.str(), said->err);
  }
  return {};
}

int tell(const std::string& folder, const EvidenceArgs& args, const Context& context) {
  const auto judged = evidence::judge_folder(folder);
  if (!judged) return context.console.error(judged.error());
  if (args.json) {
    context.console.result(json_text(to_json(judged->verdict, judged->evidence), 2) + "\n");
    return exit_code::ok;
  }
  context.console.result(
      report::verdict_text(judged->verdict, judged->evidence, context.console.result_paint));
  context.console.result(fmt::format("evidence: {}\n", folder));
  return exit_code::ok;
}

/// A directory of evidence has one directory for each host.
bool is_evidence(const fs::path& folder) {
  std::error_code error;
  for (const auto& host : fs::directory_iterator(folder, error)) {
    if (fs::exists(host.path() / "collected.json", error)) return true;
  }
  return false;
}

/// The evidence that the run has collected since it had `before` collections. Only the name of the directory
/// in the event is used: what is written there must stay in the run directory.
std::optional<std::string> taken(const RunView& view, std::size_t before) {
  const auto events = supervise::read_events(view.folder / "events.jsonl");
  if (!events) return std::nullopt;
  std::vector<fs::path> names;
  for (const auto& event : *events) {
    if (event.value("event", "") == "evidence")
      names.push_back(fs::path(event.value("folder", "")).filename());
  }
  if (names.size() <= before) return std::nullopt;
  return supervise::attempt_folder(view.folder, view.attempt) / "evidence" / names[before];
}

/// Waits until `ready` returns a result, at most `limit`.
template <class Ready>
auto wait_for(Duration limit, const Ready& ready) -> decltype(ready()) {
  constexpr std::chrono::milliseconds kBetween{100};
  const auto end = std::chrono::steady_clock::now() + limit;
  auto found = ready();
  while (!found && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kBetween);
    found = ready();
  }
  return found;
}

/// Asks the run's own nlaunch to collect evidence on all of its nodes. Nothing if it does not respond.
std::optional<std::string> ask_the_run(const RunView& view) {
  constexpr Duration kToHear = std::chrono::seconds(8);
  constexpr Duration kToCollect = std::chrono::seconds(40);
  std::size_t before = 0;
  while (taken(view, before)) ++before;
  const auto wanted = supervise::attempt_folder(view.folder, view.attempt) / supervise::kEvidenceWanted;
  if (!sys::write_file_atomically(wanted, "")) return std::nullopt;
  const auto heard = wait_for(kToHear, [&] { return !fs::exists(wanted) || taken(view, before); });
  if (heard) return wait_for(kToCollect, [&] { return taken(view, before); });
  std::error_code ignored;
  fs::remove(wanted, ignored);
  return std::nullopt;
}

int run_evidence(const EvidenceArgs& args, const Context& context) {
  if (is_evidence(args.run)) return tell(args.run, args, context);
  const auto view = view_run(args.runs_dir, args.run);
  if (!view) return context.console.error(view.error());
  // A run that is ending does not inspect its processes any more.
  if (view->alive && view->ending.empty()) {
    if (const auto folder = ask_the_run(*view)) return tell(*folder, args, context);
    context.console.say("nlaunch evidence: the nlaunch of the run does not respond\n");
  }
  const auto spec = spec_of(*view);
  const bool any = std::ranges::any_of(spec.processes, [](const auto& subject) { return subject.pid > 0; });
  if (!any) {
    context.console.say(fmt::format("nlaunch evidence: no process of run {} is alive on this host: {}\n",
                                    view->id, view->state));
    return exit_code::bad_input;
  }
  if (std::ranges::any_of(view->processes, [](const auto& process) { return !process.here; }))
    context.console.say(
        "nlaunch evidence: inspecting only the processes on this host; run the command on the other hosts "
        "for theirs\n");
  if (const auto collected = collect_apart(spec); !collected) return context.console.error(collected.error());
  return tell(spec.folder, args, context);
}

void add_evidence(Command program, Context& context) {
  auto args = std::make_shared<EvidenceArgs>();
  auto command = program
                     .subcommand("evidence",
                                 "Show what the processes of a run are doing and which one blocks the others")
                     .examples({"nlaunch evidence grpo", "nlaunch evidence grpo --json"});
  command.option("RUN", args->run, kRunHelp).required();
  command.option("--runs-dir", args->runs_dir, "Directory that contains the runs [default: runs]");
  command.flag("--json", args->json, "Print JSON");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_evidence(*args, context); }; });
}

const Registered<cli::CommandEntry> evidence_command{{"evidence", 160, add_evidence, CommandGroup::see}};

}  // namespace

}  // namespace nlaunch::commands
