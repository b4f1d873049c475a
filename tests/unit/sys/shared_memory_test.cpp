#include "sys/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace nlaunch::sys {
namespace {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    char name[] = "/tmp/nlaunch-shm-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path path;
};

/// Makes the file where it is not there, and maps it.
void* map_file(const fs::path& path) {
  constexpr std::size_t kSize = 4096;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, kSize) != 0) return nullptr;
  void* const at = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  return at == MAP_FAILED ? nullptr : at;
}

/// A process that has mapped files until it is killed.
class Mapper {
 public:
  explicit Mapper(const std::vector<fs::path>& files) {
    int ready[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      for (const auto& file : files) {
        if (map_file(file) == nullptr) ::_exit(1);
      }
      (void)!::write(ready[1], "x", 1);
      for (;;) ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Mapper() { kill(); }
  Mapper(const Mapper&) = delete;
  Mapper& operator=(const Mapper&) = delete;

  [[nodiscard]] ProcessIds ids() const { return {{pid_, process_info(pid_)->start_ticks}}; }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

using Names = std::vector<std::string>;

TEST(SharedMemory, OfAKilledProcessIsRemovedAndWhatWasThereBeforeIsNot) {
  const Folder folder;
  ASSERT_NE(map_file(folder.path / "weights"), nullptr);
  fs::create_directory(folder.path / "stage");
  SharedMemory memory(folder.path);
  Mapper mapper({folder.path / "weights", folder.path / "psm_1", folder.path / "stage/model"});
  ASSERT_NE(map_file(folder.path / "of_others"), nullptr);
  memory.note([&] { return mapper.ids(); });
  mapper.kill();
  EXPECT_EQ(memory.remove(), Names{"psm_1"});
  EXPECT_TRUE(fs::exists(folder.path / "weights"));
  EXPECT_TRUE(fs::exists(folder.path / "stage/model"));
  EXPECT_TRUE(fs::exists(folder.path / "of_others"));
  EXPECT_FALSE(fs::exists(folder.path / "psm_1"));
}

TEST(SharedMemory, ThatALivingProcessHasMappedStays) {
  const Folder folder;
  SharedMemory memory(folder.path);
  Mapper mapper({folder.path / "psm_1", folder.path / "psm_2"});
  Mapper other({folder.path / "psm_1"});
  memory.note([&] { return mapper.ids(); });
  mapper.kill();
  EXPECT_EQ(memory.remove(), Names{"psm_2"});
  EXPECT_TRUE(fs::exists(folder.path / "psm_1"));
}

TEST(SharedMemory, AFileThatHasTakenTheNameStays) {
  const Folder folder;
  SharedMemory memory(folder.path);
  Mapper mapper({folder.path / "psm_1"});
  memory.note([&] { return mapper.ids(); });
  fs::rename(folder.path / "psm_1", folder.path / "old");
  ASSERT_NE(map_file(folder.path / "psm_1"), nullptr);
  mapper.kill();
  EXPECT_EQ(memory.remove(), Names{"old"});
  EXPECT_TRUE(fs::exists(folder.path / "psm_1"));
}

TEST(SharedMemory, WhoMapsAFileMayEndBeforeTheOthers) {
  const Folder folder;
  SharedMemory memory(folder.path);
  Mapper mapper({folder.path / "psm_1"});
  memory.note([&] { return mapper.ids(); });
  mapper.kill();
  memory.note([] { return ProcessIds{}; });
  EXPECT_EQ(memory.remove(), Names{"psm_1"});
}

TEST(SharedMemory, AFileOfSomebodyElseIsLookedAtAFewTimesAlone) {
  const Folder folder;
  SharedMemory memory(folder.path);
  ASSERT_NE(map_file(folder.path / "of_others"), nullptr);
  int asked = 0;
  for (int i = 0; i < 100; ++i) {
    memory.note([&] {
      ++asked;
      return ProcessIds{};
    });
  }
  EXPECT_EQ(asked, 5);
}

TEST(SharedMemory, WithoutAFolderThereIsNone) {
  SharedMemory memory("/nowhere");
  memory.note(own_descendants);
  EXPECT_EQ(memory.remove(), Names{});
}

}  // namespace
}  // namespace nlaunch::sys
