#pragma once
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "config/problems.h"
#include "config/yaml.h"

/// An experiment file over the files that it extends.
namespace nlaunch::config {

/// The file as one tree with all that it `extends`, each value with the place where it stands. Maps are
/// merged by key, and anything else of the upper file takes the place of what the lower one has, but for:
/// - `KEY+: [...]` adds to the list KEY of the lower file;
/// - `KEY: null` takes KEY away, except in an `env`, where it unsets the variable;
/// - one of count, per_node and per takes the place of another, as command and spawned_by do;
/// - `ready`, an overlay and a secret are replaced as a whole, and `name` is not inherited.
/// `files` gets the absolute paths of the files below it, the most basic first.
Result<Node> read_extended(const std::string& path, std::vector<std::string>& files, Problems& problems);

}  // namespace nlaunch::config
