#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/exit_code.h"
#include "cli/console.h"
#include "session/run_view.h"
#include "supervise/lines.h"
#include "supervise/run_attempt.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

namespace fs = std::filesystem;

struct LogsArgs {
  std::string run;
  std::string role;
  std::string runs_dir = "runs";
  std::optional<unsigned> attempt;
  bool follow = false;
};

/// One log file that is read as it grows.
class Tail {
 public:
  Tail(const fs::path& file, std::size_t width, std::size_t hue, supervise::LinePrinter::Style style,
       const report::Console& console)
      : fd_(sys::open_regular_file(file, sys::Links::refused).value_or(sys::UniqueFd())),
        printer_(file.stem().string(), width, hue, style),
        console_(&console) {}

  /// Prints what is new; false when there was nothing.
  bool advance() {
    std::array<char, 65536> block;
    const auto got = ::read(fd_.get(), block.data(), block.size());
    if (got <= 0) return false;
    std::string out;
    printer_.feed({block.data(), static_cast<std::size_t>(got)}, out);
    console_->result(out);
    return true;
  }

  void finish() {
    std::string out;
    printer_.finish(out);
    console_->result(out);
  }

 private:
  sys::UniqueFd fd_;
  supervise::LinePrinter printer_;
  const report::Console* console_;
};

std::vector<fs::path> log_files(const RunView& view, unsigned attempt, const std::string& role) {
  std::vector<fs::path> files;
  const auto attempt_folder = supervise::attempt_folder(view.folder, attempt);
  if (!sys::is_folder_itself(attempt_folder) || !sys::is_folder_itself(attempt_folder / "logs")) return files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(attempt_folder / "logs", error)) {
    const auto name = entry.path().stem().string();
    std::error_code gone;
    if (!fs::is_regular_file(entry.symlink_status(gone))) continue;
    if (role.empty() || name == role || name.starts_with(role + ".")) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

int run_logs(const LogsArgs& args, const Context& context) {
  auto view = view_run(args.runs_dir, args.run);
  if (!view) return context.console.error(view.error());
  if (args.attempt.value_or(0) > view->attempt) {
    context.console.say(fmt::format("nlaunch logs: run {} has no attempt {}; its last is {}\n", view->id,
                                    *args.attempt, view->attempt));
    return exit_code::usage;
  }
  const auto files = log_files(*view, args.attempt.value_or(view->attempt), args.role);
  if (files.empty()) {
    context.console.say(fmt::format("nlaunch logs: run {} has no logs{}\n", view->id,
                                    args.role.empty() ? "" : " of " + args.role));
    return exit_code::bad_input;
  }
  std::size_t width = 0;
  for (const auto& file : files) width = std::max(width, file.stem().string().size());
  const auto style = context.console.result_paint.on() ? supervise::LinePrinter::Style::coloured
                                                       : supervise::LinePrinter::Style::plain;
  std::vector<Tail> tails;
  for (std::size_t i = 0; i < files.size(); ++i)
    tails.emplace_back(files[i], width, i, style, context.console);
  constexpr std::chrono::milliseconds kBetween{200};
  for (bool alive = true; alive;) {
    alive = args.follow && view && view->alive;
    for (auto& tail : tails) {
      while (tail.advance()) {
      }
    }
    if (!alive) break;
    std::this_thread::sleep_for(kBetween);
    view = view_run(args.runs_dir, view->folder.string());
  }
  for (auto& tail : tails) tail.finish();
  return exit_code::ok;
}

void add_logs(Command program, Context& context) {
  auto args = std::make_shared<LogsArgs>();
  auto command = program.subcommand("logs", "The output of a run's processes");
  command.option("RUN", args->run, kRunHelp).required();
  command.option("--role", args->role,
                 "A role, a replica or a process of it (ROLE, ROLE.INDEX, ROLE.INDEX.RANK)");
  command.option("--runs-dir", args->runs_dir, "Where run directories are (runs)");
  command.option("--attempt", args->attempt, "An earlier start of the job, from 0 (the last)");
  command.flag("-f,--follow", args->follow, "Go on until the run ends");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_logs(*args, context); }; });
}

const Registered<cli::CommandEntry> logs_command{{"logs", 130, add_logs}};

}  // namespace

}  // namespace nlaunch::commands
