#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/exit_code.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/load.h"
#include "config/experiment.h"
#include "config/names.h"
#include "config/role.h"
#include "config/site.h"
#include "import/check.h"
#include "import/import.h"
#include "import/secrets.h"
#include "import/slurm.h"
#include "launch/machine.h"
#include "lint/questions.h"
#include "lint/script_input.h"
#include "lint/script_text.h"
#include "lint/trials.h"
#include "plan/build.h"
#include "report/recording_text.h"
#include "shell/allocation.h"
#include "shell/machine.h"
#include "shell/recorder.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
namespace {

constexpr std::uint64_t kLargestScript = 1U << 20U;  // no script written by people is as large

struct ImportArgs {
  std::string script;
  std::string name;
  std::string output = ".";
  bool to_stdout = false;
  bool commands = false;
  bool check = false;
  bool per_node = false;
  bool all_tasks = false;  ///< no option: record every task of large steps, too
  std::vector<std::string> arguments;
  std::vector<std::string> variables;
  ClusterArgs cluster;
  std::optional<unsigned> nodes;
  std::optional<unsigned> gpus;
};

/// The script with invalid UTF-8 replaced: it can only occur inside strings.
Result<std::shared_ptr<const SourceFile>> read_script(const std::string& path) {
  auto content = sys::read_regular_file(path, kLargestScript);
  if (!content) return std::unexpected(content.error());
  if (content->find('\0') != std::string::npos)
    return failure("import.binary", "{} is not a text file: import reads sbatch and shell scripts",
                   text::printable(path));
  if (!text::first_invalid_utf8(*content))
    return std::make_shared<const SourceFile>(SourceFile{path, std::move(*content)});
  std::string clean;
  for (const auto character : text::characters(*content))
    clean += text::first_invalid_utf8(character) ? "\xEF\xBF\xBD" : character;
  return std::make_shared<const SourceFile>(SourceFile{path, std::move(clean)});
}

bool is_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

/// The two files that import writes.
struct Files {
  std::string experiment, profile;  ///< their paths
};

Files files_in(const std::filesystem::path& folder, const import::Imported& imported) {
  return {folder / (imported.name + ".yaml"), folder / (imported.name + ".site.yaml")};
}

Result<void> write(const Files& files, const import::Imported& imported) {
  if (auto wrote = sys::write_named_file(files.experiment, import::experiment_text(imported)); !wrote)
    return wrote;
  return sys::write_named_file(files.profile, import::profile_text(imported));
}

/// Secrets in the text of the script.
Masker masker_of(const std::string& script) {
  Masker masker;
  for (const auto& line : text::split(script, '\n')) {
    for (auto& secret : import::secrets_in(line)) masker.add(std::move(secret));
  }
  return masker;
}

/// A directory that is removed together with its contents.
struct ScratchFolder {
  std::filesystem::path path;
  Result<void> make() {
    std::error_code error;
    auto name = (std::filesystem::temp_directory_path(error) / "nlaunch-import-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      return failure("import.scratch", "cannot create the directory {}", name);
    path = name;
    return {};
  }
  ~ScratchFolder() {
    std::error_code error;
    if (!path.empty()) std::filesystem::remove_all(path, error);
  }
};

/// The input of one call.
struct Subject {
  std::string script;  ///< the recorded script
  lint::LintInput input;
  std::vector<lint::Finding> findings;
  shell::Allocation allocation;
  shell::Recording recording;
  Masker masker;
};

/// The script to record, and how it is called.
struct Call {
  std::string script;
  std::vector<std::string> arguments, variables;
  std::string folder;                     ///< in which it is submitted
  std::string chdir;                      ///< in which it runs, if that does not exist here; empty: the same
  std::vector<shell::WrittenFile> files;  ///< written before it runs
  std::vector<lint::StepOption> job;      ///< options in addition to its `#SBATCH` lines
};

/// The request for bash.
shell::RecordRequest request_of(const ImportArgs& args, const Call& call, const std::string& chdir,
                                const shell::Allocation& allocation) {
  return {.script = call.script,
          .arguments = call.arguments,
          .variables = call.variables,
          .folder = call.folder,
          .chdir = chdir,
          .prints = args.cluster.parted_prints(),
          .existing = args.cluster.existing,
          .per_node = args.per_node,
          .all_tasks = args.all_tasks,
          .files = call.files,
          .allocation = allocation,
          .limits = {}};
}

/// In a heterogeneous job, they belong to the first component.
void add_options(lint::LintInput& input, const std::vector<lint::StepOption>& options) {
  input.batch.insert(input.batch.end(), options.begin(), options.end());
  if (input.components.empty()) return;
  auto& first = input.components.front();
  first.insert(first.end(), options.begin(), options.end());
}

Result<Subject> record(const ImportArgs& args, const Call& call) {
  const auto script = read_script(call.script);
  if (!script) return std::unexpected(script.error());
  Subject subject{call.script, lint::script_input(*script), {}, {}, {}, masker_of((*script)->text)};
  add_options(subject.input, call.job);
  import::Imported unused;
  const auto directives = import::import_directives(subject.input, unused);
  subject.allocation = import::allocation_of(directives);
  for (const auto& option : call.job) {
    const auto asked =
        option.text.starts_with("--nodes=")
            ? text::whole_number<unsigned>(option.text.substr(std::string_view("--nodes=").size()))
            : std::nullopt;
    if (asked && args.nodes && *asked != *args.nodes)
      return failure("import.nodes", "line {} already requests {}, but --nodes is {}: omit --nodes",
                     option.span.line, text::count(*asked, "node"), *args.nodes);
  }
  if (!directives.components.empty() && (args.nodes || args.gpus))
    return failure(
        "import.components",
        "the job is heterogeneous (#SBATCH hetjob), so {} is ambiguous: set it in the script's directives",
        args.nodes ? "--nodes" : "--gpus");
  subject.allocation.nodes = args.nodes.value_or(subject.allocation.nodes);
  subject.allocation.gpus_per_node = args.gpus.value_or(subject.allocation.gpus_per_node);
  for (const auto& entry : call.variables) {
    constexpr std::string_view kTask = "SLURM_ARRAY_TASK_ID=";
    const auto id = entry.starts_with(kTask) ? text::whole_number<std::uint32_t>(entry.substr(kTask.size()))
                                             : std::nullopt;
    if (!id) continue;
    auto& array = subject.allocation.array;
    if (array.empty()) array = {*id};
    const auto [least, most] = std::ranges::minmax(array);
    if (std::ranges::find(array, *id) == array.end())
      return failure("import.array", "{}: no such task in the job array; --array={} has tasks {} to {}",
                     entry, directives.array_text, least, most);
    subject.allocation.array_task = *id;
  }
  const auto& chdir = directives.workdir.value.empty() ? call.chdir : directives.workdir.value;
  auto request = request_of(args, call, chdir, subject.allocation);
  request.variables = lint::variables_of_job(subject.input.batch, call.variables);
  auto recording = shell::record(request);
  if (!recording) return std::unexpected(recording.error());
  if (const auto compared = shell::compare_machines(request, *recording); !compared)
    return std::unexpected(compared.error());
  subject.recording = import::with_cuda_names(std::move(*recording));
  for (const auto& one : import::assigned_secrets(subject.recording)) subject.masker.add(one.value);
  subject.input = lint::script_input(*script, subject.recording, subject.allocation, call.script);
  const auto programs = std::ranges::count_if(subject.input.script->programs, &lint::Program::works);
  if (static_cast<std::size_t>(programs) > config::kMostRoles) return subject;  // is refused
  subject.input.script->trials =
      lint::try_failures(request, subject.recording, subject.input, lint::Tried::all);
  subject.input.script->unanswered = lint::leave_unanswered(request, subject.recording);
  subject.findings = lint::lint(subject.input);
  add_options(subject.input, call.job);
  return subject;
}

/// The job that the script submits when somebody runs it on a login node, if the script starts nothing
/// itself; nothing if it is another kind of script. What it uses of Slurm's variables is unknown there.
std::optional<shell::Submission> submitted_by(const ImportArgs& args, const Call& call) {
  const auto text = sys::read_regular_file(call.script, kLargestScript);
  if (args.per_node || !text || text->find("sbatch") == std::string::npos) return std::nullopt;
  auto request = request_of(args, call, "", {});
  request.in_job = false;
  const auto recording = shell::record(request);
  if (!recording || !recording->whole()) return std::nullopt;
  if (!recording->unread.empty()) return std::nullopt;  // there may be more
  const auto* submission = import::only_submission(*recording);
  return submission == nullptr ? std::nullopt : std::optional(*submission);
}

Result<Subject> record_submitted(const ImportArgs& args, const shell::Submission& submission) {
  std::error_code error;
  const bool there = std::filesystem::exists(submission.folder, error);
  Call call{.script = submission.script,
            .arguments = submission.arguments,
            .variables = submission.variables,
            .folder = there ? submission.folder : std::filesystem::current_path(error).string(),
            .chdir = there ? "" : submission.folder,
            .files = submission.files,
            .job = import::job_of(submission)};
  if (!call.script.empty() && sys::read_regular_file(call.script, kLargestScript) == submission.text)
    return record(args, call);
  ScratchFolder scratch;
  if (auto made = scratch.make(); !made) return std::unexpected(made.error());
  call.script = scratch.path / std::filesystem::path(args.script).filename();
  if (auto wrote = sys::write_file_atomically(call.script, submission.text, 0755); !wrote)
    return std::unexpected(wrote.error());
  return record(args, call);
}

Result<Subject> record(const ImportArgs& args, const Context& context) {
  std::error_code error;
  Call call{.script = args.script,
            .arguments = args.arguments,
            .variables = args.variables,
            .folder = std::filesystem::current_path(error),
            .chdir = "",
            .files = {},
            .job = {}};
  if (const auto submission = submitted_by(args, call)) {
    if (!context.console.quiet)
      context.console.say(
          fmt::format("note: line {}: importing the job that the script submits here\n", submission->line));
    return record_submitted(args, *submission);
  }
  auto subject = record(args, call);
  // Only its own srun tells which job it needs.
  if (!subject || !subject->recording.whole() || !subject->input.batch.empty()) return subject;
  call.job = import::job_of_steps(subject->recording);
  return call.job.empty() ? std::move(subject) : record(args, call);
}

std::string table_of(const Subject& subject, const std::vector<std::string>& became,
                     const report::Paint& paint) {
  return report::recording_text(subject.recording, subject.script, subject.allocation, became, subject.masker,
                                paint);
}

/// The plan from the two files, as the user of the script would make it on the cluster.
Result<plan::Plan> plan_of(const Files& files, const import::Imported& imported) {
  const auto site = config::load_site(files.profile, {}, {});
  if (!site) return std::unexpected(site.error());
  const auto experiment = config::load_experiment(files.experiment, {}, {});
  if (!experiment) return std::unexpected(experiment.error());
  const plan::MachineFacts facts{
      launch::this_host().arch,
      std::vector<std::string>(imported.gpus, "GPU"),
      {{"HOME", std::string(shell::Allocation::kHome)}, {"USER", std::string(shell::Allocation::kUser)}}};
  return plan::build(*experiment, *site, facts, {});
}

/// How the plan from the files differs from the script; a failure if they give no plan.
Result<std::vector<import::Difference>> differences_of(const Files& files, const import::Imported& imported,
                                                       const Subject& subject) {
  const auto plan = plan_of(files, imported);
  if (!plan) return std::unexpected(plan.error());
  return import::differences(imported, subject.recording, *plan);
}

/// True if the script sources a file that is not here and may set what its programs need. Those that prepare
/// a shell, modules or Python do not count.
bool sources_unknown_files(const shell::Recording& recording) {
  constexpr std::array<std::string_view, 8> kOfShells{"bashrc",   "profile", "conda.sh", "mamba.sh",
                                                      "activate", "modules", "lmod",     "/etc/"};
  return std::ranges::any_of(recording.not_here, [&](const std::string& path) {
    return (path.ends_with(".sh") || path.ends_with(".env") || path.ends_with(".bash")) &&
           std::ranges::none_of(kOfShells, [&](auto part) { return path.find(part) != std::string::npos; });
  });
}

/// Prints whether the files describe the same job as the script. Returns the exit code.
int say_whether_same(const Result<std::vector<import::Difference>>& found, const Subject& subject,
                     bool fewer_gpus, const Context& context) {
  if (!found) {
    context.console.say(
        "nlaunch import: no plan could be made of these two files, so they cannot be compared with the "
        "script. "
        "It may need other GPUs or nodes than --gpus and --nodes say, or import does not know how to place "
        "its programs:\n");
    return context.console.error(found.error());
  }
  if (found->empty()) {
    const auto* const but =
        fewer_gpus ? "The same job, but for the GPUs that a program sees: everything the script would "
                     "start has the same arguments, working directory and other variables.\n"
        : sources_unknown_files(subject.recording)
            ? "The same job, if the files that the script sources and that are not here set nothing: "
              "everything it would start has the same arguments, working directory and variables.\n"
            : "The same job: everything the script would start has the same arguments, working "
              "directory and variables.\n";
    if (!context.console.quiet) context.console.say(but);
    return 0;
  }
  constexpr std::size_t kShown = 20;
  std::string text = "Not the same job:\n";
  for (std::size_t i = 0; i < found->size() && i < kShown; ++i) {
    const auto& one = (*found)[i];
    text += fmt::format("  {}{}\n", one.line > 0 ? fmt::format("line {}: ", one.line) : "",
                        text::printable(subject.masker.mask(one.what)));
  }
  if (found->size() > kShown) text += fmt::format("  and {} more\n", found->size() - kShown);
  context.console.say(text);
  return exit_code::bad_input;
}

/// What the user has to check, whatever the plan is: the same text is in the comments of the files.
std::string notes_of(const import::Imported& imported, const Masker& masker) {
  std::string text;
  const auto add = [&](const import::Remark& one) {
    text += fmt::format("note: {}{}\n", one.line > 0 ? fmt::format("line {}: ", one.line) : "",
                        text::printable(masker.mask(one.text)));
  };
  using enum import::Destination;
  for (const auto destination : {experiment, environment, roles, walltime, slurm, modules})
    if (const auto found = imported.remarks.find(destination); found != imported.remarks.end())
      std::ranges::for_each(found->second, add);
  for (const auto& role : imported.roles)
    for (const auto& one : role.remarks)
      if (one.line > 0) add(one);
  return text;
}

/// Tasks that differ in more than their numbers, of a step of which only some were recorded.
bool needs_all_tasks(const Diagnostics& problems, const Subject& subject) {
  constexpr std::uint32_t kMost = 64;
  const auto tasks = subject.allocation.nodes * subject.allocation.tasks_per_node;
  return !subject.recording.all_tasks && tasks <= kMost &&
         std::ranges::any_of(problems.items(), [](const auto& one) { return one.id == "import.tasks"; });
}

int run_import(const ImportArgs& args, const Context& context) {
  auto subject = record(args, context);
  if (!subject) return context.console.error(subject.error());
  if (args.commands) {
    context.console.result(table_of(*subject, {}, context.console.result_paint));
    return subject->recording.whole() ? 0 : exit_code::bad_input;
  }
  if (const auto why = report::why_not_whole(subject->recording, subject->masker); !why.empty()) {
    context.console.say(fmt::format("nlaunch import: {}\n", why));
    return exit_code::bad_input;
  }
  std::error_code error;
  const bool keeps = !args.to_stdout && !args.check;
  // Only an experiment that stays where it is can omit its directory.
  const auto folder = keeps ? (std::filesystem::absolute(args.output, error) / "").lexically_normal()
                            : std::filesystem::path();
  const auto import_with = [&](import::Nodes nodes) {
    return import::import_script(subject->input, subject->findings, subject->recording, subject->allocation,
                                 args.name, folder.parent_path().string(), nodes);
  };
  auto imported = import_with(import::Nodes::alike);
  if (!imported && needs_all_tasks(imported.error(), *subject)) {
    auto all = args;
    all.all_tasks = true;
    if (auto again = record(all, context)) {
      subject = std::move(again);
      imported = import_with(import::Nodes::alike);
    }
  }
  if (!imported) {
    if (!context.console.quiet) context.console.say(table_of(*subject, {}, context.console.paint));
    return context.console.error(imported.error());
  }
  ScratchFolder scratch;
  if (!keeps) {
    if (const auto made = scratch.make(); !made) return context.console.error(made.error());
  }
  const auto files = files_in(keeps ? std::filesystem::path(args.output) : scratch.path, *imported);
  for (const auto& path : {files.experiment, files.profile}) {
    if (!keeps || !is_there(path)) continue;
    context.console.say(
        fmt::format("nlaunch import: '{}' already exists: remove it, or choose another --name or --output\n",
                    text::printable(path)));
    return exit_code::usage;
  }
  if (keeps) std::filesystem::create_directories(args.output, error);
  if (const auto wrote = write(files, *imported); !wrote) return context.console.error(wrote.error());
  auto found = differences_of(files, *imported, *subject);
  // Processes that the plan puts on other nodes may need a separate pool.
  const bool alike = subject->allocation.nodes > 1 && subject->allocation.components.empty();
  if ((!found || !found->empty()) && alike) {
    if (auto parted = import_with(import::Nodes::by_programs)) {
      if (const auto wrote = write(files, *parted); !wrote) return context.console.error(wrote.error());
      auto rest = differences_of(files, *parted, *subject);
      // A plan with a separate role for each of many tasks is not useful.
      constexpr std::size_t kMostRoles = 12;
      if (rest && rest->empty() && parted->roles.size() <= kMostRoles) {
        imported = std::move(parted);
        found = std::move(rest);
      } else if (const auto wrote = write(files, *imported); !wrote) {
        return context.console.error(wrote.error());
      }
    }
  }
  if (args.to_stdout)
    context.console.result(
        fmt::format("{}---\n{}", import::experiment_text(*imported), import::profile_text(*imported)));
  if (!context.console.quiet)
    context.console.say(table_of(*subject, imported->became, context.console.paint));
  if (!context.console.quiet) context.console.say(notes_of(*imported, subject->masker));
  const auto code = say_whether_same(found, *subject, imported->fewer_gpus, context);
  if (keeps && !context.console.quiet) {
    const std::vector<std::string> next{"nlaunch", "plan", files.experiment, "--site", files.profile};
    context.console.say(fmt::format(
        "{} and {}: review them, answer the questions in their comments, then run: {}\n",
        text::printable(files.experiment), text::printable(files.profile), text::shell_join(next)));
  }
  return code;
}

void add_import(Command program, Context& context) {
  auto args = std::make_shared<ImportArgs>();
  auto command =
      program.subcommand("import", "Convert an sbatch script into an experiment and a site profile")
          .examples({"nlaunch import job.sbatch", "nlaunch import job.sbatch --check",
                     "nlaunch import job.sbatch --nodes 4 --stdout"});
  command.option("SCRIPT", args->script, "Script to import; it runs without effects").required();
  command
      .option("--name", args->name,
              "Name of the experiment and the profile [default: the job's, else the script's]")
      .checked([](const std::string& name) {
        return config::is_experiment_name(name) ? ""
                                                : fmt::format(
                                                      "invalid name '{}': use letters, digits, '.', '-' and "
                                                      "'_', with a letter or digit first",
                                                      name);
      });
  auto output =
      command.option("--output", args->output, "Directory for NAME.yaml and NAME.site.yaml [default: .]")
          .value_name("DIR");
  auto to_stdout =
      command.flag("--stdout", args->to_stdout, "Print both files instead of writing them").excludes(output);
  auto commands = command.flag(
      "--commands", args->commands,
      "Print what the script would start, and write nothing (bash runs the script without effects)");
  commands.excludes(output).excludes(to_stdout);
  auto check = command.flag("--check", args->check,
                            "Check whether the plan would start what the script starts, and write nothing");
  check.excludes(output).excludes(to_stdout).excludes(commands);
  constexpr long kMostNodes = 100'000;
  constexpr long kMostGpus = 1024;
  command.option("--nodes", args->nodes, "Nodes of the job [default: from the directives]")
      .in_range(1, kMostNodes);
  command.option("--gpus", args->gpus, "GPUs per node [default: from the directives]").in_range(0, kMostGpus);
  command.flag("--per-node", args->per_node,
               "The script is started once on each node; in its arguments and --env, {node} is the node's "
               "number, {host} its host, {first} the first node's host, {nodes} the number of nodes");
  command.option("--env", args->variables, "Set a variable for the script: NAME=VALUE; may be repeated")
      .value_name("NAME=VALUE")
      .one_word_each()
      .checked(has_equals);
  add_cluster_options(command, args->cluster);
  command.option("ARGUMENT", args->arguments, "Arguments of the script, after --")
      .value_name("-- [ARGUMENT...]");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_import(*args, context); }; });
}

const Registered<cli::CommandEntry> import_command{{"import", 60, add_import, CommandGroup::convert}};

}  // namespace

}  // namespace nlaunch::commands
