#include "session/interrupts.h"

#include <atomic>

#include "supervise/stop_signal.h"

namespace nlaunch::session {
namespace {

std::atomic<int> first_signal = 0;                     // several threads may ask for it
static_assert(std::atomic<int>::is_always_lock_free);  // for a signal handler

void note(int signal) {
  if (first_signal == 0) first_signal = signal;
}

void pass_over(int) {}

}  // namespace

Interrupts::Interrupts() {
  first_signal = 0;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, supervise::stop_signal()}) add(signal, note);
  take();
}

Interrupts::Interrupts(const supervise::Rules& rules) {
  first_signal = 0;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, supervise::stop_signal()}) {
    add(signal, supervise::cause_of(rules, signal) ? note : pass_over);
  }
  take();
}

Interrupts::~Interrupts() {
  for (const auto& [signal, handler, before] : taken_) ::sigaction(signal, &before, nullptr);
}

void Interrupts::add(int signal, void (*handler)(int)) {
  Taken taken{signal, handler, {}};
  ::sigaction(signal, nullptr, &taken.before);
  if (taken.before.sa_handler != SIG_IGN) taken_.push_back(taken);  // stays ignored under nohup
}

void Interrupts::take() const {
  for (const auto& [signal, handler, before] : taken_) {
    struct sigaction action {};
    action.sa_handler = handler;
    ::sigaction(signal, &action, nullptr);
  }
}

int Interrupts::received() {
  return first_signal;
}

}  // namespace nlaunch::session
