#include "shell/scratch_layer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>

namespace nlaunch::shell {
namespace {

namespace fs = std::filesystem;

class Layer : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "nlaunch-layer-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    all_ = fs::canonical(name);
    machine_ = all_ / "machine";
    fs::create_directories(machine_ / "folder");
    fs::create_directory(all_ / "layer");
    write(machine_ / "file", "old");
    layer_.emplace(all_ / "layer");
  }
  void TearDown() override { fs::remove_all(all_); }

  static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
  static std::string read(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  /// The errno of an access, or 0.
  int refused(const fs::path& path, Access access) {
    const auto where = layer_->map(path, access);
    return where ? 0 : where.error();
  }
  [[nodiscard]] fs::path inside(const fs::path& path) const {
    return layer_->folder().native() + path.native();
  }
  [[nodiscard]] fs::path resolved(const fs::path& path, bool follow = true) const {
    return layer_->resolved(path, follow, ::getpid()).value_or("error");
  }

  fs::path all_;
  fs::path machine_;
  std::optional<ScratchLayer> layer_;
};

TEST_F(Layer, WhatIsReadIsTheMachinesUntilItIsWritten) {
  const auto file = machine_ / "file";
  EXPECT_EQ(layer_->map(file, Access::read), file);
  EXPECT_EQ(layer_->map(file, Access::write), inside(file));
  EXPECT_EQ(read(inside(file)), "old");
  write(inside(file), "new");
  EXPECT_EQ(layer_->map(file, Access::read), inside(file));
  EXPECT_EQ(read(file), "old");
  EXPECT_TRUE(layer_->covers(file));
  EXPECT_FALSE(layer_->covers(machine_ / "other"));
}

TEST_F(Layer, AReplacedFileKeepsItsRights) {
  const auto file = machine_ / "file";
  fs::permissions(file, fs::perms::owner_all);
  EXPECT_EQ(layer_->map(file, Access::replace), inside(file));
  EXPECT_EQ(fs::status(inside(file)).permissions(), fs::perms::owner_all);
}

TEST_F(Layer, WhatIsRemovedIsGoneForAllButTheMachine) {
  const auto file = machine_ / "file";
  const auto removed = layer_->map(file, Access::remove);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error(), 0);  // nothing is left to do
  EXPECT_EQ(refused(file, Access::remove), ENOENT);
  EXPECT_FALSE(fs::exists(layer_->map_to_read(file)));
  EXPECT_EQ(refused(file, Access::change), ENOENT);
  EXPECT_TRUE(fs::exists(file));
  EXPECT_EQ(layer_->map(file, Access::create), inside(file));
  EXPECT_EQ(read(inside(file)), "");
}

TEST_F(Layer, AccessesFailAsTheyDoOnAFileSystem) {
  EXPECT_EQ(refused(machine_ / "file", Access::create), EEXIST);
  EXPECT_EQ(refused(machine_ / "none", Access::change), ENOENT);
  EXPECT_EQ(refused(machine_ / "none", Access::remove), ENOENT);
  EXPECT_EQ(refused(machine_ / "none" / "x", Access::create), ENOENT);
  EXPECT_EQ(refused(machine_ / "folder", Access::write), EISDIR);
  EXPECT_EQ(refused(machine_ / "new", Access::write), 0);
}

TEST_F(Layer, DevicesTakeWritesAndNothingElse) {
  EXPECT_EQ(layer_->map("/dev/null", Access::write), "/dev/null");
  EXPECT_EQ(refused("/dev/null", Access::remove), EACCES);
  EXPECT_EQ(refused("/dev/null", Access::change), EACCES);
  EXPECT_EQ(layer_->map("/proc/1/fd/1", Access::write), "/proc/1/fd/1");
  EXPECT_EQ(refused("/proc/1/fd/1", Access::change), EACCES);
  EXPECT_EQ(layer_->map("/dev/sda", Access::write), inside("/dev/sda"));
}

TEST_F(Layer, AFileMayBePermitted) {
  const auto file = machine_ / "file";
  layer_->permit(file);
  EXPECT_EQ(layer_->map(file, Access::write), file);
  EXPECT_EQ(refused(file, Access::remove), EACCES);
}

TEST_F(Layer, PathsAreResolvedThroughIt) {
  EXPECT_EQ(resolved(machine_ / "folder/../file"), machine_ / "file");
  fs::create_symlink("folder", machine_ / "link");
  EXPECT_EQ(resolved(machine_ / "link/x"), machine_ / "folder/x");
  EXPECT_EQ(resolved(machine_ / "link"), machine_ / "folder");
  EXPECT_EQ(resolved(machine_ / "link", false), machine_ / "link");
  EXPECT_EQ(resolved(inside(machine_ / "file")), machine_ / "file");
  fs::create_symlink("loop", machine_ / "loop");
  const auto loop = layer_->resolved(machine_ / "loop/x", true, 1);
  ASSERT_FALSE(loop);
  EXPECT_EQ(loop.error(), ELOOP);
}

TEST_F(Layer, ALinkOfItsOwnLeadsIntoIt) {
  (void)layer_->map(machine_ / "folder", Access::remove);
  const auto link = machine_ / "folder";  // where the machine has a folder
  const auto where = layer_->map(link, Access::create);
  ASSERT_TRUE(where);
  fs::create_symlink(layer_->link_target(link, "/etc"), *where);
  EXPECT_EQ(fs::read_symlink(*where), inside("/etc"));
  EXPECT_EQ(resolved(link / "passwd"), "/etc/passwd");
  EXPECT_EQ(layer_->map(resolved(link / "new"), Access::write), inside("/etc/new"));
  // However far up a relative one climbs.
  EXPECT_EQ(layer_->link_target(machine_ / "x", "../../../../../../../../etc"), inside("/etc"));
}

TEST_F(Layer, ADescriptorIsItsFile) {
  std::ofstream open(machine_ / "file", std::ios::app);
  const auto fd = ::open((machine_ / "file").c_str(), O_RDONLY | O_CLOEXEC);
  const auto name = "/proc/self/fd/" + std::to_string(fd);
  EXPECT_EQ(resolved(name), machine_ / "file");
  EXPECT_EQ(layer_->map(resolved(name), Access::write), inside(machine_ / "file"));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto pipe = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(ends[1]);
  EXPECT_EQ(resolved(pipe), pipe);
  ::close(fd);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Layer, KnowsItsSize) {
  const auto where = layer_->map(machine_ / "new", Access::write);
  write(*where, std::string(1000, 'x'));
  EXPECT_EQ(layer_->size(), 1000U);
}

}  // namespace
}  // namespace nlaunch::shell
