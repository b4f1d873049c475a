// Processes that are hard to get rid of: `awkward WHAT [TAG]`. TAG is not looked at: a test finds its
// processes by it in /proc/PID/cmdline, which forks keep.
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

extern "C" char** environ;

constexpr unsigned kLong = 1000;

[[noreturn]] void live_on() {
  for (;;) ::sleep(kLong);
}

void ignore_everything() {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_IGN);
}

/// Out of the session, the group and the terminal, deaf, without an environment or PDEATHSIG.
void become_daemon(bool keep_output) {
  if (::fork() > 0) return;
  ::setsid();
  if (::fork() > 0) ::_exit(0);
  ::prctl(PR_SET_PDEATHSIG, 0);
  ignore_everything();
  if (environ != nullptr && environ[0] != nullptr) environ[0] = nullptr;
  if (!keep_output) {
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
  }
  live_on();
}

/// Forks and exits every 200 µs: there is never the same pid twice.
[[noreturn]] void hop(bool new_session) {
  for (;;) {
    if (new_session) ::setsid();
    if (::fork() > 0) ::_exit(0);
    ::usleep(200);
  }
}

void start_hopping(bool new_session) {
  if (::fork() > 0) return;
  ignore_everything();
  ::signal(SIGCHLD, SIG_DFL);
  hop(new_session);
}

[[noreturn]] void flood() {
  const std::string line = std::string(99, 'x') + "\n";
  std::string block;
  while (block.size() < 8000) block += line;
  for (;;) {
    if (::write(1, block.data(), block.size()) < 0) ::_exit(1);
  }
}

/// All of them at once, and itself deaf.
[[noreturn]] void everything() {
  become_daemon(true);
  become_daemon(false);
  start_hopping(false);
  start_hopping(true);
  if (::fork() == 0) flood();
  ignore_everything();
  live_on();
}

void say(std::string_view text) {
  if (::write(1, text.data(), text.size()) < 0) ::_exit(1);
}

int act(std::string_view what) {
  if (what == "sleep") live_on();
  if (what == "deaf") {
    ignore_everything();
    say("deaf\n");
    live_on();
  }
  if (what == "grandchild") {  // forks, exits, and leaves one behind
    if (::fork() == 0) live_on();
    return 0;
  }
  if (what == "daemon") {
    become_daemon(false);
    ::usleep(50000);
    return 0;
  }
  if (what == "holds-pipe") {
    say("last words");
    become_daemon(true);
    ::usleep(50000);
    return 0;
  }
  if (what == "hops") {
    start_hopping(false);
    start_hopping(true);
    ::usleep(50000);
    return 0;
  }
  if (what == "flood") flood();
  if (what == "exit9") return 9;
  if (what == "kill9") ::raise(SIGKILL);
  if (what == "closes-output") {
    say("closing\n");
    ::close(1);
    ::close(2);
    ::usleep(100000);
    return 0;
  }
  if (what == "everything") everything();
  std::fprintf(stderr, "awkward: what is '%s'?\n", std::string(what).c_str());
  return 64;
}

}  // namespace

int main(int argc, char** argv) {
  return act(argc > 1 ? argv[1] : "");
}
