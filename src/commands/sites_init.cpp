#include <filesystem>

#include "base/exit_code.h"
#include "base/text.h"
#include "commands/sites.h"
#include "emit/site_profile.h"
#include "launch/install.h"
#include "launch/site_facts.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
namespace {

struct SitesInitArgs {
  std::string name;
  std::string output;
};

/// A name for --site from the name of a machine.
std::string simple_name(std::string_view called) {
  std::string name;
  for (const char c : text::lower(called.substr(0, called.find('.')))) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    name += plain ? c : '-';
  }
  return name.empty() || name.front() == '-' ? "site" + name : name;
}

int init(const SitesInitArgs& args, const Context& context) {
  const auto facts = launch::find_site_facts(launch::find_install(), context.environment);
  const auto name =
      args.name.empty() ? simple_name(facts.cluster.empty() ? facts.host : facts.cluster) : args.name;
  const auto profile = emit::site_profile(facts, name);
  if (args.output.empty()) {
    context.console.result(profile);
    return 0;
  }
  std::error_code error;
  if (std::filesystem::exists(args.output, error)) {
    context.console.say(
        fmt::format("nlaunch sites init: '{}' already exists: remove it, or choose another --output\n",
                    text::printable(args.output)));
    return exit_code::usage;
  }
  if (const auto wrote = sys::write_named_file(args.output, profile); !wrote)
    return context.console.error(wrote.error());
  if (!context.console.quiet) {
    const std::vector<std::string> next{"nlaunch", "sites", "check", args.output};
    context.console.say(fmt::format("review it, answer the questions in its comments, then run: {}\n",
                                    text::shell_join(next)));
  }
  return 0;
}

}  // namespace

void add_sites_init(Command sites, Context& context) {
  auto args = std::make_shared<SitesInitArgs>();
  auto command = sites.subcommand("init", "Generate a profile for this machine from what is detected on it")
                     .examples({"nlaunch sites init", "nlaunch sites init --name mine --output mine.yaml"});
  command.option("--name", args->name, "Name of the profile [default: the cluster's, else the machine's]")
      .checked([](const std::string& name) {
        return simple_name(name) == name
                   ? ""
                   : fmt::format("'{}' is not a valid profile name; use {}", name, simple_name(name));
      });
  command.option("--output", args->output, "Write to this file instead of standard output")
      .value_name("FILE");
  command.when_called([args, &context] { context.run = [args, &context] { return init(*args, context); }; });
}

}  // namespace nlaunch::commands
