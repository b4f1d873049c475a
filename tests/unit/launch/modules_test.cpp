#include "launch/bind/modules.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sys/spawn.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLmod = "/usr/share/lmod/lmod/init/bash";

/// A real Lmod over modules of the test's own.
class LoadModules : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kLmod)) GTEST_SKIP() << "Lmod is not installed (Debian: lmod)";
    std::string pattern = (fs::temp_directory_path() / "nlaunch-lmod-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    write("compiler/12.lua", "setenv('CC', 'gcc-12')\nprepend_path('PATH', '/opt/gcc/bin')\n");
    write("cuda/12.6.lua",
          "setenv('CUDA_HOME', '/opt/cuda')\nsetenv('CC', 'nvcc')\nsetenv('BLANKS', 'a  b $c')\n");
    base_ = plan::to_environment(sys::own_environment());
    base_["MODULEPATH"] = folder_.string();
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  void write(const std::string& name, const std::string& content) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << content;
  }

  fs::path folder_;
  plan::Environment base_;
};

TEST_F(LoadModules, EachChangeKnowsItsModule) {
  const auto operations = load_modules({kLmod, false, {"compiler/12", "cuda/12.6"}, "site.yaml:3:1"}, base_);
  ASSERT_TRUE(operations) << render(operations.error());
  const auto environment = plan::apply(base_, *operations, {});
  EXPECT_EQ(environment.at("CUDA_HOME"), "/opt/cuda");
  EXPECT_EQ(environment.at("BLANKS"), "a  b $c");
  EXPECT_TRUE(environment.at("PATH").starts_with("/opt/gcc/bin:"));
  const auto steps = plan::explain("CC", {}, *operations, {});
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].op.origin, "module compiler/12");
  EXPECT_EQ(steps[1].op.origin, "module cuda/12.6");
  EXPECT_EQ(steps[1].after, "nvcc");
}

TEST_F(LoadModules, FoldersAreAddedAfterTheReset) {
  write("more/own/1.lua", "setenv('OWN', '1')\n");
  base_["LMOD_SYSTEM_DEFAULT_MODULES"] = "compiler/12";  // what a reset goes back to
  plan::Modules modules{kLmod, true, {"own/1"}, "site.yaml:3:1"};
  EXPECT_FALSE(load_modules(modules, base_));
  modules.use = {(folder_ / "more").string()};
  const auto operations = load_modules(modules, base_);
  ASSERT_TRUE(operations) << render(operations.error());
  EXPECT_EQ(plan::apply(base_, *operations, {}).at("OWN"), "1");
  const auto steps = plan::explain("MODULEPATH", {}, *operations, {});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].op.origin, "module use " + modules.use[0]);
}

TEST_F(LoadModules, AModuleThatIsNotThereIsAFailureWithItsName) {
  const auto operations = load_modules({kLmod, false, {"compiler/12", "nothing/1"}, "site.yaml:3:1"}, base_);
  ASSERT_FALSE(operations);
  const auto message = operations.error().first_message();
  EXPECT_TRUE(message.starts_with("loading modules failed (site.yaml:3:1): ")) << message;
  EXPECT_NE(message.find("nothing/1"), std::string::npos) << message;
}

TEST_F(LoadModules, ANameIsNeverShell) {
  const auto mark = folder_ / "mark";
  const auto operations = load_modules({kLmod, false, {"$(touch " + mark.string() + ")"}, "here"}, base_);
  EXPECT_FALSE(operations);
  EXPECT_FALSE(fs::exists(mark));
}

TEST(SourceFiles, EachChangeKnowsItsFileAndNoModulesAreNeeded) {
  std::string pattern = (fs::temp_directory_path() / "nlaunch-source-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  const auto first = (folder / "first file.sh").string();
  const auto second = (folder / "second.sh").string();
  std::ofstream(first) << "export CONFIG=$LIB_DIR/a.conf\nexport LD_LIBRARY_PATH=$LIB_DIR\n";
  std::ofstream(second) << "export CONFIG=$CONFIG.2\nunset GONE\n";
  plan::Modules modules;
  modules.origin = "site.yaml:3:1";
  modules.set = {{"LIB_DIR", "/var/lib/x"}};
  modules.source = {first, second};
  auto base = plan::to_environment(sys::own_environment());
  base["GONE"] = "here";
  const auto operations = load_modules(modules, base);
  ASSERT_TRUE(operations) << render(operations.error());
  const auto environment = plan::apply(base, *operations, {});
  EXPECT_EQ(environment.at("LIB_DIR"), "/var/lib/x");
  EXPECT_EQ(environment.at("CONFIG"), "/var/lib/x/a.conf.2");
  EXPECT_FALSE(environment.contains("GONE"));
  const auto steps = plan::explain("CONFIG", {}, *operations, {});
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].op.origin, first);
  EXPECT_EQ(steps[1].op.origin, second);

  modules.source = {(folder / "nowhere.sh").string()};
  const auto failed = load_modules(modules, base);
  ASSERT_FALSE(failed);
  const auto message = failed.error().first_message();
  EXPECT_TRUE(message.starts_with("loading modules failed (site.yaml:3:1): ")) << message;
  EXPECT_TRUE(message.ends_with("sourcing " + modules.source[0] + " failed")) << message;
  fs::remove_all(folder);
}

TEST(SourceFiles, ATemporaryFolderThatIsNotThereStopsNothing) {
  std::string pattern = (fs::temp_directory_path() / "nlaunch-source-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  const char* before = std::getenv("TMPDIR");
  const std::string restored = before == nullptr ? "" : before;
  std::ofstream(folder / "one.sh") << "export ONE=1\n";
  plan::Modules modules;
  modules.source = {(folder / "one.sh").string()};
  ::setenv("TMPDIR", (folder / "not-there").c_str(), 1);
  const auto operations = load_modules(modules, {{"PATH", "/usr/bin:/bin"}});
  if (before == nullptr) {
    ::unsetenv("TMPDIR");
  } else {
    ::setenv("TMPDIR", restored.c_str(), 1);
  }
  fs::remove_all(folder);
  ASSERT_TRUE(operations) << render(operations.error());
  EXPECT_EQ(plan::apply({}, *operations, {}).at("ONE"), "1");
}

TEST(LoadNoModules, ChangesNothing) {
  const auto operations = load_modules({}, {});
  ASSERT_TRUE(operations);
  EXPECT_TRUE(operations->empty());
}

}  // namespace
}  // namespace nlaunch::launch
