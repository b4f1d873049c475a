#include "plan/vllm.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace nlaunch::plan {
namespace {

config::Role role_of(const std::vector<std::string>& words) {
  config::Role role;
  for (const auto& word : words) role.command.push_back({word, {}});
  return role;
}

TEST(Vllm, IsKnownByItsProgramOrItsModule) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"vllm"},
           {"vllm", "bench"},
           {"/opt/bin/vllm", "serve", "m"},
           {"uv", "run", "--with", "x", "vllm", "serve"},
           {"trl", "vllm-serve"},
           {"accelerate", "launch", "/venv/bin/trl", "vllm-serve", "--model"},
           {"python", "-m", "vllm.entrypoints.api_server"}})
    EXPECT_TRUE(runs_vllm(role_of(words))) << text::join(words, " ");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{},
                                             {"python", "vllm"},
                                             {"nice", "vllm", "bench"},
                                             {"vllm-proxy", "serve"},
                                             {"python", "-m", "vllm"},
                                             {"python", "-m"},
                                             {"python", "vllm.entrypoints.api_server"},
                                             {"trl", "sft", "vllm-serve"},
                                             {"trl"},
                                             {"serve", "vllm"}})
    EXPECT_FALSE(runs_vllm(role_of(words))) << text::join(words, " ");
}

TEST(Vllm, ASocketIsAFolderASlashAndAUuid) {
  EXPECT_TRUE(holds_vllm_sockets("/tmp"));
  EXPECT_TRUE(holds_vllm_sockets(std::string(107 - 37, 'x')));
  EXPECT_FALSE(holds_vllm_sockets(std::string(107 - 36, 'x')));
}

}  // namespace
}  // namespace nlaunch::plan
