#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

/// In what surroundings each arm was measured.
namespace nlaunch::bench {

/// The environment of each role's first process on the first node, by role; secrets are masked.
using Environments = std::map<std::string, std::map<std::string, std::string>>;

/// Of the first process of each role, from what bind() has left in an attempt's folder: masked there. What is
/// no such file is passed over.
Environments read_environments(const std::filesystem::path& attempt);

/// With ${run.dir} and ${run.id} in place of a run's folder and its id.
Environments without_folder(Environments environments, const std::filesystem::path& run);

/// "learner NCCL_PROTO": a variable whose value is not the same in all arms, with each arm's value
/// ("(unset)").
struct Difference {
  std::string role;
  std::string name;
  std::vector<std::string> values;  ///< by arm
};

/// Of the arms that were bound; the others have no environments. What each arm has of its own whatever is
/// compared (folders, ports) is no difference.
std::vector<Difference> differences(const std::vector<Environments>& arms);

}  // namespace nlaunch::bench
