#include "supervise/log_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "unit/supervise/folder.h"

namespace nlaunch::supervise {
namespace {

namespace fs = std::filesystem;

class Appended : public ::testing::Test {
 protected:
  AppendedFile open(const fs::path& path) {
    return {path, [this](const std::string& sentence) { said.push_back(sentence); }};
  }
  static std::string content(const fs::path& path) {
    std::ostringstream all;
    all << std::ifstream(path).rdbuf();
    return all.str();
  }

  Folder made;
  fs::path folder = made.path();
  std::vector<std::string> said;
};

TEST_F(Appended, KeepsWhatIsThereAndIsTheOwnersAlone) {
  const auto path = folder / "a.log";
  {
    auto file = open(path);
    EXPECT_EQ(file.path(), path);
    EXPECT_TRUE(file.append("one\n"));
    EXPECT_TRUE(file.append(""));
  }
  auto again = open(path);
  EXPECT_TRUE(again.append("two\n"));
  EXPECT_EQ(content(path), "one\ntwo\n");
  EXPECT_EQ(again.lost_bytes(), 0U);
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  again.check();
  EXPECT_EQ(said, std::vector<std::string>{});
}

TEST_F(Appended, WhatCannotBeWrittenIsSaidOnceAndCounted) {
  auto file = open("/dev/full");
  EXPECT_EQ(said, std::vector<std::string>{});
  EXPECT_FALSE(file.append("12345"));
  EXPECT_FALSE(file.append("678"));
  EXPECT_EQ(file.lost_bytes(), 8U);
  EXPECT_EQ(said,
            std::vector<std::string>{"cannot write '/dev/full': No space left on device; the run continues"});
}

TEST_F(Appended, OneThatCannotBeOpenedLosesEverything) {
  auto file = open(folder / "no" / "a.log");
  EXPECT_EQ(said, std::vector<std::string>{"cannot write '" + (folder / "no" / "a.log").string() +
                                           "': No such file or directory; the run continues"});
  EXPECT_FALSE(file.append("12345"));
  EXPECT_TRUE(file.append(""));
  file.check();
  EXPECT_EQ(file.lost_bytes(), 5U);
  EXPECT_EQ(said.size(), 1U);
}

TEST_F(Appended, ALinkIsNotFollowed) {
  std::ofstream(folder / "somebody's") << "data";
  fs::create_symlink(folder / "somebody's", folder / "a.log");
  auto file = open(folder / "a.log");
  EXPECT_FALSE(file.append("12345"));
  EXPECT_EQ(content(folder / "somebody's"), "data");
  EXPECT_EQ(said.size(), 1U);
}

TEST_F(Appended, ARemovedOneIsSaidOnceAndOneWithAnotherNameIsNot) {
  const auto path = folder / "a.log";
  auto file = open(path);
  fs::create_hard_link(path, folder / "b.log");
  fs::remove(path);
  file.check();
  EXPECT_EQ(said, std::vector<std::string>{});
  fs::remove(folder / "b.log");
  file.check();
  file.check();
  EXPECT_EQ(said, std::vector<std::string>{"cannot write '" + path.string() +
                                           "': the file was removed; the run continues"});
  EXPECT_TRUE(file.append("12345"));
}

TEST_F(Appended, WithoutAFileNothingIsKept) {
  AppendedFile none;
  none.check();
  EXPECT_FALSE(none.append("12345"));
  EXPECT_EQ(none.lost_bytes(), 5U);
  AppendedFile nobody_listens(folder / "no" / "a.log", nullptr);
  EXPECT_FALSE(nobody_listens.append("1"));
}

}  // namespace
}  // namespace nlaunch::supervise
