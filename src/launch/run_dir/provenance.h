#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/bound.h"
#include "plan/plan.h"

/// What a run was made from, for lock.json: so that it can be told apart from another one.
namespace nlaunch::launch {

/// Of one node: {name: {path, version, size}}.
nlohmann::json libraries_of(const plan::BoundNode& node);

/// {"nlaunch", "files": [{path, sha256}], "git": {commit, branch, dirty, diff}, "libraries": {name: {path,
/// version, size}}, "wheels": {venv: ["name version"]}}. What cannot be found out is left out. A few
/// milliseconds.
nlohmann::ordered_json provenance(const plan::Plan& plan, const plan::BoundNode& node);

/// Adds the libraries of another node, where they are not those of the first one, which `lock` is of: as
/// "libraries_on": {host: {name: {path, version, size}}}, with null for one that is not there.
void add_libraries(nlohmann::ordered_json& lock, const std::string& host, const nlohmann::json& libraries);

/// Adds "sha256" to the libraries. Half a second for a libnccl: for the end of a run.
void add_library_hashes(nlohmann::ordered_json& lock);

}  // namespace nlaunch::launch
