#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "preflight/report/baseline.h"
#include "preflight/timeline.h"

/// What happens to a report besides being kept in the run directory: printing it, and writing the requested
/// files.
namespace nlaunch::cli {

struct OutputArgs {
  bool json = false;
  bool strict = false;
  std::string html;
  std::string prometheus;
  std::string trace;
  std::vector<std::string> baseline;  ///< "save" or "compare" followed by the file; or empty
};

void add_output_options(Command command, OutputArgs& args);

/// The exit code for a verdict.
int code_of(preflight::Status verdict, bool strict);

class Output {
 public:
  /// Called before anything is checked: a baseline that cannot be read or a file that cannot be written is an
  /// error. `args` must outlive this object.
  static Result<Output> open(const OutputArgs& args);

  /// For the checks: what takes how long in them, if it is to be written. Null: it is not.
  [[nodiscard]] preflight::Timeline* timeline() { return args_->trace.empty() ? nullptr : &timeline_; }
  /// Compares the report with the baseline and updates its verdict.
  void judge(preflight::Report& report) const;
  /// Writes the files. On failure, prints the error and returns false.
  [[nodiscard]] bool write(const preflight::Report& report, const report::Console& console) const;
  /// Prints the report to standard output and writes the files. Returns the exit code.
  [[nodiscard]] int finish(const preflight::Report& report, const Context& context) const;

 private:
  explicit Output(const OutputArgs& args) : args_(&args) {}
  [[nodiscard]] bool save_baseline(const preflight::Report& report, const report::Console& console) const;

  const OutputArgs* args_;
  std::optional<preflight::Baseline> baseline_;
  preflight::Timeline timeline_;
};

/// Reads a report that was saved as JSON.
Result<preflight::Report> read_report(const std::string& path);

/// Prints a report to standard output.
void print_report(const preflight::Report& report, bool json, const Context& context);

}  // namespace nlaunch::cli
