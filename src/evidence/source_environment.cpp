#include <algorithm>

#include "base/json.h"
#include "evidence/source.h"
#include "sys/proc.h"

// The environment with which the process was started, secrets masked by name and by value.
namespace nlaunch::evidence {

Found collect_environment(const Scene& scene) {
  Found found;
  if (scene.tree.empty()) return found;
  nlohmann::json object = nlohmann::json::object();
  for (const auto& entry : sys::initial_environment(scene.subject->pid)) {
    const auto name = entry.substr(0, entry.find('='));
    const auto& secrets = scene.spec.secrets;
    const bool secret = looks_like_secret(name) || std::ranges::find(secrets, name) != secrets.end();
    object[name] = secret ? std::string(kMasked) : entry.substr(std::min(entry.size(), name.size() + 1));
  }
  constexpr auto kFile = "environment.json";
  if (object.empty()) {
    found.missing.push_back({"environment", "another user's process, or one that has ended", ""});
  } else if (scene.write(kFile, json_text(object, 1) + "\n")) {
    found.got.emplace_back(kFile);
  }
  return found;
}

}  // namespace nlaunch::evidence
