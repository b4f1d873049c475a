#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(OwnTerminal, NothingTellsHowItsProgramEnds) {
  EXPECT_EQ(
      found("own-terminal", script("tmux new-session -d -s a\ntmux send-keys -t a 'python train.py' C-m\n")),
      (Texts{"note job.sh:1:1 a second start of this script finds session a already there",
             "note job.sh:2:1 tmux starts this in a terminal of its own: the script does not know how it "
             "ends"}));
  EXPECT_EQ(found("own-terminal", script("screen -dmS a bash train.sh\n")).size(), 1U);
  EXPECT_EQ(found("own-terminal", script("tmux kill-session -t run\ntmux new-session -d -s run\n")),
            Texts{"note job.sh:1:1 a second start of this script ends the run of the first, in session run"});
  for (const std::string fine :
       {"tmux new-session -d -s a\n", "tmux send-keys -t a C-c\n", "tmux attach -t a\n"})
    EXPECT_EQ(found("own-terminal", script(fine)), Texts{}) << fine;
}

TEST(OwnTerminal, ASessionThatIsAlreadyThere) {
  EXPECT_EQ(
      found("own-terminal",
            script("tmux new-session -d -s train 'python a.py --x 1'\ntmux attach -t train\n")),
      (Texts{
          "note job.sh:1:1 tmux starts this in a terminal of its own: the script does not know how it ends",
          "note job.sh:1:1 a second start of this script finds session train already there"}));
  EXPECT_EQ(found("own-terminal", script("tmux new-session -A -d -s train 'python a.py --x 1'\n")).size(),
            1U);
}

}  // namespace
}  // namespace nlaunch::lint
