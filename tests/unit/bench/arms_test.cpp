#include "bench/arms.h"

#include <gtest/gtest.h>

namespace nlaunch::bench {
namespace {

using Words = std::vector<std::string>;
const Words kRoles{"learner", "engine"};

Words names(const std::vector<Arm>& arms) {
  Words out;
  for (const auto& arm : arms) out.push_back(arm.name);
  return out;
}

std::string said(const std::string& vary) {
  const auto arms = make_arms({vary}, kRoles);
  return arms ? "fine" : render(arms.error());
}

TEST(MakeArms, IsThePlanAloneWithoutAny) {
  const auto arms = make_arms({}, kRoles).value();
  EXPECT_EQ(names(arms), (Words{"as planned"}));
}

TEST(MakeArms, VariesAVariableOfAllRolesOrOne) {
  const auto arms = make_arms({"NCCL_PROTO=default,LL,Simple"}, kRoles).value();
  EXPECT_EQ(names(arms), (Words{"NCCL_PROTO=default", "NCCL_PROTO=LL", "NCCL_PROTO=Simple"}));
  EXPECT_EQ(arms[0].env, Words{});
  EXPECT_EQ(arms[1].env, (Words{"NCCL_PROTO=LL"}));
  EXPECT_EQ(make_arms({"engine:NCCL_DEBUG=INFO"}, kRoles).value()[0].env, (Words{"engine:NCCL_DEBUG=INFO"}));
  EXPECT_EQ(make_arms({"MY_OWN=1"}, kRoles).value()[0].env, (Words{"MY_OWN=1"}));
}

TEST(MakeArms, VariesWhatRolesPreload) {
  const auto one = make_arms({"learner.preload=nccl,nccl-module,none,a+b"}, kRoles).value();
  EXPECT_EQ(one[0].set, (Words{"roles.learner.preload=[nccl]"}));
  EXPECT_EQ(one[1].set, (Words{"roles.learner.preload=[nccl-module]"}));
  EXPECT_EQ(one[2].set, (Words{"roles.learner.preload=[]"}));
  EXPECT_EQ(one[3].set, (Words{"roles.learner.preload=[a, b]"}));
  EXPECT_EQ(make_arms({"all.preload=none"}, kRoles).value()[0].set,
            (Words{"roles.learner.preload=[]", "roles.engine.preload=[]"}));
}

TEST(MakeArms, VariesOverlaysAndSettings) {
  const auto with = make_arms({"with=none,nccl-debug"}, kRoles).value();
  EXPECT_EQ(with[0].with, Words{});
  EXPECT_EQ(with[1].with, (Words{"nccl-debug"}));
  EXPECT_EQ(make_arms({"weight_sync.backend=nccl,gloo"}, kRoles).value()[1].set,
            (Words{"weight_sync.backend=gloo"}));
  EXPECT_EQ(make_arms({"vars.a=[1,2],'3,4'"}, kRoles).value()[1].set, (Words{"vars.a='3,4'"}));
}

TEST(MakeArms, CrossesSeveral) {
  const auto arms = make_arms({"A=1,2", "with=x,y"}, kRoles).value();
  EXPECT_EQ(names(arms), (Words{"A=1, with=x", "A=1, with=y", "A=2, with=x", "A=2, with=y"}));
  EXPECT_EQ(arms[3].env, (Words{"A=2"}));
  EXPECT_EQ(arms[3].with, (Words{"y"}));
}

TEST(MakeArms, SaysWhatIsWrong) {
  EXPECT_EQ(said("NCCL_PROTOS=LL,Simple"),
            "error: --vary NCCL_PROTOS=LL,Simple: no release of NCCL reads NCCL_PROTOS [bench.vary]\n"
            "hint: did you mean NCCL_PROTO?\n");
  EXPECT_EQ(said("lerner:NCCL_PROTO=LL"),
            "error: --vary lerner:NCCL_PROTO=LL: unknown role 'lerner' [bench.vary]\n"
            "hint: did you mean 'learner'?\n");
  EXPECT_EQ(
      said("nccl_proto=LL"),
      "error: --vary nccl_proto=LL: unknown key 'nccl_proto' [bench.vary]\nhint: did you mean NCCL_PROTO?\n");
  EXPECT_EQ(said("NCCL_PROTO"),
            "error: --vary NCCL_PROTO: must be NAME=VALUE,VALUE,... [bench.vary]\n"
            "hint: write NCCL_PROTO=LL,LL128 or learner.preload=none,nccl or with=A,B\n");
  EXPECT_EQ(said("NCCL_PROTO=LL,,Simple"),
            "error: --vary NCCL_PROTO=LL,,Simple: a value is empty [bench.vary]\n"
            "hint: write NCCL_PROTO=LL,LL128 or learner.preload=none,nccl or with=A,B\n");
  EXPECT_EQ(
      said("NCCL_PROTO=LL,LL"),
      "error: --vary NCCL_PROTO=LL,LL: duplicate value 'LL' [bench.vary]\nhint: give each value once\n");
}

}  // namespace
}  // namespace nlaunch::bench
