#include "base/backend.h"

#include <gtest/gtest.h>

namespace nlaunch {
namespace {

TEST(Backend, EachHasARowThatItsNameFinds) {
  ASSERT_EQ(all_backends().size(), kValues<Backend>.size());
  for (const auto& row : all_backends()) {
    EXPECT_EQ(&traits_of(row.backend), &row);
    EXPECT_EQ(name_of(row.backend), row.name);
    EXPECT_EQ(value_of<Backend>(row.name), row.backend);
  }
  EXPECT_EQ(value_of<Backend>("NCCL"), std::nullopt);
  EXPECT_EQ(value_of<Backend>(""), std::nullopt);
}

TEST(Backend, WhatNcclCanAndGlooCannot) {
  const auto& nccl = traits_of(Backend::nccl);
  const auto& gloo = traits_of(Backend::gloo);
  EXPECT_EQ(nccl.title, "NCCL");
  EXPECT_EQ(nccl.library, "libnccl");
  EXPECT_TRUE(nccl.needs_gpu && nccl.steady_times && nccl.has_streams && nccl.logs_transport);
  EXPECT_EQ(nccl.lacks, std::nullopt);
  EXPECT_EQ(gloo.title, "Gloo");
  EXPECT_EQ(gloo.library, "");
  EXPECT_FALSE(gloo.needs_gpu || gloo.steady_times || gloo.has_streams || gloo.logs_transport);
  EXPECT_EQ(gloo.lacks, Collective::reduce_scatter);
}

TEST(Backend, TheUsualOneFitsWhatThereIs) {
  EXPECT_TRUE(traits_of(usual_backend(true)).needs_gpu);
  EXPECT_FALSE(traits_of(usual_backend(false)).needs_gpu);
}

}  // namespace
}  // namespace nlaunch
