#include <csignal>

#include "cli/program.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away must not end a run
  std::signal(SIGXFSZ, SIG_IGN);  // nor a log that is as large as `ulimit -f` permits: writing it fails
  return nlaunch::cli::run_program(argc, argv);
}
