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
            "APPTAINERENV_LD_LIBRARY_PATH=/opt/x/lib APPTAINERENV_LD_PRELOAD=/opt/libnccl.so.2:/opt/scope.so "
            "APPTAINERENV_NLAUNCH_ROLE=learner APPTAINERENV_PREPEND_PATH=/venv/bin APPTAINERENV_RANK=0 "
            "APPTAINER_NO_EVAL=1");
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
  EXPECT_EQ(problem_with({"podman", "run", "a"}).message,
            "'podman' cannot be a wrapper: its processes are children of another program, and nlaunch can "
            "neither stop nor inspect them");
  EXPECT_EQ(problem_with({"srun", "--container-image=a"}).hint,
            "`scheduler: {srun: [--container-image=...]}` in the site profile runs nlaunch's whole step in "
            "the container (pyxis)");
  EXPECT_EQ(problem_with({"enroot", "exec", "1"}).message, "'enroot' needs 'start' to start a program");
  EXPECT_EQ(problem_with({"apptainer", "exec"}).message, "the wrapper ends without an image, at 'exec'");
  EXPECT_EQ(problem_with({"apptainer", "exec", "--bind", "a.sif"}).message,
            "the wrapper ends without an image, at 'a.sif'");
  EXPECT_EQ(problem_with({"podman-hpc", "run", "a"}).hint,
            "use apptainer, bwrap or enroot, which start the program as their own child; apptainer accepts "
            "docker:// images");
  EXPECT_EQ(problem_with({"apptainer", "exec", "a.sif"}).message, "");
  EXPECT_EQ(problem_with({"bwrap", "--"}).message, "");
}

TEST(Container, MountsStandBehindTheVerbOrBehindTheToolsOwnOptions) {
  struct Case {
    Words wrapper;
    const char* with_work;
  };
  const Case cases[] = {
      {{"apptainer", "exec", "a.sif"}, "apptainer exec --bind /work:/work a.sif"},
      {{"/usr/bin/apptainer", "run", "--nv", "a.sif"},
       "/usr/bin/apptainer run --bind /work:/work --nv a.sif"},
      // Without a verb there is no place for them.
      {{"apptainer", "a.sif"}, "apptainer a.sif"},
      {{"exec", "apptainer"}, "exec apptainer"},
      {{"nice", "enroot", "start", "a"},
       "nice enroot start --mount /work:/work:none:x-create=auto,bind,rw a"},
      // Tools that cannot be told.
      {{"docker", "run", "a"}, "docker run a"},
      {{"nice", "-n", "5"}, "nice -n 5"},
      // Each option of bwrap has its own number of values.
      {{"bwrap"}, "bwrap --die-with-parent --bind /work /work"},
      {{"bwrap", "sh"}, "bwrap --die-with-parent --bind /work /work sh"},
      {{"bwrap", "--clearenv", "sh"}, "bwrap --clearenv --die-with-parent --bind /work /work sh"},
      {{"bwrap", "--unshare-net", "sh"}, "bwrap --unshare-net --die-with-parent --bind /work /work sh"},
      {{"bwrap", "--chdir", "/", "sh"}, "bwrap --chdir / --die-with-parent --bind /work /work sh"},
      {{"bwrap", "--ro-bind", "/", "/", "sh"}, "bwrap --ro-bind / / --die-with-parent --bind /work /work sh"},
      {{"bwrap", "--overlay", "/rw", "/tmp", "/x", "sh"},
       "bwrap --overlay /rw /tmp /x --die-with-parent --bind /work /work sh"},
      // The last option lacks its second value.
      {{"bwrap", "--bind", "/"}, "bwrap --bind / --die-with-parent --bind /work /work"},
  };
  for (const auto& [wrapper, with_work] : cases)
    EXPECT_EQ(line(with_mounts(wrapper, {{"/work", true}})), with_work);
}

TEST(Container, TheImageIsBehindEachOptionAndItsValues) {
  struct Case {
    Words options;
    const char* image;
  };
  const Case of_apptainer[] = {
      {{}, "x"},
      {{"--writable"}, "x"},
      {{"--bind", "/a"}, "x"},
      {{"--bind=/a"}, "x"},
      {{"-B", "/a"}, "x"},
      {{"-e"}, "x"},
      {{"-eB", "/a", "-C"}, "x"},
      {{"--network", "none", "--env", "A=1", "--pwd", "/"}, "x"},
      {{"--"}, "x"},
      {{"--nv", "--"}, "x"},
  };
  for (const auto& [options, image] : of_apptainer) {
    Words wrapper{"apptainer", "exec"};
    wrapper.insert(wrapper.end(), options.begin(), options.end());
    wrapper.insert(wrapper.end(), {"x", "y"});
    EXPECT_EQ(image_of(wrapper), image) << line(wrapper);
  }
  EXPECT_EQ(image_of({"apptainer", "exec", "sandbox"}), "sandbox") << "a folder of this name";
  EXPECT_EQ(image_of({"apptainer", "exec", "oras://registry/x.sif"}), "");
  EXPECT_EQ(image_of({"enroot", "start", "-c", "conf", "-e", "A=1", "images/x"}), "images/x");
  EXPECT_EQ(image_of({"enroot", "start", "--", "x.sqsh"}), "x.sqsh");
  EXPECT_EQ(image_of({"apptainer", "exec", "--"}), "");
  EXPECT_EQ(image_of({"apptainer", "x.sif"}), "");
}

TEST(Container, OnlyOptionsOfTheToolCleanTheEnvironment) {
  const auto by = [](const Words& wrapper) {
    const auto passage = passage_of(wrapper);
    return fmt::format("{} {}", static_cast<int>(passage.of), passage.by);
  };
  EXPECT_EQ(by({"apptainer", "exec", "a.sif", "--cleanenv"}), "0 ") << "of the program in the image";
  EXPECT_EQ(by({"apptainer", "exec", "--nv", "-e", "a.sif"}), "1 -e");
  EXPECT_EQ(by({"singularity", "run", "--containall", "a.sif"}), "1 --containall");
  EXPECT_EQ(by({"--cleanenv", "apptainer", "exec", "a.sif"}), "0 ");
  EXPECT_EQ(by({"apptainer", "--cleanenv"}), "1 --cleanenv");
  EXPECT_EQ(by({"nice", "bwrap", "--dev-bind", "/", "/", "--clearenv", "sh"}), "2 --clearenv");
  EXPECT_EQ(by({"bwrap", "sh", "--clearenv"}), "0 ");
  EXPECT_EQ(by({"docker", "-i", "run"}), "0 ");
  EXPECT_EQ(by({"nice", "enroot", "start", "--rw", "a"}), "1 enroot");
}

TEST(Container, APathIsMountedWhereTheToolReadsItAsOne) {
  struct Case {
    Words wrapper;
    const char* path;
    bool can;
  };
  const Case cases[] = {
      {{"nice"}, "/a:b", true},
      {{"bwrap"}, "/a:b", true},
      {{"docker", "run"}, "/a:b", true},
      {{"apptainer", "exec", "a.sif"}, "/a b", true},
      {{"apptainer", "exec", "a.sif"}, "/a,b", false},
      {{"singularity", "exec", "a.sif"}, "/a\\b", false},
      {{"enroot", "start", "a"}, "/a,b", true},
      {{"enroot", "start", "a"}, "/a:b", false},
      {{"enroot", "start", "a"}, "/a\tb", false},
      {{"enroot", "start", "a"}, "/$a", false},
  };
  for (const auto& [wrapper, path, can] : cases)
    EXPECT_EQ(can_mount(wrapper, path), can) << wrapper.front() << " " << path;
}

TEST(Container, WordsBehindEnvAreVariablesAsLongAsTheyAre) {
  const auto set = [](const Words& wrapper) {
    std::string out;
    for (const auto& [name, value] : set_by(wrapper)) out += fmt::format("{}={};", name, value);
    return out;
  };
  EXPECT_EQ(set({"/usr/bin/env", "A=1"}), "A=1;");
  EXPECT_EQ(set({"nice", "env", "A="}), "A=;");
  EXPECT_EQ(set({"env", "nice", "B=2"}), "");
  EXPECT_EQ(set({"env"}), "");
  EXPECT_EQ(set({"myenv", "A=1"}), "");
  EXPECT_EQ(set({"bwrap", "--setenv", "A", "1"}), "A=1;");
  EXPECT_EQ(set({"bwrap", "--setenv", "A"}), "");
  EXPECT_EQ(set({"apptainer", "exec", "--env", "A=1,B"}), "A=1;");
  EXPECT_EQ(set({"apptainer", "exec", "--env=A=1,B,C=3"}), "A=1;C=3;");
}

TEST(Container, KnowsTheToolsByTheNamesOfTheirPrograms) {
  for (const Words& wrapper :
       {Words{"bwrap"}, {"/usr/bin/enroot", "start", "a"}, {"nice", "-n", "1", "singularity"}, {"docker"}})
    EXPECT_TRUE(is_container(wrapper)) << line(wrapper);
  for (const Words& wrapper : {Words{}, {"nice"}, {"bwrap.sh"}, {"/opt/enroot/bin/start"}, {"bwrap/"}})
    EXPECT_FALSE(is_container(wrapper)) << line(wrapper);
}

TEST(Container, ProgramsOfOtherMachinesAreStartedElsewhere) {
  for (const auto* word : {"kubectl", "/usr/bin/ssh", "systemd-run", "podman", "podman-hpc", "nerdctl"})
    EXPECT_TRUE(is_started_elsewhere({word, "x"})) << word;
  for (const auto* word : {"bwrap", "enroot", "sshd", "kube", ""})
    EXPECT_FALSE(is_started_elsewhere({word, "x"})) << word;
  EXPECT_FALSE(is_started_elsewhere({}));
}

TEST(Container, AWrapperWithoutItsVerbIsToldHowItIsWritten) {
  const auto without = problem_with({"apptainer", "--nv", "a.sif"});
  EXPECT_EQ(without.message, "'apptainer' needs 'exec or run' to start a program");
  EXPECT_EQ(without.hint, "write [apptainer, exec, ..., IMAGE]");
  EXPECT_EQ(problem_with({"enroot"}).hint, "write [enroot, start, ..., IMAGE]");
  const auto imageless = problem_with({"enroot", "start", "--rw"});
  EXPECT_EQ(imageless.message, "the wrapper ends without an image, at '--rw'");
  EXPECT_EQ(imageless.hint,
            "the image comes after the options and their values; the command comes after the wrapper");
  EXPECT_EQ(problem_with({"apptainer", "exec", "--"}).message, "the wrapper ends without an image, at '--'");
  EXPECT_EQ(problem_with({"apptainer", "exec", "--", "a.sif"}).message, "");
  EXPECT_EQ(problem_with({"nice"}).message, "");
  EXPECT_EQ(problem_with({"nice"}).hint, "");
  EXPECT_EQ(problem_with({"/usr/bin/docker", "run", "a"}).message.substr(0, 33),
            "'docker' cannot be a wrapper: its");
}

TEST(Container, AToolThatIsNotToldVariablesLeavesThemInItsEnvironment) {
  const auto start = start_of(process_behind({"docker", "run", "a"}), {"x"});
  EXPECT_EQ(line(start.argv), "docker run a x");
  EXPECT_TRUE(line(start.env).contains("LD_PRELOAD=/opt/libnccl.so.2:/opt/scope.so"));
}

TEST(Container, TheToolSetsHomeByItself) {
  auto process = process_behind({"apptainer", "exec", "a.sif"});
  process.env = {{"HOME", "/home/u"}, {"PATH", "/usr/bin"}};
  process.given = {{"HOME", "/home/u"}, {"PATH", "/usr/bin"}, {"RANK", "1"}};
  EXPECT_EQ(line(start_of(process, {"x"}).env),
            "HOME=/home/u PATH=/usr/bin APPTAINERENV_PATH=/usr/bin APPTAINERENV_RANK=1 APPTAINER_NO_EVAL=1");
  process.env = {{"RANK", "1"}};
  process.given = {{"PATH", "/usr/bin"}};
  EXPECT_EQ(line(start_of(process, {"x"}).env), "RANK=1 APPTAINERENV_PATH=/usr/bin APPTAINER_NO_EVAL=1")
      << "a PATH that the environment lacks is a whole one";
}

TEST(Container, WithoutAPreloadBwrapIsToldNothing) {
  auto process = process_behind({"bwrap", "--unshare-net"});
  process.env = {{"RANK", "0"}};
  process.given = process.env;
  EXPECT_EQ(line(start_of(process, {"x"}).argv), "bwrap --unshare-net x");
}

TEST(Container, EnrootTakesAWholePathAndNoneThatIsAddedTo) {
  auto process = process_behind({"enroot", "start", "a"});
  process.env = {{"PATH", "/only"}, {"NLAUNCH_ROLE", "learner"}};
  process.given = {{"PATH", "/only"}};
  EXPECT_EQ(line(start_of(process, {"x"}, {{"MORE", "1"}}).argv), "enroot start --env PATH --env MORE a x");
  process.env = {{"PATH", "/venv/bin:/usr/bin"}};
  process.given = {{"PATH", "/venv/bin"}};
  EXPECT_EQ(line(start_of(process, {"x"}).argv), "enroot start a x");
  process.env = {};
  EXPECT_EQ(line(start_of(process, {"x"}).argv), "enroot start a x");
}

TEST(Container, AProbeWithoutAContainerHasTheEnvironmentButNoPreload) {
  const auto start = start_of_probe(process_behind({"numactl", "-N", "0"}), {"nlaunch-probe"});
  EXPECT_EQ(line(start.argv), "numactl -N 0 nlaunch-probe");
  EXPECT_EQ(line(start.env), "LD_LIBRARY_PATH=/opt/x/lib:/cray/lib PATH=/venv/bin:/usr/bin RANK=0 USER=u");
}

}  // namespace
}  // namespace nlaunch::plan
