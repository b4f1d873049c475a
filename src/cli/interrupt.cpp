#include "cli/interrupt.h"

#include <csignal>

#include "supervise/stop_signal.h"

namespace nlaunch::cli {
namespace {

volatile std::sig_atomic_t first_signal = 0;

void note(int signal) {
  if (first_signal == 0) first_signal = signal;
}

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

}  // namespace

Interrupts::Interrupts() {
  first_signal = 0;
  struct sigaction action {};
  action.sa_handler = note;
  ::sigaction(supervise::stop_signal(), &action, nullptr);
  for (const int signal : kSignals) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // under nohup it stays ignored
  }
}

Interrupts::~Interrupts() {
  std::signal(supervise::stop_signal(), SIG_DFL);
  for (const int signal : kSignals) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler == note) std::signal(signal, SIG_DFL);
  }
}

int Interrupts::received() {
  return static_cast<int>(first_signal);
}

}  // namespace nlaunch::cli
