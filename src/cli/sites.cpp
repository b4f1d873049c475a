#include "cli/sites.h"

#include "base/text.h"
#include "launch/install.h"

namespace nlaunch::cli {
namespace {

std::string describe(const config::Site& site) {
  return site.comment + (site.untried ? " (not tried on its machine)" : "");
}

int list(const std::vector<std::string>& folders, const Context& context) {
  const auto paint = context.out();
  report::Table table({"site", "scheduler", "found at", "description"});
  for (const auto& entry : config::list_sites(folders)) {
    if (entry.shadowed) {
      table.add({entry.name, "", entry.path, paint.dim("hidden by one of the same name above")});
      continue;
    }
    const auto site = config::load_site(entry.name, folders, {});
    table.add({paint.bold(entry.name), site ? std::string(name_of(site->scheduler)) : "", entry.path,
               site ? describe(*site) : paint.red("cannot be read: nlaunch sites " + entry.name)});
  }
  print(table.str(paint));
  return 0;
}

int show(const std::string& name, const std::vector<std::string>& folders, const Context& context) {
  const auto site = config::load_site(name, folders, {});
  if (!site) return complain(context, site.error());
  show_site(*site, context);
  return 0;
}

}  // namespace

void show_site(const config::Site& site, const Context& context) {
  report::Table table({"", ""});
  const auto add = [&](const char* key, const std::string& value) {
    table.add({context.out().dim(key), value});
  };
  add("site", site.name.value);
  add("description", describe(site));
  add("made from", site.sources.empty() ? site.path : text::join(site.sources, ", "));
  add("extends", text::join(site.bases, " → "));
  add("scheduler", std::string(name_of(site.scheduler)));
  add("GPUs of a node", site.gpus ? std::to_string(site.gpus->value) : "as found on the machine");
  add("GPU", site.gpu ? site.gpu->value : "");
  std::vector<std::string> names;
  for (const auto& file : site.modules.source) names.push_back(file.value);
  for (const auto& module : site.modules.load) names.push_back(module.value);
  add("modules", text::join(names, " "));
  for (const auto& [library, definition] : site.libraries)
    add("library", library + ": " + definition.path.value);
  for (const auto& overlay : site.overlays) add("overlay", overlay.name.value);
  print(table.str(context.out()));
}

void add_sites(CLI::App& app, Context& context) {
  auto args = std::make_shared<SitesArgs>();
  auto* command = app.add_subcommand("sites", "The site profiles, and where each was found");
  command->add_option("NAME", args->name, "One profile, in detail");
  command->add_option("--site-dir", args->site_dirs, "Folder with profiles; may be repeated")
      ->check(CLI::ExistingDirectory)
      ->allow_extra_args(false);
  add_sites_check(*command, args, context);
  add_sites_init(*command, context);
  command->callback([args, command, &context] {
    if (!command->get_subcommands().empty()) {
      // What a subcommand has no place for falls to this one.
      if (args->name.empty()) return;
      throw CLI::ValidationError(fmt::format("'{}' is one argument too many", args->name));
    }
    context.run = [args, &context] {
      const auto folders = launch::site_folders(args->site_dirs, context.environment, launch::find_install());
      return args->name.empty() ? list(folders, context) : show(args->name, folders, context);
    };
  });
}

}  // namespace nlaunch::cli
