#include <filesystem>

#include "cli/console.h"
#include "cli/man.h"
#include "report/reference.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
namespace {

struct ReferenceArgs {
  std::string folder;
  bool man = false;
};

int run_reference(const ReferenceArgs& args, const CLI::App& program, const Context& context) {
  std::vector<std::pair<std::string, std::string>> files;
  if (args.man) {
    for (auto& page : man_pages(program)) files.emplace_back(page.name, std::move(page.text));
  } else {
    for (const auto& page : report::reference_pages())
      files.emplace_back(std::string(page.name) + ".md", page.text());
  }
  for (const auto& [name, text] : files) {
    const auto wrote = sys::write_named_file(std::filesystem::path(args.folder) / name, text);
    if (!wrote) return context.console.error(wrote.error());
  }
  return 0;
}

void add_reference(Command program, Context& context) {
  auto args = std::make_shared<ReferenceArgs>();
  const auto& parser = program.parser();
  auto command = program.subcommand("reference", "Write the pages of docs/reference/");
  command.option("FOLDER", args->folder, "Target directory").required().existing_folder();
  command.flag("--man", args->man, "Write the man pages instead");
  command.when_called([args, &parser, &context] {
    context.run = [args, &parser, &context] { return run_reference(*args, parser, context); };
  });
}

const Registered<cli::CommandEntry> reference_command{{"reference", 90, add_reference}};

}  // namespace

}  // namespace nlaunch::commands
