#include <filesystem>

#include "cli/console.h"
#include "report/reference.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
namespace {

int run_reference(const std::string& folder, const Context& context) {
  for (const auto& page : report::reference_pages()) {
    const auto path = std::filesystem::path(folder) / (std::string(page.name) + ".md");
    if (const auto wrote = sys::write_named_file(path, page.text()); !wrote)
      return context.console.error(wrote.error());
  }
  return 0;
}

void add_reference(Command program, Context& context) {
  auto folder = std::make_shared<std::string>();
  auto command = program.subcommand("reference", "Write the pages of docs/reference/").hidden();
  command.option("FOLDER", *folder, "Target directory").required().existing_folder();
  command.when_called(
      [folder, &context] { context.run = [folder, &context] { return run_reference(*folder, context); }; });
}

const Registered<cli::CommandEntry> reference_command{{"reference", 90, add_reference}};

}  // namespace

}  // namespace nlaunch::commands
