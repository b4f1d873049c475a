#include <nlohmann/json.hpp>

#include "base/json.h"
#include "evidence/source.h"
#include "launch/observation.h"
#include "sys/proc.h"

// Which copies of libnccl are mapped, in every process of the tree.
namespace nlaunch::evidence {

Found collect_libraries(const CollectContext& context) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& process : context.tree) {
    for (const auto& file : sys::mapped_files(process.pid).value_or(std::vector<sys::MappedFile>{})) {
      if (!launch::is_nccl(file)) continue;
      all.push_back({{"pid", process.pid}, {"path", file.path}, {"deleted", file.deleted}});
    }
  }
  Found found;
  constexpr auto kFile = "libraries.json";
  if (!context.tree.empty() && context.write(kFile, json_text(all, 1) + "\n")) found.got.emplace_back(kFile);
  return found;
}

}  // namespace nlaunch::evidence
