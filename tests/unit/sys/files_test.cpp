#include "sys/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace nlaunch::sys {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "nlaunch-files-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(Files, ReadsRegularFilesAloneAndOnlyUpToTheLimit) {
  std::ofstream(folder_ / "file") << "content";
  EXPECT_EQ(read_regular_file(folder_ / "file", 100), "content");
  const auto message = [&](const fs::path& path, std::uint64_t limit) {
    const auto read = read_regular_file(path, limit);
    return read ? *read : read.error().first_message();
  };
  EXPECT_EQ(message(folder_ / "file", 3),
            "'" + (folder_ / "file").string() + "' has 7 bytes, more than the limit of 3");
  EXPECT_EQ(message(folder_, 3), "'" + folder_.string() + "' is a directory, not a file");
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(message(folder_ / "fifo", 3), "'" + (folder_ / "fifo").string() + "' is a FIFO, not a file");
  EXPECT_EQ(message("/dev/zero", 3), "'/dev/zero' is a device, not a file");
}

TEST_F(Files, FollowsNoLinkWhereTheseAreRefused) {
  std::ofstream(folder_ / "file") << "content";
  fs::create_symlink(folder_ / "file", folder_ / "link");
  fs::create_directory_symlink(folder_, folder_ / "linked");
  EXPECT_EQ(read_regular_file(folder_ / "link", 100), "content");
  EXPECT_EQ(read_regular_file(folder_ / "file", 100, Links::refused), "content");
  const auto refused = read_regular_file(folder_ / "link", 100, Links::refused);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().first_message(),
            "'" + (folder_ / "link").string() + "' is a symbolic link, which is not followed");
  EXPECT_TRUE(is_folder_itself(folder_));
  EXPECT_FALSE(is_folder_itself(folder_ / "linked"));
  EXPECT_FALSE(is_folder_itself(folder_ / "file"));
  EXPECT_FALSE(is_folder_itself(folder_ / "nothing"));
}

TEST_F(Files, NamesOfAFolderAreInTheOrderOfTheirNumbers) {
  for (const auto* name : {"mlx5_10", "mlx5_9", "efa0", ".hidden"}) std::ofstream(folder_ / name) << "";
  EXPECT_EQ(names_in(folder_), (std::vector<std::string>{".hidden", "efa0", "mlx5_9", "mlx5_10"}));
  EXPECT_EQ(names_in(folder_ / "efa0"), std::vector<std::string>{});
  EXPECT_EQ(names_in(folder_ / "nowhere"), std::vector<std::string>{});
}

TEST_F(Files, AFileIsReplacedWholeOrNotAtAll) {
  ASSERT_TRUE(write_file_atomically(folder_ / "a", "one"));
  ASSERT_TRUE(write_file_atomically(folder_ / "a", "two"));
  EXPECT_EQ(read_regular_file(folder_ / "a", 10), "two");
  EXPECT_FALSE(write_file_atomically(folder_ / "none" / "a", "three"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, ANamedFileIsWrittenAsAShellWouldDoIt) {
  const auto masked = ::umask(027);
  ASSERT_TRUE(write_named_file(folder_ / "a", "one"));
  ::umask(masked);
  EXPECT_EQ(fs::status(folder_ / "a").permissions(), fs::perms(0640));
  fs::permissions(folder_ / "a", fs::perms(0604));
  fs::create_symlink("a", folder_ / "link");
  ASSERT_TRUE(write_named_file(folder_ / "link", "two"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_regular_file(folder_ / "a", 10), "two");
  EXPECT_EQ(fs::status(folder_ / "a").permissions(), fs::perms(0604));
  fs::create_symlink("not-yet", folder_ / "dangling");
  ASSERT_TRUE(write_named_file(folder_ / "dangling", "three"));
  EXPECT_EQ(read_regular_file(folder_ / "not-yet", 10), "three");
}

TEST_F(Files, ADeviceAndAPipeAreWrittenToAndNeverReplaced) {
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const UniqueFd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(write_named_file(pipe, "one"));
  std::array<char, 8> block{};
  EXPECT_EQ(::read(reader.get(), block.data(), block.size()), 3);
  EXPECT_TRUE(fs::is_fifo(pipe));
  fs::create_symlink("/dev/full", folder_ / "full");
  const auto full = write_named_file(folder_ / "full", "one");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().first_message(),
            "cannot write '" + (folder_ / "full").string() + "': No space left on device");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(Files, APrivateFolderIsOnesOwnAndNoLink) {
  ASSERT_TRUE(make_private_folder(folder_ / "a" / "b"));
  EXPECT_EQ(fs::status(folder_ / "a" / "b").permissions(), fs::perms::owner_all);
  EXPECT_TRUE(make_private_folder(folder_ / "a" / "b"));
  fs::create_directory_symlink(folder_ / "a", folder_ / "link");
  const auto link = make_private_folder(folder_ / "link");
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().first_message(),
            "'" + (folder_ / "link").string() + "' already exists and is not a directory of this user");
}

TEST(WriteFileAtomically, SeveralWritersOfOneFileAreNotInEachOthersWay) {
  std::string folder = "/tmp/nlaunch-files-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::vector<std::thread> writers;
  std::atomic<int> failures = 0;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&] {
      for (int n = 0; n < 200; ++n) failures += write_file_atomically(folder + "/file", "content") ? 0 : 1;
    });
  }
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(read_regular_file(folder + "/file", 100).value(), "content");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "nothing else is left";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace nlaunch::sys
