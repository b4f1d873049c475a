#include "config/schema.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace nlaunch::config {
namespace {

std::string value_of(const std::vector<SchemaKey>& keys, const std::string& path) {
  const auto key = std::ranges::find(keys, path, &SchemaKey::path);
  return key == keys.end() ? "(not there)" : key->value;
}

TEST(Schema, KeysHavePathsAndValues) {
  const auto keys = schema_keys(experiment_schema());
  EXPECT_EQ(value_of(keys, "nodes"), "whole number");
  EXPECT_EQ(value_of(keys, "roles"), "map");
  EXPECT_EQ(value_of(keys, "roles.NAME.kind"), "learner, engine, service, task");
  EXPECT_EQ(value_of(keys, "roles.NAME.command"), "list");
  EXPECT_EQ(value_of(keys, "weight_sync[].name"), "text");
  EXPECT_EQ(value_of(keys, "no.such.key"), "(not there)");
  EXPECT_EQ(value_of(schema_keys(site_schema()), "scheduler"), "map");
  const auto role = std::ranges::find(keys, "roles", &SchemaKey::path);
  EXPECT_LT(role, std::ranges::find(keys, "roles.NAME.kind", &SchemaKey::path));
  EXPECT_EQ(role->description, "the kinds of processes");
}

}  // namespace
}  // namespace nlaunch::config
