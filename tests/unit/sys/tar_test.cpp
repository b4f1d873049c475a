#include "sys/tar.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sys/files.h"

namespace nlaunch::sys {
namespace {

namespace fs = std::filesystem;

/// Archives that the system's tar has made.
class Tar : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "nlaunch-tar-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    fs::create_directories(folder_ / "in" / long_name_);
    std::ofstream(folder_ / "in" / "a.log") << "first\n";
    std::ofstream(folder_ / "in" / long_name_ / "b.log") << std::string(2000, 'b');
    fs::create_symlink("a.log", folder_ / "in" / "link");
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string archive(const std::string& format) {
    const auto command =
        "cd " + folder_.string() + " && tar --sort=name --format=" + format + " -cf out.tar in";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return read_regular_file(folder_ / "out.tar", 1U << 20U).value();
  }

  struct Seen {
    std::vector<std::string> files;  ///< "NAME SIZE"
    std::string wrong;
  };
  static Seen seen_in(const std::string& bytes, bool read_all) {
    Seen seen;
    auto pipe = make_pipe(1 << 20).value();
    EXPECT_TRUE(write_all(pipe.write.get(), bytes));
    pipe.write.reset();
    const auto source = fd_source(std::move(pipe.read), {.longest = std::chrono::seconds(10)});
    TarBlock first{};
    EXPECT_EQ(read_full(*source, first), first.size());
    EXPECT_TRUE(parse_tar_header(first));
    seen.wrong = for_each_tar_file(*source, first, [&](const TarMember& member, ByteSource& content) {
      std::string text(4096, '\0');
      if (read_all) text.resize(read_full(content, text));
      seen.files.push_back(member.name + " " + std::to_string(read_all ? text.size() : member.size));
    });
    return seen;
  }

  fs::path folder_;
  const std::string long_name_ = std::string(90, 'd') + "/" + std::string(90, 'e');
};

TEST_F(Tar, GivesTheFilesOfEveryFormat) {
  for (const auto* format : {"gnu", "pax", "ustar"}) {
    const auto bytes = archive(format);
    for (const bool read_all : {true, false}) {
      const auto seen = seen_in(bytes, read_all);
      EXPECT_EQ(seen.wrong, "") << format;
      EXPECT_EQ(seen.files, (std::vector<std::string>{"in/a.log 6", "in/" + long_name_ + "/b.log 2000"}))
          << format;
    }
  }
}

TEST_F(Tar, SaysWhereAnArchiveIsCutOrBroken) {
  auto bytes = archive("gnu");
  EXPECT_EQ(seen_in(bytes.substr(0, 1100), true).wrong, "truncated archive: the part before that was read");
  bytes[1600] = '\xee';
  EXPECT_EQ(seen_in(bytes, true).wrong, "broken archive: the part before that was read");
}

TEST(TarHeader, IsToldFromAnyOtherText) {
  TarBlock block{};
  EXPECT_FALSE(parse_tar_header(block));
  block.fill('x');
  EXPECT_FALSE(parse_tar_header(block));
}

}  // namespace
}  // namespace nlaunch::sys
