#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/bound.h"
#include "plan/plan.h"

/// What a run was built from, for lock.json, to distinguish it from other runs.
namespace nlaunch::launch {

/// Of one node: {name: {path, version, size}}.
nlohmann::json libraries_of(const plan::BoundNode& node);

/// {"nlaunch", "files": [{path, sha256}], "git": {commit, branch, dirty, diff}, "libraries": {name: {path,
/// version, size}}, "wheels": {venv: ["name version"]}}. Anything that cannot be determined is left out.
/// Takes a few milliseconds.
nlohmann::ordered_json provenance(const plan::Plan& plan, const plan::BoundNode& node);

/// Adds the libraries of another node that differ from the first node's in `lock`, as "libraries_on": {host:
/// {name: {path, version, size}}}, with null for a missing one.
void add_libraries(nlohmann::ordered_json& lock, const std::string& host, const nlohmann::json& libraries);

/// Adds "sha256" to the libraries. Takes half a second for a libnccl: for the end of a run.
void add_library_hashes(nlohmann::ordered_json& lock);

}  // namespace nlaunch::launch
