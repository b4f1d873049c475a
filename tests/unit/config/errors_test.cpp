// Every folder of tests/errors that is named after a diagnostic of this layer ("config.type", or a variant,
// "config.type.env") holds a wrong input and all that is said about it. NLAUNCH_UPDATE_EXPECTED=1 rewrites.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "base/version.h"
#include "config/site.h"

namespace nlaunch::config {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(NLAUNCH_SOURCE_DIR) / "tests" / "errors";

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

bool is_ours(const std::string& name) {
  return name.starts_with("config.") || name.starts_with("site.");
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (is_ours(entry.path().filename())) names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

/// "config.type" of "config.type.env".
std::string id_of(const std::string& name) {
  return name.substr(0, name.find('.', name.find('.') + 1));
}

struct Options {
  std::vector<Setting> settings;
  std::vector<std::string> with;
};

/// options.txt: one option a line.
Options read_options() {
  Options options;
  std::stringstream lines(read("options.txt"));
  for (std::string line; std::getline(lines, line);) {
    const auto option = line.substr(0, line.find(' '));
    const auto value = line.substr(option.size() + 1);
    if (option == "--with") {
      options.with.push_back(value);
    } else {
      options.settings.push_back(parse_setting(option, value).value());
    }
  }
  return options;
}

template <class T>
std::string rendered(const Result<T>& result) {
  return result ? "no error\n" : render(result.error());
}

/// The text with VERSION in place of nlaunch's own, which the files outlive.
std::string without_version(std::string text) {
  const auto own = fmt::format("this nlaunch ({})", version());
  if (const auto at = text.find(own); at != std::string::npos)
    text.replace(at, own.size(), "this nlaunch (VERSION)");
  return text;
}

/// What is said about the input of the current folder.
std::string complaint() {
  const auto options = read_options();
  if (fs::exists("input.yaml"))
    return rendered(load_experiment("input.yaml", options.settings, options.with));
  if (fs::exists("site.yaml")) return rendered(load_site("site.yaml", {"."}, options.settings));
  return rendered(choose_site({"sites"}, {"nid001", "", "", {}}, options.settings));
}

class Errors : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { fs::current_path(kFolder / GetParam()); }
  void TearDown() override { fs::current_path(NLAUNCH_SOURCE_DIR); }
};

TEST_P(Errors, SaysWhatIsWrong) {
  const auto said = without_version(complaint());
  if (std::getenv("NLAUNCH_UPDATE_EXPECTED") != nullptr) std::ofstream("expected.txt") << said;
  EXPECT_EQ(said, read("expected.txt"));
  EXPECT_NE(said.find("[" + id_of(GetParam()) + "]"), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(Folder, Errors, testing::ValuesIn(cases()), [](const auto& folder) {
  return std::regex_replace(folder.param, std::regex("[^a-z0-9]"), "_");
});

TEST(ErrorIds, EachHasAFolder) {
  std::set<std::string> missing;
  const std::regex id("\"((config|site)\\.[a-z-]+)\"");
  for (const auto& entry : fs::directory_iterator(fs::path(NLAUNCH_SOURCE_DIR) / "src" / "config")) {
    if (!entry.is_regular_file()) continue;
    const auto source = read(entry.path());
    for (std::sregex_iterator at(source.begin(), source.end(), id), end; at != end; ++at) {
      if (!fs::exists(kFolder / (*at)[1].str() / "expected.txt")) missing.insert((*at)[1]);
    }
  }
  EXPECT_EQ(missing, std::set<std::string>{});
}

}  // namespace
}  // namespace nlaunch::config
