#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cli/console.h"
#include "config/site.h"

/// Subcommands of `nlaunch sites`.
namespace nlaunch::commands {

struct SitesArgs {
  std::string name;
  std::vector<std::string> site_dirs;
};

/// Prints what a profile and the profiles that it extends resolve to.
void show_site(const config::Site& site, const cli::Context& context);

/// Adds `check` and `init` to `sites`; both use the --site-dir of `sites`.
void add_sites_check(cli::Command sites, const std::shared_ptr<SitesArgs>& args, cli::Context& context);
void add_sites_init(cli::Command sites, cli::Context& context);

}  // namespace nlaunch::commands
