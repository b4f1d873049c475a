#include "sys/proc_threads.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <thread>

namespace nlaunch::sys {
namespace {

TEST(ProcThreads, TheMainThreadIsTheFirst) {
  std::promise<void> end;
  std::promise<pid_t> tid;
  std::thread sleeper([&] {
    tid.set_value(static_cast<pid_t>(::syscall(SYS_gettid)));
    end.get_future().wait();
  });
  const auto other = tid.get_future().get();
  const auto threads = threads_of(::getpid());
  end.set_value();
  sleeper.join();
  ASSERT_GE(threads.size(), 2U);
  EXPECT_EQ(threads.front().tid, ::getpid());
  EXPECT_EQ(threads.front().state, 'R');
  EXPECT_NE(std::ranges::find(threads, other, &ThreadInfo::tid), threads.end());
}

TEST(ProcThreads, OpenFilesSayWhatTheyAre) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const auto files = open_files(::getpid());
  const auto found = std::ranges::find_if(files, [&](const auto& file) { return file.first == pipe[0]; });
  ::close(pipe[0]);
  ::close(pipe[1]);
  ASSERT_NE(found, files.end());
  EXPECT_TRUE(found->second.starts_with("pipe:[")) << found->second;
}

TEST(ProcThreads, OfNobodyThereIsNothing) {
  constexpr pid_t kNobody = 1 << 30;
  EXPECT_TRUE(threads_of(kNobody).empty());
  EXPECT_TRUE(open_files(kNobody).empty());
  EXPECT_EQ(system_call(kNobody), "");
  EXPECT_FALSE(read_proc_file(kNobody, "stat"));
}

}  // namespace
}  // namespace nlaunch::sys
