#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace nlaunch::preflight {

/// A folder of its own for a test, in which programs are shell scripts.
class ScriptFolder {
 public:
  ScriptFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "nlaunch-script.XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~ScriptFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  ScriptFolder(const ScriptFolder&) = delete;
  ScriptFolder& operator=(const ScriptFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  std::string file(const std::string& name, const std::string& content) const {
    const auto path = path_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << content;
    return path;
  }
  /// An executable file that begins with this line, whatever runs it.
  std::string program(const std::string& name, const std::string& first_line,
                      const std::string& rest = "") const {
    const auto path = file(name, first_line + "\n" + rest);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  /// In nlaunch-probe's place.
  [[nodiscard]] std::string probe(const std::string& script) const {
    return program("probe", "#!/bin/sh", script + "\n");
  }

 private:
  std::string path_;
};

}  // namespace nlaunch::preflight
