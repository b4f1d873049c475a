#include "launch/handshake.h"

#include <sys/random.h>
#include <nlohmann/json.hpp>

#include <array>

#include "base/json.h"
#include "base/sha256.h"
#include "launch/job_script.h"

namespace nlaunch::launch {
namespace {

using nlohmann::json;

/// Neither end's words can be sent back to it as the other's.
std::string proof(End by, std::string_view token, std::string_view challenge, std::string_view says) {
  return hmac_sha256(token, fmt::format("{}\n{}\n{}", by == End::host ? "host" : "visitor", challenge, says));
}

}  // namespace

std::string signed_line(End by, std::string_view token, std::string_view challenge, const json& says) {
  const auto text = json_text(says);
  return json_text(json{{"says", text}, {"proof", proof(by, token, challenge, text)}});
}

std::optional<json> verified(End by, std::string_view token, std::string_view challenge,
                             std::string_view line) {
  const auto message = parse_json(line);
  if (!message.is_object() || token.empty()) return std::nullopt;
  for (const char* key : {"says", "proof"}) {
    if (!message.contains(key) || !message[key].is_string()) return std::nullopt;
  }
  const auto& text = message["says"].get_ref<const std::string&>();
  if (!same_secret(message["proof"].get_ref<const std::string&>(), proof(by, token, challenge, text)))
    return std::nullopt;
  auto says = parse_json(text);
  return says.is_object() ? std::optional(std::move(says)) : std::nullopt;
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
