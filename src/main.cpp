#include <csignal>

#include "cli/program.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that exits must not kill a run
  std::signal(SIGXFSZ, SIG_IGN);  // nor must a log that reaches `ulimit -f`: writing it fails instead
  return nlaunch::cli::run_program(argc, argv);
}
