#pragma once
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "config/problems.h"
#include "config/yaml.h"

/// An experiment file merged with the files that it extends.
namespace nlaunch::config {

/// The file and all files that it `extends` as one tree, each value with its location. Maps are merged by
/// key, and any other value of the extending file replaces the one in its base, with these exceptions:
/// - `KEY+: [...]` appends to the list KEY of the base file;
/// - `KEY: null` removes KEY, except in an `env`, where it unsets the variable;
/// - count, per_node and per replace each other, and so do command and spawned_by;
/// - `ready`, an overlay and a secret are replaced as a whole, and `name` is not inherited.
/// `files` receives the absolute paths of the base files, the most basic first.
Result<Node> read_extended(const std::string& path, std::vector<std::string>& files, Problems& problems);

}  // namespace nlaunch::config
