#include "launch/job/pyxis.h"

#include <gtest/gtest.h>

namespace nlaunch::launch {
namespace {

using Words = std::vector<std::string>;

TEST(Pyxis, MountsWhatTheAgentsNeedWhereTheStepHasAContainer) {
  plan::Plan plan;
  plan.roles.resize(2);
  plan.roles[0].workdir = plan.roles[1].workdir = "/usr";
  plan.roles[0].venv = "/no/such/venv";  // the image's
  const Install install{"/bin/true", "/bin/false", "/no/scope.so", ""};
  plan.slurm.srun = {"--network=disable_rdzv_get"};
  EXPECT_EQ(pyxis_options(plan, install, "/tmp"), Words{});
  plan.slurm.srun = {"--container-image=nvcr.io#nvidia/pytorch:25.09-py3"};
  EXPECT_EQ(pyxis_options(plan, install, "/tmp"),
            Words{"--container-mounts=/bin/true:/bin/true:ro,/bin/false:/bin/false:ro,/tmp:/tmp,/usr:/usr"});
}

}  // namespace
}  // namespace nlaunch::launch
