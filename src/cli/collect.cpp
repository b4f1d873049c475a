#include <unistd.h>

#include <iostream>
#include <iterator>

#include "base/exit_code.h"
#include "base/json.h"
#include "cli/context.h"
#include "evidence/collect.h"
#include "sys/files.h"

// `nlaunch collect`: what takes evidence on one host. A process of its own, since what it asks may hang.
namespace nlaunch::cli {
namespace {

constexpr std::uint64_t kLargest = 256U << 20U;

Result<std::string> read_spec(const std::string& file) {
  if (file != "-") return sys::read_regular_file(file, kLargest);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

int collect(const std::string& file, const Context& context) {
  const auto text = read_spec(file);
  if (!text) return complain(context, text.error());
  const auto spec = evidence::spec_from(*text);
  if (!spec) return complain(context, spec.error());
  auto thaw = evidence::Thaw::begin();
  if (!thaw) return complain(context, thaw.error());
  const auto collected = evidence::collect(*spec, *thaw);
  if (!collected) return complain(context, collected.error());
  print(json_text(*collected) + "\n");
  ::_exit(exit_code::ok);  // a thread may hang with the process that it looks at
}

}  // namespace

void add_collect(CLI::App& app, Context& context) {
  auto file = std::make_shared<std::string>();
  auto* command = app.add_subcommand("collect", "On a node: takes evidence of its processes");
  command->group("");  // not for people
  command->add_option("SPEC", *file, "What to collect, as JSON; - for standard input")->required();
  command->callback([file, &context] { context.run = [file, &context] { return collect(*file, context); }; });
}

}  // namespace nlaunch::cli
