#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "report/table.h"

/// What all subcommands share. Only this layer prints: results to standard output, everything else to
/// standard error.
namespace nlaunch::cli {

/// The options that every subcommand takes, and what the called one has to say.
struct Context {
  std::string color = "auto";
  bool quiet = false;
  bool verbose = false;
  std::vector<std::string> environment;  ///< of the caller
  std::function<int()> run;              ///< of the subcommand that was called

  [[nodiscard]] report::Paint out() const;  ///< for standard output
  [[nodiscard]] report::Paint err() const;  ///< for standard error
};

/// Prints to standard output; a reader that has gone away is no failure.
void print(std::string_view text);
/// The exit code of a command that would end with `code`: where print could not write, that is said, and
/// "fine" becomes `internal`.
int code_after_output(int code);
/// Prints to standard error.
void say(std::string_view text);
/// Prints diagnostics to standard error and returns the exit code for wrong input.
int complain(const Context& context, const Diagnostics& diagnostics);

/// One subcommand: adds itself to the app, and sets Context::run when it is called.
struct Subcommand {
  std::string_view name;
  void (*add)(CLI::App& app, Context& context);
};
extern const std::vector<Subcommand> kSubcommands;

void add_run(CLI::App& app, Context& context);
void add_preflight(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
void add_render(CLI::App& app, Context& context);
void add_reference(CLI::App& app, Context& context);
void add_lint(CLI::App& app, Context& context);
void add_diagnose(CLI::App& app, Context& context);
void add_env(CLI::App& app, Context& context);
void add_import(CLI::App& app, Context& context);
void add_sites(CLI::App& app, Context& context);
void add_bundle(CLI::App& app, Context& context);
void add_diff(CLI::App& app, Context& context);
void add_ps(CLI::App& app, Context& context);
void add_logs(CLI::App& app, Context& context);
void add_stop(CLI::App& app, Context& context);
void add_exec(CLI::App& app, Context& context);
void add_schema(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);
void add_help(CLI::App& app, Context& context);
void add_agent(CLI::App& app, Context& context);
void add_evidence(CLI::App& app, Context& context);
void add_collect(CLI::App& app, Context& context);

}  // namespace nlaunch::cli
