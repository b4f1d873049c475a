#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "config/site.h"

namespace nlaunch::config {

/// A folder that a test fills, and that goes with it.
class Folder : public testing::Test {
 protected:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "nlaunch-config-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() override { std::filesystem::remove_all(path_); }

  std::string write(const std::string& name, std::string_view text) {
    const auto file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }
  [[nodiscard]] std::string folder() const { return path_; }

  Experiment experiment(std::string_view text, const std::vector<std::string>& settings = {},
                        const std::vector<std::string>& with = {}) {
    return value(load_experiment(write("input.yaml", text), parse(settings), with));
  }
  Site site(std::string_view text, const std::vector<std::string>& settings = {}) {
    return value(load_site(write("input.yaml", text), {}, parse(settings)));
  }
  static std::vector<Setting> parse(const std::vector<std::string>& typed) {
    std::vector<Setting> settings;
    for (const auto& text : typed) settings.push_back(parse_setting("--set", text).value());
    return settings;
  }
  template <class T>
  static T value(const Result<T>& result) {
    EXPECT_TRUE(result) << (result ? "" : render(result.error()));
    return result.value_or(T{});
  }

  static constexpr std::string_view kRole =
      "roles: {learner: {kind: learner, command: [python, train.py]}}\n";
  static std::string with_role(std::string_view rest) {
    return "version: 1\nname: demo\n" + std::string(rest) + std::string(kRole);
  }

 private:
  std::filesystem::path path_;
};

/// "NAME=VALUE" and the like, one word an entry.
inline std::string words(const EnvBlock& env) {
  std::string out;
  for (const auto& entry : env) {
    const char sign = "=!<>"[static_cast<int>(entry.kind)];  // set, unset, prepend, append
    if (!out.empty()) out += ' ';
    out += entry.name.value + sign + entry.value.value;
    if (!entry.when.always()) out += '?';
  }
  return out;
}

inline std::string words(const std::vector<Text>& texts) {
  std::string out;
  for (const auto& text : texts) out += (out.empty() ? "" : " ") + text.value;
  return out;
}

}  // namespace nlaunch::config
