#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/context.h"
#include "config/site.h"

/// The parts of `nlaunch sites`.
namespace nlaunch::cli {

struct SitesArgs {
  std::string name;
  std::vector<std::string> site_dirs;
};

/// What comes out of a profile and those that it extends, to standard output.
void show_site(const config::Site& site, const Context& context);

/// Adds `check` and `init` to `sites`; --site-dir is that of `sites`.
void add_sites_check(CLI::App& sites, const std::shared_ptr<SitesArgs>& args, Context& context);
void add_sites_init(CLI::App& sites, Context& context);

}  // namespace nlaunch::cli
