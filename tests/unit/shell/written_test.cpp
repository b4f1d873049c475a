#include "shell/written.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace nlaunch::shell {
namespace {

namespace fs = std::filesystem;

TEST(Written, ATextNamesAPath) {
  for (const auto* text : {"/a/b", "--config=/a/b", "x:/a/b:y", "[/a/b,/c]", "'/a/b'", "@/a/b", "/a/b/"})
    EXPECT_TRUE(names_path(text, "/a/b", false)) << text;
  for (const auto* text : {"/a/bc", "/x/a/b", "/a/b/c", "a/b", ""})
    EXPECT_FALSE(names_path(text, "/a/b", false)) << text;
  EXPECT_TRUE(names_path("--out=/a/b/c", "/a/b", true));
  EXPECT_FALSE(names_path("/a", "", true));
}

/// A layer over the machine, in which files are written.
class InLayer : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "nlaunch-written-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = fs::canonical(name);
    fs::create_directory(folder_ / "layer");
    layer_.emplace(folder_ / "layer");
    written_.emplace(*layer_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(layer_->make_folder(fs::path(path).parent_path()));
    std::ofstream(*layer_->map(path, Access::replace)) << text;
  }

  static ProgramStart start(const std::string& input = "") {
    ProgramStart start;
    start.folder = "/job";
    if (!input.empty()) start.files[STDIN_FILENO] = input;
    return start;
  }

  /// "path: text" of what a program in /job is told of.
  [[nodiscard]] std::string told(const Words& words, const std::vector<std::string>& variables = {}) const {
    std::vector<std::string> all;
    for (const auto& file : written_->told_to({words, variables, "/job"}))
      all.push_back(file.path + ": " + file.text.value_or("?"));
    return text::join(all, "|");
  }

  fs::path folder_;
  std::optional<ScratchLayer> layer_;
  std::optional<Written> written_;
};

TEST_F(InLayer, AProgramIsToldByItsWordsItsVariablesAndItsFolder) {
  write("/job/a.yaml", "a");
  write("/data/b", "b");
  EXPECT_EQ(told({"train", "--config=a.yaml"}), "/job/a.yaml: a");
  EXPECT_EQ(told({"train", "./a.yaml"}), "/job/a.yaml: a");
  EXPECT_EQ(told({"train"}, {"DATA=/data/b"}), "/data/b: b");
  EXPECT_EQ(told({"train", "b"}), "");
}

TEST_F(InLayer, SomeFilesAreReadByTheirNames) {
  write("/job/.deepspeed_env", "A=1");
  EXPECT_EQ(told({"deepspeed", "train.py"}), "/job/.deepspeed_env: A=1");
}

TEST_F(InLayer, WhatProgramsOfTheJobWriteIsNotTheScripts) {
  write("/job/log", "x");
  write("/job/tee.log", "x");
  write("/job/given", "x");
  written_->redirected("/job/log");
  written_->tee(start("pipe:[1]"), {"tee", "-a", "tee.log"});
  written_->job_prints_to("pipe:[1]", false);
  written_->given("/job/given");
  EXPECT_EQ(told({"train", "log", "tee.log", "given"}), "");
  EXPECT_EQ(written_->outputs_told_to({{"train", "log"}, {}, "/job"}), std::vector<std::string>{"/job/log"});
}

TEST_F(InLayer, ATeeOfTheScriptWrites) {
  write("/job/hosts", "x");
  written_->tee(start("pipe:[2]"), {"tee", "hosts"});
  EXPECT_EQ(told({"train", "hosts"}), "/job/hosts: x");
}

TEST_F(InLayer, ACopyIsTheJobsUntilItIsEdited) {
  write("/job/a", "1");
  written_->copied(start(), {"cp", "a", "b"});
  write("/job/b", "1");
  EXPECT_EQ(told({"train", "b"}), "");
  write("/job/b", "2");
  EXPECT_EQ(told({"train", "b"}), "/job/b: 2");
}

TEST_F(InLayer, AFolderIsToldOfWithWhatIsBelowIt) {
  written_->mkdir(start(), {"mkdir", "-p", "/out/run", "conf"});
  ASSERT_TRUE(layer_->make_folder("/out/run"));
  ASSERT_TRUE(layer_->make_folder("/job/conf"));
  write("/job/conf/a.yaml", "a");
  EXPECT_EQ(told({"train", "--save", "/out/run/ckpt"}), "/out/run/: ");
  EXPECT_EQ(told({"train", "--configs", "conf"}), "/job/conf/: |/job/conf/a.yaml: a");
  EXPECT_EQ(told({"train"}), "");
}

TEST_F(InLayer, WhatIsNoTextIsSaid) {
  write("/job/a", std::string("\0\1", 2));
  write("/job/b", std::string(70'000, 'b'));
  EXPECT_EQ(told({"train", "a", "b"}), "/job/a: ?|/job/b: ?");
}

}  // namespace
}  // namespace nlaunch::shell
