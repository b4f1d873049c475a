#include "import/import.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/exit_code.h"
#include "base/text.h"
#include "cli/console.h"
#include "config/names.h"
#include "import/secrets.h"
#include "import/slurm.h"
#include "lint/script_input.h"
#include "report/recording_text.h"
#include "shell/recorder.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
namespace {

constexpr std::uint64_t kLargestScript = 1U << 20U;  // no script that people wrote is as large

struct ImportArgs {
  std::string script;
  std::string name;
  std::string output = ".";
  bool to_stdout = false;
  bool commands = false;
  std::vector<std::string> arguments;
  std::vector<std::string> variables;
  std::optional<unsigned> nodes;
  std::optional<unsigned> gpus;
};

/// The script with what is not UTF-8 replaced: it can only be within texts.
Result<std::shared_ptr<const SourceFile>> read_script(const std::string& path) {
  auto content = sys::read_regular_file(path, kLargestScript);
  if (!content) return std::unexpected(content.error());
  if (content->find('\0') != std::string::npos)
    return failure("import.binary", "{} is no text: import reads sbatch and shell scripts",
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

int write(const ImportArgs& args, const import::Imported& imported, const Context& context) {
  const auto folder = std::filesystem::path(args.output);
  const std::pair<std::string, std::string> files[] = {
      {(folder / (imported.name + ".yaml")).string(), import::experiment_text(imported)},
      {(folder / (imported.name + ".site.yaml")).string(), import::profile_text(imported)}};
  for (const auto& [path, content] : files) {
    if (!is_there(path)) continue;
    context.console.say(
        fmt::format("nlaunch import: '{}' is there already: remove it, or give another --name or --output\n",
                    text::printable(path)));
    return exit_code::usage;
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (const auto& [path, content] : files) {
    if (const auto wrote = sys::write_named_file(path, content); !wrote)
      return context.console.error(wrote.error());
  }
  if (!context.console.quiet) {
    const std::vector<std::string> next{"nlaunch", "plan", files[0].first, "--site", files[1].first};
    context.console.say(fmt::format("{} and {}: read them, decide what their comments ask, then: {}\n",
                                    text::printable(files[0].first), text::printable(files[1].first),
                                    text::shell_join(next)));
  }
  return 0;
}

/// Secrets that the script has in its text.
Masker masker_of(const std::string& script) {
  Masker masker;
  for (const auto& line : text::split(script, '\n')) {
    for (auto& secret : import::secrets_in(line)) masker.add(std::move(secret));
  }
  return masker;
}

int show_commands(const ImportArgs& args, const lint::LintInput& input, const Context& context) {
  import::Imported unused;
  auto allocation = import::allocation_of(import::import_directives(input, unused));
  allocation.nodes = args.nodes.value_or(allocation.nodes);
  allocation.gpus_per_node = args.gpus.value_or(allocation.gpus_per_node);
  const auto recording = shell::record({.script = args.script,
                                        .arguments = args.arguments,
                                        .variables = args.variables,
                                        .allocation = allocation,
                                        .limits = {}});
  if (!recording) return context.console.error(recording.error());
  context.console.result(report::recording_text(*recording, args.script, allocation,
                                                masker_of(input.script->file->text),
                                                context.console.result_paint));
  return recording->stopped.empty() && recording->exit_code == 0 ? 0 : exit_code::bad_input;
}

int run_import(const ImportArgs& args, const Context& context) {
  const auto script = read_script(args.script);
  if (!script) return context.console.error(script.error());
  const auto input = lint::script_input(*script);
  if (args.commands) return show_commands(args, input, context);
  std::error_code error;
  const auto folder = std::filesystem::absolute(args.to_stdout ? "." : args.output, error) / "";
  const auto imported = import::import_script(input, lint::lint(input), args.name,
                                              folder.lexically_normal().parent_path().string());
  if (imported.roles.empty()) {
    context.console.say(fmt::format(
        "nlaunch import: {} starts no program that could be a role: python, torchrun, "
        "accelerate, vllm serve, ray, srun PROGRAM. Name the script that starts it (what `bash FILE` and "
        "`source FILE` run is not read), or write the experiment: docs/experiment.md\n",
        text::printable(args.script)));
    return exit_code::bad_input;
  }
  if (!args.to_stdout) return write(args, imported, context);
  context.console.result(
      fmt::format("{}---\n{}", import::experiment_text(imported), import::profile_text(imported)));
  return 0;
}

void add_import(Command program, Context& context) {
  auto args = std::make_shared<ImportArgs>();
  auto command =
      program.subcommand("import", "An experiment and a site profile, of an sbatch script that there is");
  command.option("SCRIPT", args->script, "The script; nothing of it acts").required();
  command.option("--name", args->name, "Of the experiment and the profile (the job's, or the script's)")
      .checked([](const std::string& name) {
        return config::is_experiment_name(name)
                   ? ""
                   : fmt::format(
                         "'{}' cannot be a name: letters, digits, . - and _, a letter or a digit first",
                         name);
      });
  auto output = command.option("--output", args->output, "Folder for NAME.yaml and NAME.site.yaml (.)");
  auto to_stdout =
      command.flag("--stdout", args->to_stdout, "Print both, and write nothing").excludes(output);
  auto commands = command.flag("--commands", args->commands,
                               "Print what the script would start, and write nothing: bash runs it where it "
                               "has no effect");
  commands.excludes(output).excludes(to_stdout);
  constexpr long kMostNodes = 100'000;
  constexpr long kMostGpus = 1024;
  command.option("--nodes", args->nodes, "Of the job (--commands; the directives say it)")
      .in_range(1, kMostNodes)
      .needs(commands);
  command.option("--gpus", args->gpus, "Of each node (--commands; the directives say it)")
      .in_range(0, kMostGpus)
      .needs(commands);
  command.option("--env", args->variables, "NAME=VALUE, a variable that the script is given (--commands)")
      .one_word_each()
      .checked([](const std::string& word) {
        return word.find('=') == std::string::npos || word.starts_with('=')
                   ? fmt::format("'{}' is not NAME=VALUE", word)
                   : "";
      })
      .needs(commands);
  command.option("ARGUMENT", args->arguments, "Of the script, after -- (--commands)").needs(commands);
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_import(*args, context); }; });
}

const Registered<cli::CommandEntry> import_command{{"import", 60, add_import}};

}  // namespace

}  // namespace nlaunch::commands
