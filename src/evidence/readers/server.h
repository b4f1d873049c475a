#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace nlaunch::evidence {

/// From an answer to GET /metrics, in Prometheus' text format: the counts of requests and tokens of vLLM and
/// SGLang, each summed over its labels. Missing names are left out.
std::map<std::string, double> counters_of(std::string_view metrics);

/// What an HTTP server reported about itself.
struct Server {
  std::string health;        ///< the problem: "answers 503 on its health path"; empty: none
  bool paused = false;       ///< GET /is_paused of vLLM
  bool core_silent = false;  ///< GET /is_paused, which vLLM passes on to its engine core, timed out
  bool idle = false;         ///< no request ran or waited, and every request was answered
  int stalled = 0;           ///< requests that were in flight both times, with no token in between
  /// Each token is counted when it is generated (vLLM), not when its request finishes (SGLang).
  bool counts_at_once = false;
};
/// From server.json.
Server read_server(const nlohmann::json& file);

}  // namespace nlaunch::evidence
