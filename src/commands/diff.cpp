#include "base/exit_code.h"
#include "base/json.h"
#include "cli/console.h"
#include "record/compare.h"
#include "report/compare_text.h"
#include "session/run_view.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

/// As diff(1).
constexpr int kDifferent = 1;

struct DiffArgs {
  std::string a;
  std::string b;
  std::string runs_dir = "runs";
  bool json = false;
};

int run_diff(const DiffArgs& args, const Context& context) {
  std::vector<record::RunFiles> runs;
  for (const auto& run : {args.a, args.b}) {
    const auto view = view_run(args.runs_dir, run);
    if (!view) return context.console.error(view.error());
    auto files = record::read_run(std::filesystem::canonical(view->folder));
    if (!files) return context.console.error(files.error());
    if (!files->damaged.empty()) return context.console.error(files->damaged);
    runs.push_back(std::move(*files));
  }
  const auto& a = runs.front();
  const auto& b = runs.back();
  const auto comparison = record::compare(a, b);
  if (args.json) {
    context.console.result(json_text(record::to_json(comparison, a, b), 2) + "\n");
  } else {
    context.console.result(report::compare_text(comparison, a, b, context.console.result_paint));
  }
  return comparison.equal() ? exit_code::ok : kDifferent;
}

void add_diff(Command program, Context& context) {
  auto args = std::make_shared<DiffArgs>();
  auto command = program.subcommand("diff", "Compare two runs; exit code 1 if they differ")
                     .examples({"nlaunch diff grpo 20260131-120000-4711", "nlaunch diff grpo sft --json"});
  command.option("RUN", args->a, kRunHelp).required();
  command.option("OTHER", args->b, "Run to compare with").required();
  command.option("--runs-dir", args->runs_dir, "Directory that contains the runs [default: runs]");
  command.flag("--json", args->json, "Print JSON");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_diff(*args, context); }; });
}

const Registered<cli::CommandEntry> diff_command{{"diff", 180, add_diff, CommandGroup::see}};

}  // namespace

}  // namespace nlaunch::commands
