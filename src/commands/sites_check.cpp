#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/exit_code.h"
#include "base/text.h"
#include "commands/sites.h"
#include "launch/bind/bind.h"
#include "launch/install.h"
#include "launch/machine.h"
#include "plan/environment.h"
#include "plan/site_check.h"

namespace nlaunch::commands {

using namespace cli;
namespace {

/// A file in the current directory is meant, whatever its extension.
std::string as_path(const std::string& file) {
  std::error_code error;
  return !file.contains('/') && std::filesystem::exists(file, error) ? "./" + file : file;
}

/// Libraries are for the machine of the run: what does not exist here may exist there.
void look_for_libraries(const plan::SiteCheck& checked, const launch::Install& install,
                        const Context& context) {
  for (const auto& [name, library] : checked.libraries) {
    const auto bound = launch::bind_library(name, library, install.probe);
    if (bound || context.console.quiet) continue;
    context.console.say(fmt::format("{} on this machine {}\n", context.console.paint.yellow("note:"),
                                    text::printable(bound.error().first_message())));
  }
}

int check(const std::string& file, const SitesArgs& args, const Context& context) {
  const auto install = launch::find_install();
  const auto folders = launch::site_folders(args.site_dirs, context.environment, install);
  const auto site = config::load_site(as_path(file), folders, {});
  if (!site) return context.console.error(site.error());
  const auto checked =
      plan::check_site(*site, {launch::this_host().arch, {}, plan::to_environment(context.environment)});
  if (!checked.findings.empty()) context.console.error(checked.findings);
  if (checked.findings.has_errors()) return exit_code::bad_input;
  look_for_libraries(checked, install, context);
  if (!context.console.quiet) show_site(*site, context);
  return 0;
}

}  // namespace

void add_sites_check(Command sites, const std::shared_ptr<SitesArgs>& args, Context& context) {
  auto file = std::make_shared<std::string>();
  auto command = sites.subcommand("check", "Check a site profile, and show what it resolves to")
                     .examples({"nlaunch sites check mine.yaml", "nlaunch sites check isambard"});
  command.option("FILE", *file, "Profile to check").required();
  command.when_called([file, args, &context] {
    context.run = [file, args, &context] { return check(*file, *args, context); };
  });
}

}  // namespace nlaunch::commands
