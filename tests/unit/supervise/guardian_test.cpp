#include "supervise/guardian.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <functional>

#include "supervise/stop_signal.h"

namespace nlaunch::supervise {
namespace {

TEST(GuardianLink, WithoutAGuardianItIsNeverLost) {
  const GuardianLink none;
  EXPECT_EQ(none.fd(), -1);
  EXPECT_EQ(none.guardian(), ::getpid());
  EXPECT_TRUE(none.alive());
  none.announce("/run");
}

/// A process of this test that becomes a guardian; its supervisor does `work`, and both write what they see
/// into a pipe.
class Guarded {
 public:
  using Say = std::function<void(const std::string& sentence)>;
  explicit Guarded(
      const std::function<int(const GuardianLink& link, const Say& say)>& work,
      const std::function<void()>& before = [] {}, Successor successor = {}) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      const rlimit no_core{0, 0};
      ::setrlimit(RLIMIT_CORE, &no_core);
      const Say say = [fd = ends[1]](const std::string& sentence) { sys::write_all(fd, sentence + "\n"); };
      before();
      const auto link = enter_guarded(
          [&](const SupervisorLost& lost) {
            say(fmt::format("lost '{}' {}{} swept {} left {}", lost.run_folder, lost.status.str(),
                            lost.forwarded ? " forwarded" : "", lost.swept.killed.size(),
                            lost.swept.survivors.size()));
          },
          successor);
      ::_exit(work(link, say));
    }
    ::close(ends[1]);
    said_ = sys::UniqueFd(ends[0]);
  }
  ~Guarded() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// The next line; empty at the end.
  [[nodiscard]] std::string line() const {
    std::string text;
    char letter = 0;
    while (::read(said_.get(), &letter, 1) == 1 && letter != '\n') text += letter;
    return text;
  }
  /// The guardian's exit code.
  int ended() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  sys::UniqueFd said_;
};

void sleep_for_long() {
  for (;;) ::pause();
}

TEST(Guardian, EndsAsItsSupervisorDoes) {
  for (const int code : {0, 7}) {
    Guarded guarded([&](const GuardianLink&, const Guarded::Say&) { return code; });
    EXPECT_EQ(guarded.ended(), code);
    EXPECT_EQ(guarded.line(), "");
  }
}

TEST(Guardian, TheSupervisorHasASessionOfItsOwnAndTheSignalsAsTheyWere) {
  Guarded guarded(
      [](const GuardianLink& link, const Guarded::Say& say) {
        sigset_t mask;
        ::sigprocmask(SIG_BLOCK, nullptr, &mask);
        const auto blocked = [&](int signal) { return ::sigismember(&mask, signal) == 1 ? "yes" : "no"; };
        struct sigaction pipe {};
        ::sigaction(SIGPIPE, nullptr, &pipe);
        say(fmt::format("{} session {} parent {} alive {} fd {}",
                        link.guardian() == ::getppid() ? "guarded" : "not", ::getsid(0) == ::getpid(),
                        ::getppid() > 0, link.alive(), link.fd() >= 0));
        say(fmt::format("blocked TERM {} USR1 {} CHLD {} stop {}", blocked(SIGTERM), blocked(SIGUSR1),
                        blocked(SIGCHLD), blocked(stop_signal())));
        say(pipe.sa_handler == SIG_IGN ? "no SIGPIPE" : "SIGPIPE");
        return 0;
      },
      [] {
        sigset_t set;
        ::sigemptyset(&set);
        for (const int signal : {SIGUSR1, stop_signal()}) ::sigaddset(&set, signal);
        ::sigprocmask(SIG_BLOCK, &set, nullptr);
      });
  EXPECT_EQ(guarded.line(), "guarded session true parent true alive true fd true");
  EXPECT_EQ(guarded.line(), "blocked TERM no USR1 yes CHLD no stop no");
  EXPECT_EQ(guarded.line(), "no SIGPIPE");
  EXPECT_EQ(guarded.ended(), 0);
}

TEST(Guardian, SweepsAndSaysWhereTheFilesAreWhenItsSupervisorWasKilled) {
  Guarded guarded([](const GuardianLink& link, const Guarded::Say& say) {
    if (::fork() == 0) sleep_for_long();
    link.announce("/first");
    link.announce("/runs/a");
    say("killed");
    ::kill(::getpid(), SIGKILL);
    return 0;
  });
  EXPECT_EQ(guarded.line(), "killed");
  EXPECT_EQ(guarded.line(), "lost '/runs/a' was killed by SIGKILL swept 1 left 0");
  EXPECT_EQ(guarded.ended(), 70);
}

TEST(Guardian, WhatIsLeftOfARunThatEndedByItselfIsSweptToo) {
  Guarded guarded([](const GuardianLink&, const Guarded::Say& say) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setsid();
      sleep_for_long();
    }
    say(std::to_string(child));
    return 3;
  });
  const auto child = static_cast<pid_t>(std::stoi(guarded.line()));
  EXPECT_EQ(guarded.ended(), 3);
  EXPECT_EQ(guarded.line(), "") << "all that held the pipe are gone";
  EXPECT_NE(::getsid(child), child);
}

TEST(Guardian, WhatWasThereBeforeStays) {
  pid_t before = 0;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  Guarded guarded([](const GuardianLink&, const Guarded::Say&) { return 0; },
                  [&] {
                    before = ::fork();
                    if (before == 0) sleep_for_long();
                    sys::write_all(ends[1], std::to_string(before) + " ");
                  });
  EXPECT_EQ(guarded.ended(), 0);
  std::string text(20, ' ');
  ASSERT_GT(::read(ends[0], text.data(), text.size()), 0);
  EXPECT_EQ(::kill(static_cast<pid_t>(std::stoi(text)), SIGKILL), 0) << "it lived";
  for (const int end : ends) ::close(end);
}

TEST(Guardian, PassesOnWhatEndsARun) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, stop_signal()}) {
    ::signal(signal,
             SIG_DFL);  // under nohup, or in the background of a script, some are ignored, and stay so
    Guarded guarded([](const GuardianLink&, const Guarded::Say& say) {
      say("ready");
      sleep_for_long();
      return 0;
    });
    EXPECT_EQ(guarded.line(), "ready");
    EXPECT_EQ(::kill(guarded.pid(), signal), 0);
    const auto line = guarded.line();
    EXPECT_TRUE(line.starts_with("lost '' was ") && line.ends_with(" forwarded swept 0 left 0")) << line;
    EXPECT_EQ(guarded.ended(), exit_code_of_stop(signal)) << signal;
  }
}

TEST(Guardian, WhatTheSupervisorDidToItselfIsNobodysWish) {
  Guarded guarded([](const GuardianLink&, const Guarded::Say&) {
    ::kill(::getpid(), SIGTERM);
    sleep_for_long();
    return 0;
  });
  EXPECT_EQ(guarded.line(), "lost '' was terminated by SIGTERM swept 0 left 0");
  EXPECT_EQ(guarded.ended(), 70);
}

TEST(Guardian, WhatWasIgnoredFromTheStartIsNotPassedOn) {
  Guarded guarded(
      [](const GuardianLink&, const Guarded::Say& say) {
        ::signal(SIGHUP, SIG_DFL);  // it would end by one that is passed on
        say("ready");
        sleep_for_long();
        return 0;
      },
      [] { ::signal(SIGHUP, SIG_IGN); });
  EXPECT_EQ(guarded.line(), "ready");
  ::kill(guarded.pid(), SIGHUP);
  ::kill(guarded.pid(), SIGTERM);
  EXPECT_EQ(guarded.line(), "lost '' was terminated by SIGTERM forwarded swept 0 left 0");
  EXPECT_EQ(guarded.ended(), 143);
}

TEST(Guardian, StopsAloneAndGoesOn) {
  Guarded guarded([](const GuardianLink&, const Guarded::Say& say) {
    say("ready");
    sleep_for_long();
    return 0;
  });
  EXPECT_EQ(guarded.line(), "ready");
  ::kill(guarded.pid(), SIGTSTP);
  int status = 0;
  ASSERT_EQ(::waitpid(guarded.pid(), &status, WUNTRACED), guarded.pid());
  EXPECT_TRUE(WIFSTOPPED(status));
  ::kill(guarded.pid(), SIGCONT);
  ::kill(guarded.pid(), SIGTERM);
  EXPECT_EQ(guarded.line(), "lost '' was terminated by SIGTERM forwarded swept 0 left 0");
  EXPECT_EQ(guarded.ended(), 143);
}

TEST(Guardian, ItsEndIsSeen) {
  Guarded guarded([](const GuardianLink& link, const Guarded::Say& say) {
    say(std::to_string(::getpid()));
    pollfd gone{link.fd(), POLLIN, 0};
    ::poll(&gone, 1, 5000);
    link.announce("/nobody");
    say(link.alive() ? "alive" : "gone");
    return 0;
  });
  const auto supervisor = guarded.line();
  EXPECT_FALSE(supervisor.empty());
  ::kill(guarded.pid(), SIGKILL);
  EXPECT_EQ(guarded.ended(), -SIGKILL);
  EXPECT_EQ(guarded.line(), "gone");
}

/// A supervisor that has a child and is killed.
int killed_with_a_child(const GuardianLink& link, const Guarded::Say& say) {
  link.announce("/runs/id");
  const auto child = ::fork();
  if (child == 0) sleep_for_long();
  say(std::to_string(child));
  ::kill(::getpid(), SIGKILL);
  return 1;
}

TEST(Guardian, BecomesWhatTakesTheRunOverAndEndsNothing) {
  Guarded guarded(killed_with_a_child, [] {}, {.become = [](const SupervisorLost& lost) {
                    sigset_t mask;
                    ::sigprocmask(SIG_BLOCK, nullptr, &mask);
                    if (lost.run_folder == "/runs/id" && lost.status.signal() == SIGKILL &&
                        ::sigismember(&mask, SIGTERM) == 0)
                      ::execl("/bin/sh", "sh", "-c", "exit 42", nullptr);
                  }});
  const auto child = static_cast<pid_t>(std::stoi(guarded.line()));
  EXPECT_EQ(guarded.ended(), 42);
  EXPECT_EQ(::kill(child, 0), 0);
  ::kill(child, SIGKILL);
}

TEST(Guardian, EndsTheRunWhereNothingTakesItOver) {
  Guarded guarded(killed_with_a_child, [] {}, {.become = [](const SupervisorLost&) {}});
  EXPECT_NE(guarded.line(), "");
  EXPECT_EQ(guarded.line(), "lost '/runs/id' was killed by SIGKILL swept 1 left 0");
  EXPECT_EQ(guarded.ended(), 70);
}

TEST(Guardian, ARunThatWasToldToStopIsNotTakenOver) {
  Guarded guarded(
      [](const GuardianLink& link, const Guarded::Say& say) {
        link.announce("/runs/id");
        say("here");
        sleep_for_long();
        return 1;
      },
      [] {}, {.become = [](const SupervisorLost&) { ::_exit(42); }});
  EXPECT_NE(guarded.line(), "");
  ::kill(guarded.pid(), SIGTERM);
  EXPECT_EQ(guarded.line(), "lost '/runs/id' was terminated by SIGTERM forwarded swept 0 left 0");
  EXPECT_EQ(guarded.ended(), 143);
}

TEST(Guardian, ItsSuccessorOwnsWhatIsThere) {
  const auto with_a_child = [] {
    if (::fork() > 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // when nobody sweeps it
    sleep_for_long();
  };
  const auto killed = [](const GuardianLink&, const Guarded::Say&) {
    ::kill(::getpid(), SIGKILL);
    return 1;
  };
  EXPECT_EQ(Guarded(killed, with_a_child, {.inherits = true}).line(),
            "lost '' was killed by SIGKILL swept 1 left 0");
  EXPECT_EQ(Guarded(killed, with_a_child).line(), "lost '' was killed by SIGKILL swept 0 left 0");
}

}  // namespace
}  // namespace nlaunch::supervise
