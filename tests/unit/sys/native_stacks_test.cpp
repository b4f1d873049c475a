#include "sys/native_stacks.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <thread>

#include "sys/files.h"
#include "sys/proc_threads.h"

namespace nlaunch::sys {
namespace {

using namespace std::chrono_literals;

std::chrono::steady_clock::time_point soon() {
  return std::chrono::steady_clock::now() + 10s;
}

// Exported functions, which a stack can name.
extern "C" {
[[gnu::visibility("default"), gnu::noinline]] void nlaunch_test_computes(const std::atomic<bool>& end) {
  while (!end) {
  }
}
[[gnu::visibility("default"), gnu::noinline]] void nlaunch_test_waits(int fd) {
  char byte = 0;
  while (::read(fd, &byte, 1) < 0) {
  }
}
}

/// A child that calls `act`, and lives until this object goes.
class Child {
 public:
  template <class Act>
  explicit Child(const Act& act) {
    pid_ = ::fork();
    if (pid_ == 0) {
      act();
      ::_exit(0);
    }
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Waits until it has so many threads, and its main thread is in this state.
  void reaches(std::size_t count, char state) const {
    for (int i = 0; i < 1000; ++i, std::this_thread::sleep_for(5ms)) {
      const auto threads = threads_of(pid_);
      if (threads.size() == count && threads[0].state == state) return;
    }
    ADD_FAILURE() << "it did not get there";
  }

 private:
  pid_t pid_ = 0;
};

bool calls(const ThreadStack& stack, std::string_view function) {
  return std::ranges::any_of(stack.calls, [&](const auto& call) { return call.function == function; });
}

TEST(NativeStacks, TellWhereEachThreadIs) {
  const auto pipe = make_pipe().value();
  const Child child([&] {
    std::thread other([&] {
      ::pthread_setname_np(::pthread_self(), "reader");
      nlaunch_test_waits(pipe.read.get());
    });
    nlaunch_test_computes(std::atomic<bool>(false));
  });
  child.reaches(2, 'R');
  std::this_thread::sleep_for(100ms);
  const auto stacks = native_stacks(child.pid(), soon());
  ASSERT_TRUE(stacks) << stacks.error().first_message();
  ASSERT_EQ(stacks->size(), 2U);
  EXPECT_EQ((*stacks)[0].thread, child.pid());
  EXPECT_TRUE(calls((*stacks)[0], "nlaunch_test_computes"));
  EXPECT_TRUE(calls((*stacks)[0], "main"));
  EXPECT_EQ((*stacks)[0].why_not, "");
  EXPECT_EQ((*stacks)[1].name, "reader");
  EXPECT_TRUE(calls((*stacks)[1], "nlaunch_test_waits"));
  EXPECT_TRUE((*stacks)[1].calls[0].file.find("libc") != std::string::npos) << (*stacks)[1].calls[0].file;
  child.reaches(2, 'R');
}

// A signal that arrives when the thread stops is not lost.
TEST(NativeStacks, SignalsArrive) {
  const auto pipe = make_pipe().value();
  static int told = -1;
  told = pipe.write.get();
  const Child child([&] {
    ::signal(SIGUSR1, [](int) { (void)!::write(told, "x", 1); });
    nlaunch_test_computes(std::atomic<bool>(false));
  });
  child.reaches(1, 'R');
  std::this_thread::sleep_for(100ms);
  constexpr int kSignals = 200;
  for (int i = 0; i < kSignals; ++i) {
    ::kill(child.pid(), SIGUSR1);
    ASSERT_TRUE(native_stacks(child.pid(), soon()));
    std::array<char, 8> bytes{};
    ASSERT_EQ(::read(pipe.read.get(), bytes.data(), bytes.size()), 1) << i;
  }
}

TEST(NativeStacks, OfWhatIsStoppedOrGoneAreNone) {
  const Child child([] { ::pause(); });
  child.reaches(1, 'S');
  ::kill(child.pid(), SIGSTOP);
  child.reaches(1, 'T');
  const auto stopped = native_stacks(child.pid(), soon());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().first_message(), "it is stopped (state T), and was left stopped");
  child.reaches(1, 'T');
  ::kill(child.pid(), SIGKILL);
  child.reaches(1, 'Z');
  const auto ended = native_stacks(child.pid(), soon());
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().first_message(), "it has exited (state Z)");
}

TEST(NativeStacks, NeedTime) {
  const Child child([] { ::pause(); });
  child.reaches(1, 'S');
  const auto stacks = native_stacks(child.pid(), std::chrono::steady_clock::now() - 1s);
  ASSERT_FALSE(stacks);
  EXPECT_EQ(stacks.error().first_message(), "no time left");
}

}  // namespace
}  // namespace nlaunch::sys
