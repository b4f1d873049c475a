#include "launch/run_dir/provenance.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace nlaunch::launch {
namespace {

using nlohmann::json;

json library(const std::string& version) {
  return {{"path", "/x/libnccl.so.2"}, {"version", version}, {"size", 7}};
}

TEST(AddLibraries, OnlyWhatIsNotAsOnTheFirstNodeIsSaid) {
  nlohmann::ordered_json lock{{"libraries", json{{"nccl", library("2.27.3")}, {"ofi", library("1.8")}}}};
  const auto before = lock;
  add_libraries(lock, "n0", lock["libraries"]);
  add_libraries(lock, "n1", {{"ofi", library("1.8")}, {"nccl", library("2.27.3")}});
  EXPECT_EQ(lock, before) << "the same everywhere: once";
  add_libraries(lock, "n2", {{"nccl", library("2.26.2")}, {"ofi", library("1.8")}});
  add_libraries(lock, "n3", {{"nccl", library("2.27.3")}, {"extra", library("")}});
  EXPECT_EQ(json(lock["libraries_on"]), json({{"n2", {{"nccl", library("2.26.2")}}},
                                              {"n3", {{"extra", library("")}, {"ofi", nullptr}}}}));
}

}  // namespace
}  // namespace nlaunch::launch
