#include <csignal>

#include "cli/program.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away must not end a run
  return nlaunch::cli::run_program(argc, argv);
}
