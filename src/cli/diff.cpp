#include "base/exit_code.h"
#include "base/json.h"
#include "cli/context.h"
#include "cli/run_view.h"
#include "record/compare.h"
#include "report/compare_text.h"

namespace nlaunch::cli {
namespace {

/// As diff(1).
constexpr int kDifferent = 1;

struct Args {
  std::string a;
  std::string b;
  std::string runs_dir = "runs";
  bool json = false;
};

int run(const Args& args, const Context& context) {
  std::vector<record::RunFiles> runs;
  for (const auto& run : {args.a, args.b}) {
    const auto view = view_run(args.runs_dir, run);
    if (!view) return complain(context, view.error());
    auto files = record::read_run(std::filesystem::canonical(view->folder));
    if (!files) return complain(context, files.error());
    runs.push_back(std::move(*files));
  }
  const auto& a = runs.front();
  const auto& b = runs.back();
  const auto comparison = record::compare(a, b);
  if (args.json) {
    print(json_text(record::to_json(comparison, a, b), 2) + "\n");
  } else {
    print(report::compare_text(comparison, a, b, context.out()));
  }
  return comparison.equal() ? exit_code::ok : kDifferent;
}

}  // namespace

void add_diff(CLI::App& app, Context& context) {
  auto args = std::make_shared<Args>();
  auto* command =
      app.add_subcommand("diff", "What differs between two runs; exit code 1 where something does");
  command->add_option("RUN", args->a, kRunHelp)->required();
  command->add_option("OTHER", args->b, "The run to compare it with")->required();
  command->add_option("--runs-dir", args->runs_dir, "Where run directories are (runs)");
  command->add_flag("--json", args->json, "As JSON");
  command->callback([args, &context] { context.run = [args, &context] { return run(*args, context); }; });
}

}  // namespace nlaunch::cli
