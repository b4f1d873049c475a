#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace nlaunch::evidence {

/// Of an answer to GET /metrics, in Prometheus' text format: the counts of requests and tokens of vLLM and
/// SGLang, each the sum over its labels. A name that is not there is left out.
std::map<std::string, double> counters_of(std::string_view metrics);

/// What an HTTP server said of itself.
struct Server {
  std::string health;   ///< what is wrong with it: "answers 503 on its health path"; empty: nothing
  bool paused = false;  ///< GET /is_paused of vLLM
  bool core_silent =
      false;          ///< GET /is_paused, which vLLM hands on to its engine core, had no answer in time
  bool idle = false;  ///< no request ran or waited, and all that it was asked was answered
  int stalled = 0;    ///< requests that were under way both times, with no token between
  /// Each token is counted when it is made (vLLM), not when its request ends (SGLang).
  bool counts_at_once = false;
};
/// Of server.json.
Server read_server(const nlohmann::json& file);

}  // namespace nlaunch::evidence
