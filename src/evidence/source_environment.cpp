#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "evidence/source.h"
#include "sys/proc.h"

// The environment with which the process was started, secrets masked by name and by value.
namespace nlaunch::evidence {

Found collect_environment(const CollectContext& context) {
  Found found;
  if (context.tree.empty()) return found;
  nlohmann::json object = nlohmann::json::object();
  for (const auto& entry : sys::initial_environment(context.subject->pid)) {
    const auto name = entry.substr(0, entry.find('='));
    const auto& secrets = context.spec.secrets;
    const bool secret = looks_like_secret(name) || std::ranges::find(secrets, name) != secrets.end();
    object[name] = secret ? std::string(kMasked) : entry.substr(std::min(entry.size(), name.size() + 1));
  }
  constexpr auto kFile = "environment.json";
  if (object.empty()) {
    found.missing.push_back({"environment", "another user's process, or one that has ended", ""});
  } else if (context.write(kFile, json_text(object, 1) + "\n")) {
    found.got.emplace_back(kFile);
  }
  return found;
}

}  // namespace nlaunch::evidence
