#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "preflight/report/baseline.h"

/// What becomes of a report besides a run directory: what is printed, and files that were asked for.
namespace nlaunch::cli {

struct OutputArgs {
  bool json = false;
  bool strict = false;
  std::string html;
  std::string prometheus;
  std::vector<std::string> baseline;  ///< "save" or "compare", and the file; or nothing
};

void add_output_options(Command command, OutputArgs& args);

/// The exit code that a report's verdict is.
int code_of(preflight::Status verdict, bool strict);

class Output {
 public:
  /// Before anything is checked: a baseline that cannot be read, or a file that cannot be written, is an
  /// error. `args` outlives this.
  static Result<Output> open(const OutputArgs& args);

  /// Holds the report against the baseline, and its verdict with it.
  void judge(preflight::Report& report) const;
  /// Writes the files; what cannot be written is said, and false.
  [[nodiscard]] bool write(const preflight::Report& report, const report::Console& console) const;
  /// The report to standard output, and the files. The exit code.
  [[nodiscard]] int finish(const preflight::Report& report, const Context& context) const;

 private:
  explicit Output(const OutputArgs& args) : args_(&args) {}
  [[nodiscard]] bool save_baseline(const preflight::Report& report, const report::Console& console) const;

  const OutputArgs* args_;
  std::optional<preflight::Baseline> baseline_;
};

/// A report that was saved as JSON.
Result<preflight::Report> read_report(const std::string& path);

/// Prints a report to standard output.
void print_report(const preflight::Report& report, bool json, const Context& context);

}  // namespace nlaunch::cli
