#include "launch/bind/preload.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

class Preload : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "nlaunch-preload-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    scope_ = file("libnlaunch-scope.so");
    links_ = folder_ / "attempt-0";
    fs::create_directory(links_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << "x";
    return (folder_ / name).string();
  }
  std::string message(const PreloadRequest& request) {
    const auto value = preload_value(request);
    return value ? "no failure" : value.error().first_message();
  }

  fs::path folder_;
  fs::path links_;
  std::string scope_;
};

TEST_F(Preload, NothingIsPreloadedWithoutLibraries) {
  EXPECT_EQ(preload_value({{}, PreloadScope::process, scope_, links_}).value(), "");
}

TEST_F(Preload, TheScopeLibraryComesLast) {
  const auto a = file("a.so");
  const auto b = file("b.so");
  EXPECT_EQ(preload_value({{a, b}, PreloadScope::process, scope_, links_}).value(),
            a + ":" + b + ":" + scope_);
}

TEST_F(Preload, ScopeTreeNeedsNoScopeLibrary) {
  const auto a = file("a.so");
  EXPECT_EQ(preload_value({{a}, PreloadScope::tree, "/nowhere.so", links_}).value(), a);
}

TEST_F(Preload, APathThatTheLoaderWouldSplitIsReachedThroughALink) {
  for (const auto* name : {"a folder/a.so", "a:folder/a.so", "$LIB/a.so"}) {
    const auto library = file(name);
    const PreloadRequest request{{library}, PreloadScope::tree, scope_, links_};
    const auto value = preload_value(request).value();
    EXPECT_EQ(fs::path(value).parent_path(), links_);
    EXPECT_EQ(value.find_first_of(" :$"), std::string::npos) << value;
    EXPECT_EQ(fs::read_symlink(value), library);
    EXPECT_EQ(preload_value(request).value(), value) << "asked for again";
  }
}

TEST_F(Preload, AFolderForLinksThatTheLoaderWouldSplitIsAnError) {
  const auto library = file("a folder/a.so");
  const auto links = (folder_ / "my runs").string();
  EXPECT_EQ(
      message({{library}, PreloadScope::tree, scope_, links}),
      "cannot preload '" + library + "': the loader splits LD_PRELOAD at blanks and colons, and '" + links +
          "', where a link to it would be created, has one too; choose another directory with --runs-dir");
}

TEST_F(Preload, AMissingLibraryIsAnError) {
  EXPECT_EQ(message({{"/nowhere/a.so"}, PreloadScope::process, scope_, links_}),
            "cannot preload '/nowhere/a.so': No such file or directory");
  const auto both = preload_value({{"/nowhere/a.so"}, PreloadScope::process, "/nowhere/scope.so", links_});
  EXPECT_EQ(both.error().items().size(), 2U);
}

}  // namespace
}  // namespace nlaunch::launch
