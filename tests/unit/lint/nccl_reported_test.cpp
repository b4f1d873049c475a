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
  EXPECT_EQ(
      compare(environment, read_nccl_log(kLog)),
      (std::vector<std::string>{"NCCL_BUFFSIZE is set to '8M', but NCCL read 8",
                                "NCCL read NCCL_IB_DISABLE=1, which nlaunch did not set: it comes from an "
                                "nccl.conf or the program itself",
                                "set but not read by NCCL in this run: NCCL_NVLS_ENABLE, NCCL_MIN_CTAS"}));
  EXPECT_TRUE(compare(environment, {}).empty());
}

/// "NAME=VALUE" of the settings that a log tells.
std::vector<std::string> told_by(std::string_view log) {
  std::vector<std::string> out;
  for (const auto& one : read_nccl_log(log)) out.push_back(one.name + "=" + one.value);
  return out;
}

TEST(NcclReportedSetting, NamesAndValuesEndWhereTheyDo) {
  using Told = std::vector<std::string>;
  EXPECT_EQ(told_by("NCCL_A set by environment to 1"), Told{"NCCL_A=1"});
  EXPECT_EQ(told_by("x\nNCCL_A set by environment to b c\nd"), Told{"NCCL_A=b c"});
  EXPECT_EQ(told_by("y NCCL_A set by environment to \nz"), Told{"NCCL_A="});
  EXPECT_EQ(told_by("FI_A set by environment to 1\nNCCL_B set by environment to 2"), Told{"NCCL_B=2"});
  EXPECT_EQ(told_by("NCCL_A set by environment to 1\nNCCL_B set by environment to 2\nNCCL_A set by "
                    "environment to 3\n"),
            (Told{"NCCL_A=1", "NCCL_B=2"}));
}

TEST(NcclReportedSetting, OnlyANumberHasAFullStopBehind) {
  EXPECT_EQ(told_by("NCCL_A set by environment to 12."), std::vector<std::string>{"NCCL_A=12"});
  EXPECT_EQ(told_by("NCCL_A set by environment to -2."), std::vector<std::string>{"NCCL_A=-2"});
  EXPECT_EQ(told_by("NCCL_A set by environment to a.b."), std::vector<std::string>{"NCCL_A=a.b."});
  EXPECT_EQ(told_by("NCCL_A set by environment to ."), std::vector<std::string>{"NCCL_A=."});
}

/// How one setting differs from what NCCL read.
std::vector<std::string> differences(const Setting& setting, const char* read) {
  Environment environment;
  environment.settings = {setting};
  return compare(environment, {{"NCCL_A", read}});
}

TEST(NcclReportedSetting, NumbersAreTheSameHoweverTheyAreWritten) {
  using Said = std::vector<std::string>;
  EXPECT_EQ(differences(set("NCCL_A", "1"), "1"), Said{});
  EXPECT_EQ(differences(set("NCCL_A", "0x10"), "16"), Said{});
  EXPECT_EQ(differences(set("NCCL_A", "hsn"), "hsn"), Said{});
  EXPECT_EQ(differences(set("NCCL_A", "1"), "2"), Said{"NCCL_A is set to '1', but NCCL read 2"});
  EXPECT_EQ(differences(set("NCCL_A", "true"), "0"), Said{"NCCL_A is set to 'true', but NCCL read 0"});
  EXPECT_EQ(differences(set("NCCL_A", "0"), "none"), Said{"NCCL_A is set to '0', but NCCL read none"});
  EXPECT_EQ(differences(set("NCCL_A", "ib"), "hsn"), Said{"NCCL_A is set to 'ib', but NCCL read hsn"});
}

TEST(NcclReportedSetting, WhatIsNotKnownForCertainCannotDiffer) {
  auto setting = set("NCCL_A", "1");
  setting.sure = false;
  EXPECT_EQ(differences(setting, "2"), std::vector<std::string>{});
  setting.unset = true;
  EXPECT_EQ(differences(setting, "2"), std::vector<std::string>{});
  setting.sure = true;
  EXPECT_EQ(
      differences(setting, "2"),
      std::vector<std::string>{
          "NCCL read NCCL_A=2, which nlaunch did not set: it comes from an nccl.conf or the program itself"});
  setting.unset = false;
  setting.value.reset();
  EXPECT_EQ(differences(setting, "2"), std::vector<std::string>{});
}

TEST(NcclReportedSetting, OnlyNumbersOfNcclItselfAreAlwaysTold) {
  Environment environment;
  auto maybe = set("NCCL_CROSS_NIC", "1");
  maybe.sure = false;
  auto gone = set("NCCL_IB_DISABLE", "1");
  gone.unset = true;
  environment.settings = {set("NCCL_SOCKET_IFNAME", "hsn"),     // a text
                          set("TORCH_FR_BUFFER_SIZE", "2000"),  // another's
                          set("MY_OWN", "1"),
                          maybe,
                          gone,
                          set("NCCL_BUFFSIZE", "1"),  // overridden
                          set("NCCL_BUFFSIZE", "2"),
                          set("NCCL_LL128_C2C", "0"),
                          set("NCCL_MIN_CTAS", "4")};
  EXPECT_EQ(compare(environment, {{"NCCL_MIN_CTAS", "4"}}),
            std::vector<std::string>{"set but not read by NCCL in this run: NCCL_BUFFSIZE, NCCL_LL128_C2C"});
}

}  // namespace
}  // namespace nlaunch::lint
