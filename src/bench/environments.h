#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

/// The environments in which each arm was measured.
namespace nlaunch::bench {

/// The environment of each role's first process on the first node, by role; secrets are masked.
using Environments = std::map<std::string, std::map<std::string, std::string>>;

/// Of the first process of each role, from the files that bind() wrote to an attempt's directory: masked
/// there. Other files are skipped.
Environments read_environments(const std::filesystem::path& attempt);

/// With ${run.dir} and ${run.id} in place of a run's directory and id.
Environments without_folder(Environments environments, const std::filesystem::path& run);

/// "learner NCCL_PROTO": a variable whose value differs between arms, with each arm's value ("(unset)").
struct Difference {
  std::string role;
  std::string name;
  std::vector<std::string> values;  ///< by arm
};

/// Of the arms that were bound; the others have no environments. What always differs between arms
/// (directories, ports) is not a difference.
std::vector<Difference> differences(const std::vector<Environments>& arms);

}  // namespace nlaunch::bench
