#include <memory>

#include "cli/console.h"
#include "config/schema.h"

namespace nlaunch::commands {
namespace {

void add_schema(cli::Command program, cli::Context& context) {
  auto of = std::make_shared<std::string>();
  auto command = program.subcommand("schema", "Print the JSON schema of a file, for editors")
                     .examples({"nlaunch schema experiment", "nlaunch schema site"});
  command.option("FILE", *of, "experiment or site").required().one_of({"experiment", "site"});
  command.when_called([of, &context] {
    context.run = [of, &context] {
      context.console.result(*of == "site" ? config::site_schema() : config::experiment_schema());
      return 0;
    };
  });
}

const Registered<cli::CommandEntry> schema_command{{"schema", 190, add_schema, cli::CommandGroup::set_up}};

}  // namespace
}  // namespace nlaunch::commands
