#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

/// What is said of the container of the learners.
Lines said(const json& answer, const std::string& error = "", bool gpus = true, std::uint32_t of_role = 1) {
  Machine machine(1, 0, gpus);
  machine.plan.roles[0].wrapper = {"apptainer", "exec", "--nv", "my image.sif"};
  machine.plan.roles[0].workdir = "/work";
  machine.plan.roles[0].gpus = of_role;
  auto observations = machine.of_node();
  observations.answers["container/learner"] = {answer, error};
  return lines(run_check("container", observations));
}

TEST(CheckContainer, SaysWhatIsInIt) {
  EXPECT_EQ(said({{"os", "Ubuntu 24.04"}, {"glibc", "2.39"}, {"gpus", true}}),
            Lines{"pass | learner | Ubuntu 24.04, glibc 2.39 |  |  | "});
  EXPECT_EQ(said({{"gpus", true}}), Lines{"pass | learner | no /etc/os-release, glibc  |  |  | "});
}

TEST(CheckContainer, AFileThatIsPreloadedHasToBeThere) {
  EXPECT_EQ(said({{"unreadable", {{"/a.so", "No such file or directory"}, {"/b.so", "x"}}}, {"gpus", true}}),
            Lines{"fail | learner | '/a.so' cannot be read in the container: No such file or directory | the "
                  "files that the role preloads | mount it, or remove what hides it: apptainer exec --nv 'my "
                  "image.sif' | user"});
}

TEST(CheckContainer, ARoleOnGpusNeedsThemInside) {
  EXPECT_EQ(said(json::object()),
            Lines{"fail | learner | it has no GPU: /dev/nvidiactl does not exist | the GPUs of the role | "
                  "use `apptainer exec --nv`, `bwrap --dev-bind /dev /dev`, or enroot with its hook "
                  "98-nvidia.sh | user"});
  EXPECT_TRUE(said(json::object(), "", false).at(0).starts_with("pass"));
  EXPECT_TRUE(said(json::object(), "", true, 0).at(0).starts_with("pass"));
}

TEST(CheckContainer, TellsWhetherAnythingStartsInIt) {
  EXPECT_EQ(
      said({{"words", "exited with code 255: no image"}}, "nlaunch-probe container exited with code 255"),
      Lines{
          "fail | learner | no program starts in the container: exited with code 255: no image | a container "
          "that starts | try it manually, in /work: apptainer exec --nv 'my image.sif' true | user"});
  EXPECT_EQ(said(json::object(), "nlaunch-probe container exited with code 127"),
            Lines{"unknown | learner | programs start in the container, but nlaunch-probe does not, so "
                  "nothing is checked there: nlaunch-probe container exited with code 127; it needs glibc "
                  "(2.28) and the file that nlaunch mounts |  |  | "});
}

TEST(CheckContainer, OfARoleWithoutOneNothingIsSaid) {
  EXPECT_TRUE(run_check("container", Machine(1, 1).of_node()).empty());
}

}  // namespace
}  // namespace nlaunch::preflight
