#include "record/secret_scan.h"

#include <gtest/gtest.h>

namespace nlaunch::record {
namespace {

std::string masked(const std::string& text) {
  const SecretScanner scanner;
  std::string out;
  std::size_t copied = 0;
  for (const auto& match : scanner.scan(text)) {
    out += text.substr(copied, match.from - copied) + "***";
    copied = match.to;
  }
  return out + text.substr(copied);
}

TEST(SecretScan, MasksValuesByTheirNames) {
  EXPECT_EQ(masked("HF_TOKEN=abcd1234 next"), "HF_TOKEN=*** next");
  EXPECT_EQ(masked("export WANDB_API_KEY='my secret words'; run"), "export WANDB_API_KEY='***'; run");
  EXPECT_EQ(masked(R"({"db_password": "hunter22", "user": "x"})"), R"({"db_password": "***", "user": "x"})");
  EXPECT_EQ(masked(R"("{\"API_KEY\": \"hunter22\"}")"), R"("{\"API_KEY\": \"***\"}")");
  EXPECT_EQ(masked("api-key: hunter22,"), "api-key: ***,");
  EXPECT_EQ(masked("vllm serve --api-key hunter22 --port 1"), "vllm serve --api-key *** --port 1");
  EXPECT_EQ(masked("\"--api-key\",\n  \"hunter22\""), "\"--api-key\",\n  \"***\"");
}

TEST(SecretScan, MasksWhatHasTheShapeOfAToken) {
  const std::string tail = "0123456789abcdefghijABCDEFGHIJ012345";
  EXPECT_EQ(masked("got hf_" + tail), "got ***");
  EXPECT_EQ(masked("sk-proj-" + tail + "."), "***.");
  EXPECT_EQ(masked("ghp_" + tail), "***");
  EXPECT_EQ(masked("id AKIAIOSFODNN7EXAMPLE!"), "id ***!");
  EXPECT_EQ(masked("Authorization: Bearer abcdefghijklmnop1234"), "Authorization: Bearer ***");
  EXPECT_EQ(masked("https://bob:pa55word@host/x"), "https://bob:***@host/x");
  EXPECT_EQ(masked("machine x login user password pa55word\n"), "machine x login user password ***\n");
  EXPECT_EQ(masked("wandb: key 0123456789abcdef0123456789abcdef01234567"), "wandb: key ***");
  EXPECT_EQ(masked("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nrest"),
            "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----\nrest");
}

TEST(SecretScan, LeavesWhatOnlySoundsLikeOne) {
  for (const std::string text : {
           "max_tokens=4096 num_tokens: 123456",
           "eos_token: <|endoftext|> pad_token=</s-pad>",
           "tokens per second: 12345.6",
           "num_key_value_heads=8192",
           "commit 0123456789abcdef0123456789abcdef01234567",
           "HF_TOKEN=$HF_TOKEN HF_TOKEN=${HF_TOKEN:-none} HF_TOKEN=***",
           "api_key=None password: null secret=true",
           "secrets: [HF_TOKEN, WANDB_API_KEY]",
           "task-0123456789012345678901234567",
           "http://127.0.0.1:8000/health",
       })
    EXPECT_EQ(masked(text), text);
}

TEST(SecretScan, AKnownValueIsFoundWhereverItStands) {
  SecretScanner scanner;
  scanner.add_known("HF_TOKEN", "correct horse");
  scanner.add_known("SHORT_KEY", "abc");
  const auto found = scanner.scan("said correct horse, abc");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].what, "HF_TOKEN");
  EXPECT_EQ(found[0].from, 5U);
}

}  // namespace
}  // namespace nlaunch::record
