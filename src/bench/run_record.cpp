#include "bench/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/exit_code.h"
#include "sys/wait_status.h"

namespace nlaunch::bench {
namespace {

using nlohmann::json;

std::string text_in(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// "exited with code 3" of the process that failed first; empty if its exit is unknown.
std::string end_of(const json& summary, const std::string& culprit) {
  for (const auto& process : summary.value("processes", json::array())) {
    if (text_in(process, "name") != culprit) continue;
    const auto end = process.value("end", json::object());
    if (!end.is_object()) return "";
    if (end.contains("code")) return sys::WaitStatus::exited(end["code"].get<int>()).str();
    return sys::WaitStatus(sys::signal_number(text_in(end, "signal"))).str();
  }
  return "";
}

}  // namespace

bool RunRecord::was_stopped() const {
  constexpr std::array<std::string_view, 3> kStopped{"interrupted", "terminated", "walltime"};
  return std::ranges::find(kStopped, outcome) != kStopped.end();
}

RunRecord read_summary(const json& summary) {
  RunRecord out;
  out.outcome = "no-summary";
  out.exit_code = exit_code::internal;
  if (!summary.is_object() || text_in(summary, "outcome").empty()) return out;
  out.outcome = text_in(summary, "outcome");
  out.sentence = text_in(summary, "sentence");
  out.exit_code = summary.value("exit_code", exit_code::internal);
  const auto decided = summary.find("decided_ms");
  constexpr double kMilliseconds = 1000;
  if (decided != summary.end() && decided->is_number()) out.seconds = decided->get<double>() / kMilliseconds;
  if (out.well()) return out;
  out.culprit = text_in(summary, "first");
  const auto end = end_of(summary, out.culprit);
  out.cause = out.outcome == "failed" && !end.empty() ? fmt::format("{} {}", out.culprit, end) : out.sentence;
  return out;
}

}  // namespace nlaunch::bench
