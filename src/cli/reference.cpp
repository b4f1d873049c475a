#include <filesystem>

#include "cli/context.h"
#include "report/reference.h"
#include "sys/files.h"

namespace nlaunch::cli {
namespace {

int run(const std::string& folder, const Context& context) {
  for (const auto& page : report::reference_pages()) {
    const auto path = std::filesystem::path(folder) / (std::string(page.name) + ".md");
    if (const auto wrote = sys::write_named_file(path, page.text()); !wrote)
      return complain(context, wrote.error());
  }
  return 0;
}

}  // namespace

void add_reference(CLI::App& app, Context& context) {
  auto folder = std::make_shared<std::string>();
  auto* command = app.add_subcommand("reference", "Writes the pages of docs/reference/")->group("");
  command->add_option("FOLDER", *folder, "Where to")->required()->check(CLI::ExistingDirectory);
  command->callback(
      [folder, &context] { context.run = [folder, &context] { return run(*folder, context); }; });
}

}  // namespace nlaunch::cli
