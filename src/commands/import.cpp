#include "import/import.h"

#include <filesystem>

#include "base/exit_code.h"
#include "base/text.h"
#include "cli/console.h"
#include "config/names.h"
#include "lint/script_input.h"
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

int run_import(const ImportArgs& args, const Context& context) {
  const auto script = read_script(args.script);
  if (!script) return context.console.error(script.error());
  const auto input = lint::script_input(*script);
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
  command.option("SCRIPT", args->script, "The script; it is read, never run").required();
  command.option("--name", args->name, "Of the experiment and the profile (the job's, or the script's)")
      .checked([](const std::string& name) {
        return config::is_experiment_name(name)
                   ? ""
                   : fmt::format(
                         "'{}' cannot be a name: letters, digits, . - and _, a letter or a digit first",
                         name);
      });
  auto output = command.option("--output", args->output, "Folder for NAME.yaml and NAME.site.yaml (.)");
  command.flag("--stdout", args->to_stdout, "Print both, and write nothing").excludes(output);
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_import(*args, context); }; });
}

const Registered<cli::CommandEntry> import_command{{"import", 60, add_import}};

}  // namespace

}  // namespace nlaunch::commands
