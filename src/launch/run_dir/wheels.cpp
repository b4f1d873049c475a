#include "launch/run_dir/wheels.h"

namespace nlaunch::launch {

namespace fs = std::filesystem;

std::map<std::string, std::string> wheels_of(const fs::path& venv) {
  std::map<std::string, std::string> wheels;
  std::error_code error;
  for (const auto& python : fs::directory_iterator(venv / "lib", error)) {
    for (const auto& entry : fs::directory_iterator(python.path() / "site-packages", error)) {
      const auto name = entry.path().stem().string();
      const auto dash = name.find('-');
      if (entry.path().extension() != ".dist-info" || dash == std::string::npos) continue;
      wheels.emplace(name.substr(0, dash), name.substr(dash + 1));
    }
  }
  return wheels;
}

}  // namespace nlaunch::launch
