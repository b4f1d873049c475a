#include "cli/preflight_output.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/exit_code.h"
#include "base/json.h"
#include "cli/preflight.h"
#include "report/preflight_html.h"
#include "report/preflight_prometheus.h"
#include "sys/files.h"

namespace nlaunch::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSave = "save";
constexpr std::string_view kCompare = "compare";

/// Why nothing can be written there, or nothing.
Result<void> look_at(const std::string& path) {
  if (path.empty()) return {};
  std::error_code ignored;
  const auto folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  if (fs::is_directory(path, ignored))
    return failure("preflight.output", "'{}' is a folder: name a file in it", path);
  if (!fs::is_directory(folder, ignored))
    return failure("preflight.output", "'{}' cannot be written: there is no folder '{}'", path,
                   folder.string());
  const bool replaced = !fs::exists(path, ignored) || fs::is_regular_file(path, ignored);
  if (!replaced && ::access(path.c_str(), W_OK) != 0)
    return failure("preflight.output", "'{}' cannot be written: {}", path, std::strerror(errno));
  if (replaced && ::access(folder.c_str(), W_OK) != 0)
    return failure("preflight.output", "'{}' cannot be written: no right to write in '{}'", path,
                   folder.string());
  return {};
}

bool wrote(const Result<void>& result) {
  if (!result) say(render(result.error()));
  return result.has_value();
}

}  // namespace

void add_output_options(CLI::App& command, OutputArgs& args) {
  command.add_flag("--json", args.json, "As JSON");
  command.add_flag("--strict", args.strict, "Exit code 1 for warnings");
  command.add_option("--html", args.html, "Write a page with everything that was found")->type_name("FILE");
  command.add_option("--prometheus", args.prometheus, "Write metrics for node_exporter's textfile collector")
      ->type_name("FILE");
  command
      .add_option("--baseline", args.baseline,
                  "Save the figures, or compare them: 5 % worse is a warning, 20 % a failure")
      ->expected(2)
      ->type_name("{save,compare} FILE")
      ->each([first = true](const std::string& word) mutable {
        if (std::exchange(first, false) && word != kSave && word != kCompare) {
          throw CLI::ValidationError(fmt::format("'{}' is neither 'save' (FILE) nor 'compare' (FILE)", word));
        }
      });
}

int code_of(preflight::Status verdict, bool strict) {
  switch (verdict) {
    case preflight::Status::fail:
      return exit_code::preflight_failed;
    case preflight::Status::unknown:
      return exit_code::preflight_unknown;
    case preflight::Status::warn:
      return strict ? exit_code::preflight_warned : exit_code::ok;
    case preflight::Status::pass:
    case preflight::Status::skip:
      return exit_code::ok;
  }
  return exit_code::internal;
}

Result<Output> Output::open(const OutputArgs& args) {
  Output out(args);
  std::vector<std::string> files{args.html, args.prometheus};
  if (!args.baseline.empty() && args.baseline.front() == kSave) files.push_back(args.baseline.back());
  for (const auto& file : files) {
    if (const auto fit = look_at(file); !fit) return std::unexpected(fit.error());
  }
  if (args.baseline.empty() || args.baseline.front() == kSave) return out;
  auto baseline = preflight::read_baseline(args.baseline.back());
  if (!baseline) return std::unexpected(baseline.error());
  out.baseline_ = std::move(*baseline);
  return out;
}

void Output::judge(preflight::Report& report) const {
  if (!baseline_) return;
  for (auto& row : preflight::compare(*baseline_, report, args_->baseline.back()))
    report.rows.push_back(std::move(row));
  report.verdict = preflight::worst(report.rows);
}

bool Output::write(const preflight::Report& report) const {
  bool all = true;
  if (!args_->html.empty()) all = wrote(sys::write_named_file(args_->html, report::preflight_html(report)));
  if (!args_->prometheus.empty()) {
    const auto text = report::preflight_prometheus(report);
    all = wrote(sys::write_named_file(args_->prometheus, text)) && all;
  }
  if (!args_->baseline.empty() && !baseline_) all = save_baseline(report) && all;
  return all;
}

/// What is broken would pass for well from then on.
bool Output::save_baseline(const preflight::Report& report) const {
  const auto& path = args_->baseline.back();
  const auto baseline = preflight::baseline_of(report);
  if (report.verdict == preflight::Status::fail) {
    say(fmt::format("nlaunch preflight: the baseline '{}' was not saved: a check failed\n", path));
    return false;
  }
  if (baseline.values.empty()) {
    say(
        fmt::format("nlaunch preflight: the baseline '{}' was not saved: nothing was measured; --level "
                    "standard measures groups of GPUs, --level deep also links and GPUs\n",
                    path));
    return false;
  }
  return wrote(sys::write_named_file(path, json_text(preflight::to_json(baseline), 2) + "\n"));
}

int Output::finish(const preflight::Report& report, const Context& context) const {
  print_report(report, args_->json, context);
  const bool written = write(report);
  const int code = code_of(report.verdict, args_->strict);
  return code == exit_code::ok && !written ? exit_code::bad_input : code;
}

}  // namespace nlaunch::cli
