#include "lint/nccl_reported.h"

#include <gtest/gtest.h>

namespace nlaunch::lint {
namespace {

constexpr const char* kLog =
    "host:10:10 [0] NCCL INFO ENV/Plugin: Could not find: libnccl-env.so\n"
    "host:10:10 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to hsn\n"
    "host:10:20 [0] NCCL INFO NCCL_CROSS_NIC set by environment to 1.\n"
    "host:10:20 [0] NCCL INFO NCCL_BUFFSIZE set by environment to 8.\n"
    "host:10:20 [0] NCCL INFO NCCL_CROSS_NIC set by environment to 1.\n"
    "host:10:20 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\n";

Setting set(const char* name, const char* value) {
  Setting setting;
  setting.name = name;
  setting.value = value;
  return setting;
}

TEST(NcclReportedSetting, EachSettingOnce) {
  std::vector<std::string> shown;
  for (const auto& one : read_nccl_log(kLog)) shown.push_back(one.name + "=" + one.value);
  EXPECT_EQ(shown, (std::vector<std::string>{"NCCL_SOCKET_IFNAME=hsn", "NCCL_CROSS_NIC=1", "NCCL_BUFFSIZE=8",
                                             "NCCL_IB_DISABLE=1"}));
  EXPECT_TRUE(read_nccl_log("").empty());
  EXPECT_TRUE(read_nccl_log(" set by environment to \n set by environment to").empty());
}

TEST(NcclReportedSetting, WhatDiffersIsTold) {
  Environment environment;
  environment.settings = {set("NCCL_SOCKET_IFNAME", "hsn"), set("NCCL_CROSS_NIC", "0x1"),
                          set("NCCL_BUFFSIZE", "8M"),       set("NCCL_NVLS_ENABLE", "0"),
                          set("NCCL_DEBUG", "INFO"),        set("NCCL_MIN_CTAS", "4")};
  EXPECT_EQ(compare(environment, read_nccl_log(kLog)),
            (std::vector<std::string>{
                "NCCL_BUFFSIZE is set to '8M', and NCCL read 8",
                "NCCL read NCCL_IB_DISABLE=1, which nlaunch did not set: an nccl.conf, or the program itself",
                "set, and not read by NCCL in this run: NCCL_NVLS_ENABLE, NCCL_MIN_CTAS"}));
  EXPECT_TRUE(compare(environment, {}).empty());
}

}  // namespace
}  // namespace nlaunch::lint
