#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/exit_code.h"
#include "probe/fabric.h"
#include "probe/facts.h"
#include "probe/library.h"
#include "probe/output.h"
#include "probe/rank.h"

namespace {

using namespace nlaunch;
using Arguments = std::span<const std::string>;

int print(const nlohmann::json& line) {
  probe::emit(line);
  return exit_code::ok;
}

int facts(Arguments) {
  return print(probe::machine_facts());
}
int fabric(Arguments) {
  return print(probe::examine_fabric());
}
int version(Arguments) {
  return print(probe::built_in());
}
int library(Arguments arguments) {
  return print(probe::examine_nccl(arguments[0]));
}
int rank(Arguments arguments) {
  return probe::run_rank(arguments);
}

struct Subcommand {
  std::string_view name;
  std::string_view arguments;
  std::string_view what;
  std::size_t at_least;
  int (*run)(Arguments);
};

constexpr Subcommand kSubcommands[] = {
    {"facts", "", "this machine: host, GPUs (by NVML), limits", 0, facts},
    {"library", "PATH", "the version of the libnccl in this file", 1, library},
    {"find-library", "NAME", "what the loader takes for this name in this environment", 1, library},
    {"rank", "--spec FILE --index I", "one rank of a preflight; waits for \"go\" on standard input", 4, rank},
    {"fabric", "", "the libfabric that the loader takes in this environment", 0, fabric},
    {"version", "", "what was built in", 0, version},
};

int usage() {
  fmt::print(stderr, "nlaunch-probe prints JSON lines about this machine for nlaunch.\n");
  for (const auto& command : kSubcommands) {
    fmt::print(stderr, "  nlaunch-probe {} {}\n      {}\n", command.name, command.arguments, command.what);
  }
  return exit_code::usage;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) return usage();
  probe::claim_stdout();
  const std::string_view asked = arguments[0] == "--version" ? "version" : std::string_view(arguments[0]);
  for (const auto& command : kSubcommands) {
    const auto given = Arguments(arguments).subspan(1);
    // Libraries with threads of their own (NCCL, CUDA) must not be torn down by destructors.
    if (command.name == asked && given.size() >= command.at_least) ::_exit(command.run(given));
  }
  return usage();
}
