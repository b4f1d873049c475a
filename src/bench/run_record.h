#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "bench/metrics.h"

namespace nlaunch::bench {

/// The result of one run. The words are those of its summary.json.
struct RunRecord {
  std::uint32_t repeat = 0;
  std::string folder;
  std::string outcome;  ///< "finished", "failed", "refused" ...
  int exit_code = 0;
  std::string sentence;
  std::string culprit;            ///< the process that failed first; empty: none did
  std::string cause;              ///< of a failure, without times: "learner.0 exited with code 3"
  std::optional<double> seconds;  ///< until it had finished or failed; nothing: it was never started
  std::map<std::string, Printed> metrics;

  [[nodiscard]] bool well() const { return exit_code == 0; }
  /// It was stopped from outside, or its time was over: that says nothing about the arm.
  [[nodiscard]] bool was_stopped() const;
};

/// Outcome, code, sentence, culprit, cause and time, as in summary.json. `summary` may be anything: what is
/// missing stays empty, and a run without an outcome has "no-summary".
RunRecord read_summary(const nlohmann::json& summary);

}  // namespace nlaunch::bench
