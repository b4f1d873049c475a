#include "plan/container.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace nlaunch::plan {
namespace {

BoundProcess process_behind(Words wrapper) {
  BoundProcess process;
  process.argv = {"python", "train.py"};
  process.env = {{"LD_LIBRARY_PATH", "/opt/x/lib:/cray/lib"},
                 {"LD_PRELOAD", "/opt/libnccl.so.2:/opt/scope.so"},
                 {"NLAUNCH_ROLE", "learner"},
                 {"PATH", "/venv/bin:/usr/bin"},
                 {"RANK", "0"},
                 {"USER", "u"}};
  process.given = {{"LD_LIBRARY_PATH", "/opt/x/lib"},
                   {"LD_PRELOAD", "/opt/libnccl.so.2:/opt/scope.so"},
                   {"NLAUNCH_ROLE", "learner"},
                   {"PATH", "/venv/bin"},
                   {"RANK", "0"}};
  process.wrapper = std::move(wrapper);
  return process;
}

std::string line(const Words& words) {
  return text::join(words, " ");
}

const std::vector<Mount> kMounts{{"/work", true}, {"/opt/libnccl.so.2", false}};

TEST(Container, ANumaWrapperKeepsThePreloadInItsEnvironment) {
  const auto start = start_of(process_behind({"numactl", "-N", "0"}), {"python", "train.py"});
  EXPECT_EQ(line(start.argv), "numactl -N 0 python train.py");
  EXPECT_EQ(line(start.env),
            "LD_LIBRARY_PATH=/opt/x/lib:/cray/lib LD_PRELOAD=/opt/libnccl.so.2:/opt/scope.so "
            "NLAUNCH_ROLE=learner PATH=/venv/bin:/usr/bin RANK=0 USER=u");
  EXPECT_EQ(with_mounts({"numactl", "-N", "0"}, kMounts), (Words{"numactl", "-N", "0"}));
}

TEST(Container, BwrapHandsOnAllButThePreloadWhichItIsTold) {
  const auto wrapper = with_mounts({"bwrap", "--dev-bind", "/", "/", "--"}, kMounts);
  EXPECT_EQ(line(wrapper),
            "bwrap --dev-bind / / --die-with-parent --bind /work /work --ro-bind /opt/libnccl.so.2 "
            "/opt/libnccl.so.2 --");
  const auto start = start_of(process_behind({"bwrap", "--dev-bind", "/", "/", "--"}), {"python", "train.py"},
                              {{"NLAUNCH_TRACER", "7"}});
  EXPECT_EQ(line(start.argv),
            "bwrap --dev-bind / / --setenv LD_PRELOAD /opt/libnccl.so.2:/opt/scope.so -- python train.py");
  EXPECT_EQ(line(start.env),
            "LD_LIBRARY_PATH=/opt/x/lib:/cray/lib NLAUNCH_ROLE=learner PATH=/venv/bin:/usr/bin RANK=0 USER=u "
            "NLAUNCH_TRACER=7");
}

TEST(Container, WhatStartsTheCommandWithinBwrapStaysBehindItsOptions) {
  EXPECT_EQ(
      line(with_mounts({"nice", "bwrap", "--symlink", "usr/bin", "/bin", "--unshare-pid", "--proc", "/proc",
                        "sh", "-c", "exec \"$@\"", "sh"},
                       {{"/work", true}})),
      "nice bwrap --symlink usr/bin /bin --unshare-pid --proc /proc --die-with-parent --bind /work /work sh "
      "-c exec \"$@\" sh");
}

TEST(Container, ApptainerIsGivenWhatThePlanAsksForByItsPrefix) {
  const auto wrapper =
      with_mounts({"numactl", "-N", "0", "apptainer", "-d", "exec", "--nv", "a.sif"}, kMounts);
  EXPECT_EQ(line(wrapper),
            "numactl -N 0 apptainer -d exec --bind /work:/work --bind /opt/libnccl.so.2:/opt/libnccl.so.2:ro "
            "--nv a.sif");
  const auto start = start_of(process_behind({"apptainer", "exec", "a.sif"}), {"python", "train.py"});
  EXPECT_EQ(line(start.argv), "apptainer exec a.sif python train.py");
  EXPECT_EQ(line(start.env),
            "LD_LIBRARY_PATH=/opt/x/lib:/cray/lib NLAUNCH_ROLE=learner PATH=/venv/bin:/usr/bin RANK=0 USER=u "
            "APPTAINERENV_LD_LIBRARY_PATH=/opt/x/lib "
            "APPTAINERENV_LD_PRELOAD=/opt/libnccl.so.2:/opt/scope.so APPTAINERENV_NLAUNCH_ROLE=learner "
            "APPTAINERENV_PREPEND_PATH=/venv/bin APPTAINERENV_RANK=0 APPTAINER_NO_EVAL=1");
}

TEST(Container, APathThatIsSetAsAWholeIsTheWholePathInside) {
  auto process = process_behind({"singularity", "run", "a.sif"});
  process.env = {{"PATH", "/only"}};
  process.given = {{"PATH", "/only"}};
  EXPECT_EQ(line(start_of(process, {"x"}).env), "PATH=/only SINGULARITYENV_PATH=/only SINGULARITY_NO_EVAL=1");
  process.env = {{"PATH", "/usr/bin:/last"}};
  process.given = {{"PATH", "/last"}};
  EXPECT_EQ(line(start_of(process, {"x"}).env),
            "PATH=/usr/bin:/last SINGULARITYENV_APPEND_PATH=/last SINGULARITY_NO_EVAL=1");
}

TEST(Container, EnrootIsToldNamesAndNoValues) {
  const auto wrapper = with_mounts({"enroot", "start", "pytorch"}, kMounts);
  EXPECT_EQ(line(wrapper),
            "enroot start --mount /work:/work:none:x-create=auto,bind,rw --mount "
            "/opt/libnccl.so.2:/opt/libnccl.so.2:none:x-create=auto,bind,ro pytorch");
  const auto start = start_of(process_behind({"enroot", "start", "pytorch"}), {"python", "train.py"});
  EXPECT_EQ(line(start.argv),
            "enroot start --env LD_LIBRARY_PATH --env LD_PRELOAD=/opt/libnccl.so.2:/opt/scope.so --env "
            "NLAUNCH_ROLE --env RANK pytorch python train.py");
}

TEST(Container, AProbeIsStartedThereWithoutThePreload) {
  const auto start =
      start_of_probe(process_behind({"apptainer", "exec", "a.sif"}), {"/n/nlaunch-probe", "facts"});
  EXPECT_EQ(line(start.argv), "apptainer exec a.sif /n/nlaunch-probe facts");
  EXPECT_EQ(line(start.env),
            "LD_LIBRARY_PATH=/opt/x/lib:/cray/lib PATH=/venv/bin:/usr/bin RANK=0 USER=u "
            "APPTAINERENV_LD_LIBRARY_PATH=/opt/x/lib APPTAINERENV_PREPEND_PATH=/venv/bin APPTAINERENV_RANK=0 "
            "APPTAINER_NO_EVAL=1");
}

TEST(Container, KnowsTheImage) {
  EXPECT_EQ(image_of({"apptainer", "exec", "--nv", "images/a.sif"}), "images/a.sif");
  EXPECT_EQ(image_of({"apptainer", "exec", "docker://pytorch"}), "");
  EXPECT_EQ(image_of({"enroot", "start", "pytorch"}), "");
  EXPECT_EQ(image_of({"enroot", "start", "pytorch.sqsh"}), "pytorch.sqsh");
  EXPECT_EQ(image_of({"bwrap", "--bind", "/", "/"}), "");
  EXPECT_EQ(image_of({"nice"}), "");
  // Options and their values stand in front of it; what starts the command within the image, behind it.
  EXPECT_EQ(image_of({"apptainer", "exec", "--nv", "-eB", "/a.sif", "--env", "A=b", "c.sif", "/host/adapt.sh",
                      "-v"}),
            "c.sif");
  EXPECT_EQ(image_of({"apptainer", "exec", "--bind=/a", "--", "c.sif"}), "c.sif");
  EXPECT_EQ(image_of({"enroot", "start", "-m", "/a:/b", "--rw", "c.sqsh", "nice"}), "c.sqsh");
  EXPECT_EQ(image_of({}), "");
}

TEST(Container, SaysWhatReachesTheProgram) {
  const auto told = [](const Words& wrapper) {
    const auto passage = passage_of(wrapper);
    constexpr std::string_view kNames[] = {"all", "plan", "nothing"};
    return fmt::format("{} {}", kNames[static_cast<std::size_t>(passage.of)], passage.by);
  };
  EXPECT_EQ(told({"numactl"}), "all ");
  EXPECT_EQ(told({"apptainer", "exec", "a.sif"}), "all ");
  EXPECT_EQ(told({"apptainer", "exec", "--cleanenv", "a.sif"}), "plan --cleanenv");
  EXPECT_EQ(told({"enroot", "start", "pytorch"}), "plan enroot");
  EXPECT_EQ(told({"bwrap", "--clearenv"}), "nothing --clearenv");
  EXPECT_EQ(told({"apptainer", "exec", "a.sif", "numactl", "-C", "0"}), "all ");
}

TEST(Container, KnowsWhatTheWrapperSetsItself) {
  const auto set = [](const Words& wrapper) {
    std::string out;
    for (const auto& [name, value] : set_by(wrapper)) out += fmt::format("{}={};", name, value);
    return out;
  };
  EXPECT_EQ(set({"env", "A=1", "B=x=y", "nice"}), "A=1;B=x=y;");
  EXPECT_EQ(set({"apptainer", "exec", "--env", "A=1,B=2", "--env=C=3", "a.sif"}), "A=1;B=2;C=3;");
  EXPECT_EQ(set({"bwrap", "--setenv", "A", "1", "--dev-bind", "/", "/"}), "A=1;");
  EXPECT_EQ(set({"enroot", "start", "--env", "A", "pytorch"}), "");
  EXPECT_EQ(set({"numactl", "-C", "0", "--env"}), "");
}

TEST(Container, TellsTheToolsProcessesFromTheProgram) {
  EXPECT_TRUE(belongs_to_tool({"bwrap"}, "bwrap"));
  EXPECT_TRUE(belongs_to_tool({"apptainer", "exec", "a.sif"}, "starter-suid"));
  EXPECT_FALSE(belongs_to_tool({"bwrap"}, "python"));
  EXPECT_FALSE(belongs_to_tool({"bwrap"}, ""));
  EXPECT_FALSE(belongs_to_tool({"nice"}, "nice"));
}

TEST(Container, AToolThatSplitsPathsDoesNotGetThoseThatItWouldSplit) {
  EXPECT_FALSE(can_mount({"apptainer", "exec", "a.sif"}, "/runs/a:b"));
  EXPECT_TRUE(can_mount({"bwrap"}, "/runs/a:b, c"));
  EXPECT_FALSE(can_mount({"enroot", "start", "a"}, "/runs/a b"));
}

TEST(Container, KnowsProgramsWhoseProcessesAreNotTheirDescendants) {
  EXPECT_TRUE(is_started_elsewhere({"nice", "/usr/bin/docker", "run", "a"}));
  EXPECT_TRUE(is_started_elsewhere({"srun", "-n", "1", "vllm", "serve"}));
  EXPECT_TRUE(is_started_elsewhere({"ssh", "node2", "vllm", "serve"}));
  EXPECT_FALSE(is_started_elsewhere({"apptainer", "exec", "a.sif", "vllm", "serve"}));
  EXPECT_FALSE(is_started_elsewhere({"python", "docker.py", "--ssh"}));
}

TEST(Container, RefusesWhatItCannotStartBehind) {
  EXPECT_EQ(
      problem_with({"podman", "run", "a"}).message,
      "'podman' cannot be a wrapper: its processes are not nlaunch's: they are children of another program, "
      "which nlaunch can neither stop nor look into");
  EXPECT_EQ(problem_with({"srun", "--container-image=a"}).hint,
            "`scheduler: {srun: [--container-image=...]}` of the site puts all of nlaunch's step into the "
            "container (pyxis)");
  EXPECT_EQ(problem_with({"enroot", "exec", "1"}).message, "'enroot' starts no program without 'start'");
  EXPECT_EQ(problem_with({"apptainer", "exec"}).message, "the wrapper ends without an image: 'exec'");
  EXPECT_EQ(problem_with({"apptainer", "exec", "--bind", "a.sif"}).message,
            "the wrapper ends without an image: 'a.sif'");
  EXPECT_EQ(
      problem_with({"podman-hpc", "run", "a"}).hint,
      "apptainer, bwrap and enroot start the program as their own child: apptainer reads docker:// images");
  EXPECT_EQ(problem_with({"apptainer", "exec", "a.sif"}).message, "");
  EXPECT_EQ(problem_with({"bwrap", "--"}).message, "");
}

}  // namespace
}  // namespace nlaunch::plan
