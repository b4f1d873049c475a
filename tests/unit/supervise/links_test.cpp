#include "supervise/links.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

namespace nlaunch::supervise {
namespace {

/// "wandb https://..."; empty: none.
std::string found(std::string_view line) {
  const auto link = link_in(line);
  return link ? fmt::format("{} {}", link->kind, link->url) : "";
}

TEST(Links, AreFoundInWhatTrackersPrint) {
  const std::pair<std::string_view, std::string_view> kLines[] = {
      {"wandb: 🚀 View run at https://wandb.ai/acme/grpo/runs/x1y2z3",
       "wandb https://wandb.ai/acme/grpo/runs/x1y2z3"},
      {"wandb: 🚀 View run vivid-glade-86 at: https://wandb.ai/acme/grpo/runs/11cqdt05",
       "wandb https://wandb.ai/acme/grpo/runs/11cqdt05"},
      {"wandb:  View run at https://wandb.example.org:8080/acme/grpo/runs/mey3t37m",
       "wandb https://wandb.example.org:8080/acme/grpo/runs/mey3t37m"},
      {"\x1b[36m(TaskRunner pid=4711)\x1b[0m wandb: 🚀 View run at https://wandb.ai/acme/grpo/runs/x1",
       "wandb https://wandb.ai/acme/grpo/runs/x1"},
      {"\x1b[1m\x1b[34mwandb\x1b[0m: 🚀 View run at "
       "\x1b[34m\x1b[4mhttps://wandb.ai/acme/grpo/runs/x1\x1b[0m\r",
       "wandb https://wandb.ai/acme/grpo/runs/x1"},
      {"TensorBoard 2.20.0 at http://localhost:6006/ (Press CTRL+C to quit)",
       "tensorboard http://localhost:6006/"},
      {"TensorBoard 2.22.0a0 at http://nid001:6006/exp/ (Press CTRL+C to quit)",
       "tensorboard http://nid001:6006/exp/"},
      {"🏃 View run smiling-fox-12 at: http://10.0.0.5:5000/#/experiments/3/runs/0b1f2c3d",
       "mlflow http://10.0.0.5:5000/#/experiments/3/runs/0b1f2c3d"},
      {"🏃 View run a b at: https://dbc.example.com/ml/experiments/12/runs/0b1f?workspace=a%20b",
       "mlflow https://dbc.example.com/ml/experiments/12/runs/0b1f?workspace=a%20b"},
      {"COMET INFO: Experiment is live on comet.com https://www.comet.com/acme/grpo/a51199ef5824451897",
       "comet https://www.comet.com/acme/grpo/a51199ef5824451897"},
      {"COMET INFO: Experiment is live on comet.ml https://www.comet.ml/acme/grpo/a51199ef5824451897",
       "comet https://www.comet.ml/acme/grpo/a51199ef5824451897"},
      {"[neptune] [info   ] Neptune initialized. Open in the app: https://app.neptune.ai/acme/grpo/e/G-12",
       "neptune https://app.neptune.ai/acme/grpo/e/G-12"},
      {"swanlab: 🚀 View run at https://swanlab.cn/@acme/grpo/runs/d9f6abcd/chart",
       "swanlab https://swanlab.cn/@acme/grpo/runs/d9f6abcd/chart"},
      {"swanlab: 🚀 View run exp-1 at https://swanlab.cn/@acme/grpo/runs/d9f6abcd",
       "swanlab https://swanlab.cn/@acme/grpo/runs/d9f6abcd"},
      {"https://swanlab.cn/@acme/grpo/runs/d9f6abcdefghijklmnopq",
       "swanlab https://swanlab.cn/@acme/grpo/runs/d9f6abcdefghijklmnopq"},
      {"* Found existing space: \x1b[1m\x1b[38;5;208mhttps://huggingface.co/spaces/acme/trackio\x1b[0m",
       "trackio https://huggingface.co/spaces/acme/trackio"},
      {"* Creating new space: https://huggingface.co/spaces/acme/trackio",
       "trackio https://huggingface.co/spaces/acme/trackio"},
      {"\x1b[1m\x1b[38;5;208m* Trackio UI launched at: http://127.0.0.1:7860/?project=grpo\x1b[0m",
       "trackio http://127.0.0.1:7860/?project=grpo"},
  };
  for (const auto& [line, link] : kLines) EXPECT_EQ(found(line), link) << line;
}

TEST(Links, AreNotFoundElsewhere) {
  const std::string_view kLines[] = {
      "",
      "http",
      "step 7: loss 0.3",
      "wandb: ⭐️ View project at https://wandb.ai/acme/grpo",
      "wandb: 🧹 View sweep at https://wandb.ai/acme/grpo/sweeps/7w9xi059",
      "wandb: Run data is saved locally in /tmp/wandb/run-1",
      "see https://wandb.ai/acme/grpo/runs/x1 for an example",
      "wandb: 🚀 View run at ftp://wandb.ai/acme/grpo/runs/x1",
      "🧪 View experiment at: http://10.0.0.5:5000/#/experiments/3",
      "View run smiling-fox-12 at: http://10.0.0.5:5000/#/3",
      "INFO: Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)",
      "swanlab: 📁 View project at https://swanlab.cn/@acme/grpo",
      // broken at 80 columns
      "https://swanlab.cn/@acme-of-a-long-name/grpo-with-a-long-project-name/runs/d9f6abcd",
      "* Trackio dashboard opened in browser with write access at: http://127.0.0.1:7860/?write_token=x",
      "* Trackio metrics will be synced to Hugging Face Bucket: https://huggingface.co/buckets/acme/b",
  };
  for (const auto line : kLines) EXPECT_EQ(found(line), "") << line;
}

TEST(Links, AreRefusedIfTheyCouldDeceive) {
  const std::string begin = "wandb: 🚀 View run at https://wandb.ai/acme/grpo/runs/";
  EXPECT_EQ(found(begin + "x\x07y"), "");
  EXPECT_EQ(found(begin + "x\u202Ey"), "") << "not ASCII";
  EXPECT_EQ(found(begin + std::string("x\0y", 3)), "");
  EXPECT_EQ(found(begin + "x{y}"), "");
  EXPECT_EQ(found(begin + "x\"y"), "wandb https://wandb.ai/acme/grpo/runs/x");
  EXPECT_EQ(found(begin + "x1.\n"), "wandb https://wandb.ai/acme/grpo/runs/x1");
  EXPECT_EQ(found(begin + std::string(3000, 'x')), "");
  EXPECT_EQ(found(begin + std::string(1900, 'x')).size(), 6 + 32 + 1900U);
  EXPECT_EQ(found(begin + "x " + std::string(100'000, '-')), "") << "a line of a program, not of a tracker";
}

TEST(Links, HaveNoCredentials) {
  const std::pair<std::string_view, std::string_view> kUrls[] = {
      {"https://wandb.ai/a/b/runs/c", "https://wandb.ai/a/b/runs/c"},
      {"http://user:hunter2@10.0.0.5:5000/#/experiments/1/runs/2",
       "http://10.0.0.5:5000/#/experiments/1/runs/2"},
      {"https://hunter2@h", "https://h"},
      {"https://a@b@h/x@y", "https://h/x@y"},
      {"https://wandb.ai/a/b/runs/c?apiKey=0123", "https://wandb.ai/a/b/runs/c"},
      {"https://h/?a=1&write_token=0123&b=2#c", "https://h/?a=1&b=2#c"},
      {"https://h/?token=0123&b=2", "https://h/?b=2"},
      {"https://h/?b=2&token=0123#top", "https://h/?b=2#top"},
      {"https://h/#/runs/1?access_token=0123&x=y", "https://h/#/runs/1?x=y"},
      {"https://h/?a=1#/runs?key=0123", "https://h/?a=1#/runs"},
      {"https://h/#access_token=0123", "https://h/"},
      {"https://h/cb#access_token=0123&state=x", "https://h/cb#state=x"},
      {"https://h/?a=1#id_token=0123&state=x", "https://h/?a=1#state=x"},
      {"https://h/?a=1;token=0123", "https://h/?a=1"},
      {"https://h/?token=0123;a=1", "https://h/?a=1"},
      {"https://h/run;token=0123/step?a=1", "https://h/run?a=1"},
      {"https://h/page#token", "https://h/page#token"},
      {"https://h/#/runs/token-loss?x=y", "https://h/#/runs/token-loss?x=y"},
      {"https://h/run;v=1", "https://h/run;v=1"},
      {"https://h/a&b", "https://h/a&b"},
      {"https://h/?project=grpo", "https://h/?project=grpo"},
      {"https://h/?", "https://h/?"},
      {"", ""},
  };
  for (const auto& [url, clean] : kUrls) {
    EXPECT_EQ(without_credentials(url), clean);
    EXPECT_EQ(without_credentials(clean), clean);
  }
  EXPECT_EQ(found("wandb: 🚀 View run at https://wandb.ai/a/b/runs/c?apiKey=0123"),
            "wandb https://wandb.ai/a/b/runs/c");
}

TEST(Links, AreKeptOnceAndNotMoreThanSixteen) {
  std::vector<Link> links;
  EXPECT_TRUE(add_link(links, {"wandb", "https://wandb.ai/a/b/runs/0", "learner.0"}));
  EXPECT_FALSE(add_link(links, {"wandb", "https://wandb.ai/a/b/runs/0", "learner.1"}));
  EXPECT_EQ(links.front().str(), "wandb: https://wandb.ai/a/b/runs/0 (learner.0)");
  for (int i = 1; i < 40; ++i) add_link(links, {"wandb", fmt::format("https://wandb.ai/a/b/runs/{}", i), ""});
  EXPECT_EQ(links.size(), kMostLinks);
  EXPECT_EQ(links.back().str(), "wandb: https://wandb.ai/a/b/runs/15");
}

TEST(Links, OfAFileThatSomebodyHasChangedAreChecked) {
  std::vector<Link> links;
  for (const std::string url :
       {"", "javascript:alert(1)", "file:///etc/passwd", "https://", "https://h/\"><script>", "https://h/ x",
        "https://user:x@h/", "https://h/?token=x", "https://h/\n", "HTTPS://h/", "https://h/\x1b[2J"})
    EXPECT_FALSE(add_link(links, {"wandb", url, "learner.0"})) << url;
  EXPECT_FALSE(add_link(links, {"wandb", "https://h/" + std::string(2048, 'x'), ""}));
  for (const std::string kind : {"", "W&B", "<b>", "a b", "abcdefghijklmnopqrstuvwxyz"})
    EXPECT_FALSE(add_link(links, {kind, "https://h/", ""})) << kind;
  EXPECT_TRUE(add_link(links, {"later", "https://h/", "learner\x1b[2J"}));
  EXPECT_EQ(links.front().process, R"(learner\x1b[2J)");
}

}  // namespace
}  // namespace nlaunch::supervise
