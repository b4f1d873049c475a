#include "plan/vllm.h"

#include <string_view>

namespace nlaunch::plan {

bool runs_vllm(const config::Role& role) {
  const auto& words = role.command;
  const auto word = [&](std::size_t i) { return i < words.size() ? std::string_view(words[i].value) : ""; };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto program = word(i).substr(word(i).rfind('/') + 1);
    if (program == "vllm" && (i == 0 || word(i + 1) == "serve")) return true;
    if (program == "trl" && word(i + 1) == "vllm-serve") return true;
    if (program == "-m" && word(i + 1).starts_with("vllm.entrypoints.")) return true;
  }
  return false;
}

bool holds_vllm_sockets(const std::string& folder) {
  constexpr std::size_t kLongestSocket = 107;  // unix(7), without the final zero
  constexpr std::size_t kUuid = 1 + 36;        // vllm/utils/network_utils.py: "{folder}/{uuid4()}"
  return folder.size() + kUuid <= kLongestSocket;
}

}  // namespace nlaunch::plan
