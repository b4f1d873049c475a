#include <unistd.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <iterator>

#include "base/exit_code.h"
#include "base/json.h"
#include "cli/console.h"
#include "evidence/collect.h"
#include "sys/files.h"

// `nlaunch collect`: collects evidence on one host. A separate process, because what it queries may hang.
namespace nlaunch::commands {

using namespace cli;
namespace {

constexpr std::uint64_t kLargest = 256U << 20U;

Result<std::string> read_spec(const std::string& file) {
  if (file != "-") return sys::read_regular_file(file, kLargest);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

int collect(const std::string& file, const Context& context) {
  const auto text = read_spec(file);
  if (!text) return context.console.error(text.error());
  const auto spec = evidence::spec_from(*text);
  if (!spec) return context.console.error(spec.error());
  const auto collected = evidence::collect(*spec);
  if (!collected) return context.console.error(collected.error());
  context.console.result(json_text(*collected) + "\n");
  ::_exit(exit_code::ok);  // a thread may hang with the process that it inspects
}

void add_collect(Command program, Context& context) {
  auto file = std::make_shared<std::string>();
  auto command = program.subcommand("collect", "Collect evidence from the processes of a node");
  command.option("SPEC", *file, "What to collect, as JSON; - for standard input").required();
  command.when_called(
      [file, &context] { context.run = [file, &context] { return collect(*file, context); }; });
}

const Registered<cli::CommandEntry> collect_command{{"collect", 230, add_collect}};

}  // namespace

}  // namespace nlaunch::commands
