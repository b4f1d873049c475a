#include "record/bundle.h"

#include <array>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/console.h"
#include "diagnose/diagnose.h"
#include "launch/install.h"
#include "launch/machine.h"
#include "preflight/observations.h"
#include "record/extracts.h"
#include "record/versions.h"
#include "report/diagnose_text.h"
#include "report/run_readme.h"
#include "session/interrupts.h"
#include "session/run_view.h"
#include "sys/command.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

namespace fs = std::filesystem;

/// Written by an attempt that failed; the bundle of any other attempt has it next to README.txt.
constexpr const char* kDiagnosis = "diagnosis.json";

struct BundleArgs {
  std::string run;
  std::string runs_dir = "runs";
  std::string output;
  std::string limit = "16MiB";
  bool redact = false;
};

/// A program that shows the hardware of this machine.
struct Tool {
  const char* file;
  std::vector<std::string> argv;
};

record::Extracts machine_extracts(const Context& context) {
  constexpr Duration kDeadline = std::chrono::seconds(10);
  static const std::array<Tool, 3> kTools{{{"machine/nvidia-smi-topo.txt", {"nvidia-smi", "topo", "-m"}},
                                           {"machine/lstopo.txt", {"lstopo-no-graphics", "--of", "console"}},
                                           {"machine/lscpu.txt", {"lscpu"}}}};
  record::Extracts out;
  const auto host = launch::this_host().host;
  for (const auto& [file, argv] : kTools) {
    sys::SpawnRequest request;
    request.argv = argv;
    request.env = context.environment;
    const auto said = sys::run_command(std::move(request), kDeadline);
    if (said && said->status.ok() && !said->timed_out)
      out.emplace_back(file, fmt::format("# {} on {}, when the bundle was made\n{}", text::join(argv, " "),
                                         host, said->out));
  }
  if (const auto machine = launch::discover(launch::find_install().probe); machine && !machine->facts.empty())
    out.emplace_back("machine/probe.json", machine->facts + "\n");
  return out;
}

/// Why the run failed, from its logs: the diagnosis made after the run if there is one, else a new one.
record::Json diagnosis_of(const record::RunFiles& run) {
  if (run.attempts.empty()) return nullptr;
  auto there = record::read_json(run.attempts.back().folder / kDiagnosis);
  if (there.is_object()) return there;
  std::vector<std::string> logs;
  for (const auto& attempt : run.attempts) {
    for (const auto* name : {"logs", "nccl"}) {
      const auto folder = attempt.folder / name;
      if (!sys::is_folder_itself(folder)) continue;
      for (const auto& file : sys::names_in(folder)) {
        std::error_code error;
        if (fs::is_regular_file(fs::symlink_status(folder / file, error))) logs.push_back(folder / file);
      }
    }
  }
  if (logs.empty()) return nullptr;
  diagnose::Options options;
  options.patience = std::chrono::seconds(10);
  options.enough = [] { return Interrupts::received() != 0; };
  return report::diagnose_json(diagnose::diagnose(logs, options));
}

record::Extracts made_for(const record::RunFiles& run, const RunView& view, const Context& context) {
  record::Extracts made;
  const auto diagnosis = diagnosis_of(run);
  auto versions = record::versions_of(run);
  for (auto& here : record::versions_here()) versions.push_back(std::move(here));
  made.emplace_back("README.txt", report::run_readme(run, view.state, diagnosis, versions));
  std::error_code error;
  if (diagnosis.is_object() && !fs::exists(run.attempts.back().folder / kDiagnosis, error))
    made.emplace_back(kDiagnosis, json_text(diagnosis, 2) + "\n");
  made.emplace_back("versions.json", json_text(record::to_json(versions), 2) + "\n");
  for (auto& extracts :
       {record::environment_extracts(run), record::module_extracts(run), machine_extracts(context)})
    made.insert(made.end(), extracts.begin(), extracts.end());
  return made;
}

std::string lines_text(const std::vector<std::uint64_t>& lines) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> out;
  for (std::size_t i = 0; i < std::min(lines.size(), kShown); ++i) out.push_back(std::to_string(lines[i]));
  return text::join(out, ", ");
}

void tell(const record::BundleReport& report, const Context& context) {
  const auto& paint = context.console.paint;
  std::uint64_t unpacked = 0;
  for (const auto& file : report.files) unpacked += file.size;
  std::string out;
  for (const auto& file : report.files) {
    if (file.cut_out > 0)
      out += fmt::format("truncated to head and tail: {} ({} left out; --limit)\n",
                         text::printable(file.path), preflight::size_text(file.cut_out));
  }
  for (const auto& [path, why] : report.left_out)
    out += fmt::format("left out: {}: {}\n", text::printable(path), text::printable(why));
  for (const auto& [path, what, where] : report.secrets) {
    out += paint.yellow(fmt::format("masked: {}:{}: {}{}", text::printable(path), lines_text(where.lines),
                                    text::printable(what),
                                    where.count > 1 ? fmt::format(", {} times", where.count) : "")) +
           "\n";
  }
  for (const auto& [kind, names, times] : report.redacted)
    out += fmt::format("redacted: {} {}, {} times\n", names, kind, times);
  context.console.say(out);
  context.console.result(
      fmt::format("{} ({}: {}, {} unpacked)\n", report.file.string(), preflight::size_text(report.bytes),
                  text::count(report.files.size(), "file"), preflight::size_text(unpacked)));
}

/// The output file: next to the run directory unless -o is given.
fs::path output_of(const BundleArgs& args, const RunView& view, const std::string& name) {
  if (args.output.empty()) return view.folder.parent_path() / (name + ".tar.zst");
  std::error_code error;
  const auto behind = fs::is_symlink(args.output, error) ? fs::weakly_canonical(args.output, error) : "";
  return behind.empty() ? fs::absolute(args.output) : behind;
}

int run_bundle(const BundleArgs& args, const Context& context) {
  const auto limit = parse_size(args.limit);
  if (!limit || *limit < 4096) {
    context.console.say(fmt::format("nlaunch bundle: --limit {}: {}\n", args.limit,
                                    limit ? "must be at least 4kB" : limit.error()));
    return exit_code::usage;
  }
  auto view = view_run(args.runs_dir, args.run);
  if (!view) return context.console.error(view.error());
  std::error_code error;
  view->folder = fs::canonical(view->folder, error);  // "latest" is not usable as a file name
  const auto name =
      fmt::format("{}-{}", view->folder.parent_path().filename().string(), view->folder.filename().string());
  const auto out = output_of(args, *view, name);
  if (const auto there = fs::status(out, error); fs::exists(there) && !fs::is_regular_file(there)) {
    context.console.say(fmt::format("nlaunch bundle: '{}' is {}: -o expects a file\n", out.string(),
                                    fs::is_directory(there) ? "a directory" : "a device or a pipe"));
    return exit_code::usage;
  }
  const Interrupts interrupts;
  const auto files = record::read_run(view->folder);
  if (!files) return context.console.error(files.error());
  if (!files->damaged.empty())
    context.console.error(files->damaged);  // they are added to the bundle as they are
  const auto report = record::write_bundle({.run = *files,
                                            .name = name,
                                            .out = out,
                                            .limit = *limit,
                                            .redact = args.redact,
                                            .environment = context.environment,
                                            .made = made_for(*files, *view, context),
                                            .enough = [] { return Interrupts::received() != 0; }});
  if (!report) {
    context.console.error(report.error());
    return Interrupts::received() != 0 ? exit_code::interrupted : exit_code::internal;
  }
  tell(*report, context);
  return exit_code::ok;
}

void add_bundle(Command program, Context& context) {
  auto args = std::make_shared<BundleArgs>();
  auto command =
      program.subcommand("bundle", "Pack everything a support ticket about a run needs into one file")
          .examples({"nlaunch bundle grpo", "nlaunch bundle grpo --redact -o grpo.tar.zst"});
  command.option("RUN", args->run, kRunHelp).required();
  command
      .option("-o,--output", args->output,
              "Output file [default: NAME-RUN-ID.tar.zst next to the run directory]")
      .value_name("FILE");
  command.flag("--redact", args->redact,
               "Redact host names, user names, home directories, addresses and accounts");
  command
      .option("--limit", args->limit,
              "Truncate a larger log to head and tail of this total size [default: 16MiB]")
      .value_name("SIZE");
  command.option("--runs-dir", args->runs_dir, "Directory that contains the runs [default: runs]");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_bundle(*args, context); }; });
}

const Registered<cli::CommandEntry> bundle_command{{"bundle", 170, add_bundle, CommandGroup::convert}};

}  // namespace

}  // namespace nlaunch::commands
