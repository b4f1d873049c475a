#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace nlaunch::config {

/// The JSON schemas (draft 2020-12) of the two files; editors use them for completion and validation.
std::string_view experiment_schema();
std::string_view site_schema();

/// A key that a file may have.
struct SchemaKey {
  std::string
      path;  ///< "roles.NAME.gpus": NAME stands for any name, "env.when[].set" for each item of a list
  std::string value;  ///< "whole number", "map", or the words that are allowed; empty: of several kinds
  std::string description;
};
/// The keys of one of the schemas, each before the keys below it.
std::vector<SchemaKey> schema_keys(std::string_view schema);

}  // namespace nlaunch::config
