#include "cli/preflight_output.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/exit_code.h"
#include "base/format.h"
#include "base/json.h"
#include "preflight/report/report_json.h"
#include "report/preflight_html.h"
#include "report/preflight_prometheus.h"
#include "report/preflight_text.h"
#include "session/check.h"
#include "sys/files.h"

namespace nlaunch::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSave = "save";
constexpr std::string_view kCompare = "compare";

/// Why the file cannot be written; empty if it can.
Result<void> look_at(const std::string& path) {
  if (path.empty()) return {};
  std::error_code ignored;
  const auto folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  if (fs::is_directory(path, ignored))
    return failure("preflight.output", "'{}' is a directory: specify a file in it", path);
  if (!fs::is_directory(folder, ignored))
    return failure("preflight.output", "cannot write '{}': directory '{}' does not exist", path,
                   folder.string());
  const bool replaced = !fs::exists(path, ignored) || fs::is_regular_file(path, ignored);
  if (!replaced && ::access(path.c_str(), W_OK) != 0)
    return failure("preflight.output", "cannot write '{}': {}", path, std::strerror(errno));
  if (replaced && ::access(folder.c_str(), W_OK) != 0)
    return failure("preflight.output", "cannot write '{}': no write permission in '{}'", path,
                   folder.string());
  return {};
}

bool wrote(const Result<void>& result, const report::Console& console) {
  if (!result) console.error(result.error());
  return result.has_value();
}

}  // namespace

void add_output_options(Command command, OutputArgs& args) {
  command.flag("--json", args.json, "Print JSON");
  command.flag("--strict", args.strict, "Exit with code 1 on warnings");
  command.option("--html", args.html, "Write an HTML page with all results").value_name("FILE");
  command.option("--prometheus", args.prometheus, "Write metrics for node_exporter's textfile collector")
      .value_name("FILE");
  command
      .option("--baseline", args.baseline,
              "Save the measurements, or compare with saved ones: 5 % worse is a warning, 20 % a failure")
      .words(2)
      .value_name("{save,compare} FILE")
      .each([first = true](const std::string& word) mutable {
        if (std::exchange(first, false) && word != kSave && word != kCompare) {
          wrong_usage(fmt::format("expected 'save' or 'compare' before FILE, got '{}'", word));
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
  std::vector<std::string> files{args.html, args.prometheus, args.trace};
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
  preflight::explain_by_users(report.rows);
  report.verdict = preflight::worst(report.rows);
}

bool Output::write(const preflight::Report& report, const report::Console& console) const {
  bool all = true;
  if (!args_->html.empty())
    all = wrote(sys::write_named_file(args_->html, report::preflight_html(report)), console);
  if (!args_->prometheus.empty()) {
    const auto text = report::preflight_prometheus(report);
    all = wrote(sys::write_named_file(args_->prometheus, text), console) && all;
  }
  if (!args_->trace.empty())
    all = wrote(sys::write_named_file(args_->trace, timeline_.trace()), console) && all;
  if (!args_->baseline.empty() && !baseline_) all = save_baseline(report, console) && all;
  return all;
}

/// A baseline with a fault in it would make the fault pass from then on.
bool Output::save_baseline(const preflight::Report& report, const report::Console& console) const {
  const auto& path = args_->baseline.back();
  const auto baseline = preflight::baseline_of(report);
  if (report.verdict == preflight::Status::fail) {
    console.say(fmt::format("nlaunch preflight: the baseline '{}' was not saved: a check failed\n", path));
    return false;
  }
  if (baseline.values.empty()) {
    console.say(
        fmt::format("nlaunch preflight: the baseline '{}' was not saved: nothing was measured; --level "
                    "standard measures groups of GPUs, --level deep also links and GPUs\n",
                    path));
    return false;
  }
  return wrote(sys::write_named_file(path, json_text(preflight::to_json(baseline), 2) + "\n"), console);
}

int Output::finish(const preflight::Report& report, const Context& context) const {
  print_report(report, args_->json, context);
  const bool written = write(report, context.console);
  const int code = code_of(report.verdict, args_->strict);
  return code == exit_code::ok && !written ? exit_code::bad_input : code;
}

Result<preflight::Report> read_report(const std::string& path) {
  constexpr std::uint64_t kMost = 256U << 20U;
  const auto content = sys::read_regular_file(path, kMost);
  if (!content) return std::unexpected(content.error());
  const auto no_report = [&](std::string_view why) {
    Diagnostics out;
    out.error("preflight.report", {}, fmt::format("'{}' is not a preflight report: {}", path, why)).hint =
        "use attempt-0/preflight.json of a run directory, or the output of nlaunch preflight --json";
    return std::unexpected(std::move(out));
  };
  const auto report = parse_json(*content);
  if (const auto known = check_format(report, formats::kPreflight, path); !known) {
    const auto why = known.error().first_message();
    if (!why.starts_with(path + ": ")) return std::unexpected(known.error());  // from a newer nlaunch
    return no_report(why.substr(path.size() + 2));
  }
  try {
    return preflight::report_from_json(report);
  } catch (const std::exception& error) {
    return no_report(error.what());
  }
}

void print_report(const preflight::Report& report, bool json, const Context& context) {
  if (json) return context.console.result(json_text(preflight::to_json(report), 2) + "\n");
  if (!context.console.quiet)
    context.console.result(report::preflight_table(report, context.console.result_paint) + "\n");
  context.console.result(report::preflight_text(report, context.console.result_paint));
}

}  // namespace nlaunch::cli
