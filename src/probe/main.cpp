#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/exit_code.h"
#include "probe/container.h"
#include "probe/fabric.h"
#include "probe/facts.h"
#include "probe/folder.h"
#include "probe/interpreter.h"
#include "probe/kernel_log.h"
#include "probe/library.h"
#include "probe/names.h"
#include "probe/nics.h"
#include "probe/node_gpus.h"
#include "probe/nvml_health.h"
#include "probe/nvml_use.h"
#include "probe/output.h"
#include "probe/rank.h"
#include "probe/shared_memory.h"

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
int fabric(Arguments arguments) {
  return print(probe::examine_fabric(arguments.empty() ? "" : arguments[0]));
}
int nics(Arguments arguments) {
  return print(probe::examine_nics(arguments.empty() ? "/" : arguments[0]));
}
int interpreter(Arguments arguments) {
  return print(probe::examine_interpreter(arguments[0], arguments[1]));
}
int torch(Arguments arguments) {
  return print(probe::import_torch(arguments[0], arguments[1], arguments.size() > 2 ? arguments[2] : ""));
}
int names(Arguments arguments) {
  return print(probe::resolve_names(arguments));
}
int folder(Arguments arguments) {
  return print(probe::try_folder(arguments[0]));
}
int gpu_health(Arguments) {
  return print(probe::examine_gpu_health());
}
int kernel_log(Arguments) {
  return print(probe::read_kernel_log());
}
int shared_memory(Arguments arguments) {
  return print(probe::examine_shared_memory(arguments.empty() ? "/dev/shm" : arguments[0]));
}
int version(Arguments) {
  return print(probe::built_in());
}
int library(Arguments arguments) {
  return print(probe::examine_nccl(arguments[0]));
}
int gpu_use(Arguments arguments) {
  constexpr double kEvery = 5;
  return probe::sample_gpu_use(arguments[0], arguments.size() > 1 ? std::stod(arguments[1]) : kEvery);
}
int container(Arguments arguments) {
  return print(probe::examine_container(arguments));
}
int copies(Arguments arguments) {
  return print(probe::measure_copies(arguments));
}
int gemm(Arguments arguments) {
  return print(probe::measure_gemm(arguments));
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
    {"gpu-health", "", "the state of the GPUs and who uses them, by NVML", 0, gpu_health},
    {"gpu-use", "FILE [SECONDS]", "how busy the GPUs are: a line in FILE every 5 s, until it is killed", 1,
     gpu_use},
    {"kernel-log", "", "lines of the kernel log that tell of GPUs", 0, kernel_log},
    {"shared-memory", "[FOLDER]", "what communication libraries have in /dev/shm", 0, shared_memory},
    {"fabric", "[PROVIDER]", "the libfabric that the loader takes in this environment, and what it offers", 0,
     fabric},
    {"nics", "[ROOT]", "the network adapters that the kernel shows (below ROOT)", 0, nics},
    {"names", "NAME...", "what these names, and this host's own, mean here", 0, names},
    {"interpreter", "PYTHON WORKDIR", "how this Python starts, and its packages; torch is not imported", 2,
     interpreter},
    {"torch", "PYTHON WORKDIR [PRELOAD]", "torch, imported: its CUDA and its NCCL", 2, torch},
    {"container", "[FILE...]", "the system and the glibc here, and which of the files cannot be read", 0,
     container},
    {"folder", "PATH", "free space of a folder, and a small file written there", 1, folder},
    {"copies", "[--devices LIST]",
     "how fast bytes move between the GPUs and the host, and whether they arrive", 0, copies},
    {"gemm", "[--devices LIST] [--seconds S]",
     "bf16 matrix products on all GPUs at once, compared bit by bit", 0, gemm},
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
