#include "commands/sites.h"

#include <algorithm>

#include "base/text.h"
#include "launch/install.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
namespace {

std::string describe(const config::Site& site) {
  return site.comment + (site.untried ? " (not tested on its machine)" : "");
}

/// True if a shadowed profile is a file that says the same as the one that is used.
bool is_copy(const config::SiteEntry& shadowed, const std::vector<config::SiteEntry>& all) {
  const auto used = std::ranges::find(all, shadowed.name, &config::SiteEntry::name);
  constexpr std::uint64_t kLimit = 1U << 20U;  // a larger one is no profile
  const auto mine = sys::read_regular_file(shadowed.path, kLimit);
  const auto theirs = sys::read_regular_file(used->path, kLimit);
  return mine && theirs && *mine == *theirs;
}

int list(const std::vector<std::string>& folders, const Context& context) {
  const auto paint = context.console.result_paint;
  report::Table table({"site", "scheduler", "found at", "description"});
  const auto all = config::list_sites(folders);
  for (const auto& entry : all) {
    if (entry.shadowed) {
      if (is_copy(entry, all)) continue;
      table.add({entry.name, "", entry.path, paint.dim("shadowed by the profile of the same name above")});
      continue;
    }
    const auto site = config::load_site(entry.name, folders, {});
    table.add({paint.bold(entry.name), site ? site->scheduler : "", entry.path,
               site ? describe(*site) : paint.red("cannot be read; see nlaunch sites " + entry.name)});
  }
  context.console.result(table.str(paint));
  return 0;
}

int show(const std::string& name, const std::vector<std::string>& folders, const Context& context) {
  const auto site = config::load_site(name, folders, {});
  if (!site) return context.console.error(site.error());
  show_site(*site, context);
  return 0;
}

void add_sites(Command program, Context& context) {
  auto args = std::make_shared<SitesArgs>();
  auto command = program.subcommand("sites", "List the site profiles and where each was found")
                     .examples({"nlaunch sites", "nlaunch sites isambard"});
  command.option("PROFILE", args->name, "Show this profile in detail");
  command.option("--site-dir", args->site_dirs, "Directory with site profiles; may be repeated")
      .existing_folder()
      .one_word_each();
  add_sites_check(command, args, context);
  add_sites_init(command, context);
  command.when_called([args, command, &context] {
    if (command.has_called_subcommand()) {
      // A word that a subcommand does not accept ends up here.
      if (args->name.empty()) return;
      wrong_usage(fmt::format("unexpected argument '{}'", args->name));
    }
    context.run = [args, &context] {
      const auto folders = launch::site_folders(args->site_dirs, context.environment, launch::find_install());
      return args->name.empty() ? list(folders, context) : show(args->name, folders, context);
    };
  });
}

const Registered<cli::CommandEntry> sites_command{{"sites", 110, add_sites, CommandGroup::set_up}};

}  // namespace

void show_site(const config::Site& site, const Context& context) {
  report::Table table({"", ""});
  const auto add = [&](const char* key, const std::string& value) {
    table.add({context.console.result_paint.dim(key), value});
  };
  add("site", site.name.value);
  add("description", describe(site));
  add("built from", site.sources.empty() ? site.path : text::join(site.sources, ", "));
  add("extends", text::join(site.bases, " → "));
  add("scheduler", site.scheduler);
  add("GPUs per node", site.gpus ? std::to_string(site.gpus->value) : "detected on the machine");
  add("GPU", site.gpu ? site.gpu->value : "");
  std::vector<std::string> names;
  for (const auto& file : site.modules.source) names.push_back(file.value);
  for (const auto& folder : site.modules.use) names.push_back(folder.value);
  for (const auto& module : site.modules.load) names.push_back(module.value);
  add("modules", text::join(names, " "));
  for (const auto& [library, definition] : site.libraries)
    add("library", library + ": " + definition.path.value);
  for (const auto& overlay : site.overlays) add("overlay", overlay.name.value);
  context.console.result(table.str(context.console.result_paint));
}

}  // namespace nlaunch::commands
