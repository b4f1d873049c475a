#include "launch/job/handshake.h"

#include <sys/random.h>

#include <array>

#include "base/sha256.h"
#include "launch/job/job_script.h"

namespace nlaunch::launch {
namespace {

/// Neither end's message can be replayed to it as the other's.
std::string_view name_of(End end) {
  return end == End::leader ? "leader" : "agent";
}

std::string proof(End by, std::string_view token, std::string_view challenge, std::string_view says) {
  return hmac_sha256(token, fmt::format("{}\n{}\n{}", name_of(by), challenge, says));
}

}  // namespace

Signed sign(End by, std::string_view token, std::string_view challenge, std::string says) {
  auto written = proof(by, token, challenge, says);
  return {std::move(says), std::move(written)};
}

bool is_proved(End by, std::string_view token, std::string_view challenge, const Signed& what) {
  return !token.empty() && same_secret(what.proof, proof(by, token, challenge, what.says));
}

LineProof::LineProof(End by, std::string_view token, std::string_view leader_challenge,
                     std::string_view agent_challenge)
    : key_(hmac_sha256(token,
                       fmt::format("lines of {}\n{}\n{}", name_of(by), leader_challenge, agent_challenge))) {}

std::string LineProof::next(std::string_view line) {
  return hmac_sha256(key_, fmt::format("{}\n{}", count_++, line));
}

Result<std::string> fingerprint(const plan::Plan& plan) {
  const auto text = plan_text(plan);
  if (!text) return std::unexpected(text.error());
  return sha256(*text);
}

std::string new_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return "";
  std::string token;
  for (const auto byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

}  // namespace nlaunch::launch
