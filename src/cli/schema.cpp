#include "config/schema.h"

#include "cli/context.h"

namespace nlaunch::cli {

void add_schema(CLI::App& app, Context& context) {
  auto of = std::make_shared<std::string>();
  auto* command = app.add_subcommand("schema", "The JSON schema of a file, for editors");
  command->add_option("FILE", *of, "experiment or site")
      ->required()
      ->check(CLI::IsMember({"experiment", "site"}));
  command->callback([of, &context] {
    context.run = [of] {
      print(*of == "site" ? config::site_schema() : config::experiment_schema());
      return 0;
    };
  });
}

}  // namespace nlaunch::cli
