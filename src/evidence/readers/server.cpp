#include "evidence/readers/server.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"

namespace nlaunch::evidence {
namespace {

using nlohmann::json;

/// The counters of one engine; names of Prometheus counters end with _total.
struct Names {
  std::array<const char*, 2> requests;
  std::array<const char*, 2> tokens;
  bool counts_at_once;
};
/// SGLang adds the tokens of a request when the request finishes.
constexpr std::array<Names, 2> kEngines{{
    {.requests = {"vllm:num_requests_running", "vllm:num_requests_waiting"},
     .tokens = {"vllm:generation_tokens_total", "vllm:prompt_tokens_total"},
     .counts_at_once = true},
    {.requests = {"sglang:num_running_reqs", "sglang:num_queue_reqs"},
     .tokens = {"sglang:generation_tokens_total", "sglang:prompt_tokens_total"},
     .counts_at_once = false},
}};

bool is_wanted(std::string_view name) {
  return std::ranges::any_of(kEngines, [&](const Names& engine) {
    return std::ranges::find(engine.requests, name) != engine.requests.end() ||
           std::ranges::find(engine.tokens, name) != engine.tokens.end();
  });
}

/// The sum of two counters of one sample; nothing if one is missing.
std::optional<double> sum(const json& look, const std::array<const char*, 2>& names) {
  const auto counters = look.value("counters", json::object());
  double all = 0;
  for (const auto* name : names) {
    if (!counters.contains(name)) return std::nullopt;
    all += counters.value(name, 0.0);
  }
  return all;
}

void read_metrics(const json& first, const json& second, Server& server) {
  for (const auto& engine : kEngines) {
    const auto before = sum(first, engine.requests);
    const auto now = sum(second, engine.requests);
    if (!before || !now) continue;
    server.idle = *before == 0 && *now == 0;
    const auto tokens_before = sum(first, engine.tokens);
    const auto tokens_now = sum(second, engine.tokens);
    if (tokens_before && tokens_before == tokens_now)
      server.stalled = static_cast<int>(std::lround(std::min(*before, *now)));
    server.counts_at_once = engine.counts_at_once;
  }
}

}  // namespace

std::map<std::string, double> counters_of(std::string_view metrics) {
  std::map<std::string, double> counters;
  for (const auto& line : text::split(metrics, '\n')) {
    const auto name = line.substr(0, line.find_first_of("{ "));
    if (!is_wanted(name)) continue;
    // A label can contain any character.
    const auto labels = line.rfind('}');
    const auto value =
        text::trim(std::string_view(line).substr(labels == std::string::npos ? name.size() : labels + 1));
    double number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error == std::errc() && std::isfinite(number)) counters[name] += number;
  }
  return counters;
}

Server read_server(const json& file) {
  Server server;
  const auto health = file.value("health", json::object());
  const auto status = health.value("status", 0);
  constexpr int kOk = 200;
  constexpr int kRedirect = 300;
  if (status == 0) {
    server.health = "does not answer on its health path: " + health.value("error", "");
  } else if (status < kOk || status >= kRedirect) {
    server.health = "answers " + std::to_string(status) + " on its health path";
  }
  const auto is_paused = file.value("is_paused", json::object());
  server.paused = is_paused.value("paused", false);
  server.core_silent = is_paused.value("status", 0) == 0;
  const auto looks = file.value("metrics", json::array());
  if (looks.size() == 2) read_metrics(looks[0], looks[1], server);
  server.idle = server.idle && server.health.empty() && !server.paused && !server.core_silent;
  return server;
}

}  // namespace nlaunch::evidence
