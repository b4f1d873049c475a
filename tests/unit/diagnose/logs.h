#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/collector.h"
#include "diagnose/ranking.h"
#include "diagnose/scanner.h"

/// Logs as texts, for the tests of what is found in them.
namespace nlaunch::diagnose {

struct Log {
  std::string text;
  Origin whose;
  FileStanding standing{};
};

/// Scans a text as a stream, in pieces of up to `step` bytes.
inline StreamEnd scan_text(Listener& listener, std::string_view text, std::uint32_t file = 0,
                           std::size_t step = 4096) {
  static Scanner scanner;
  scanner.begin(file, listener);
  while (!text.empty()) {
    const auto room = scanner.room();
    const auto size = std::min({text.size(), room.size(), step});
    std::ranges::copy(text.substr(0, size), room.begin());
    scanner.filled(size);
    text.remove_prefix(size);
  }
  return scanner.finish();
}

inline void read_logs(Collector& collector, const std::vector<Log>& logs) {
  for (std::uint32_t i = 0; i < logs.size(); ++i) {
    collector.begin(logs[i].whose, logs[i].standing);
    scan_text(collector, logs[i].text, i);
  }
  collector.finish();
}

/// What is found in these logs, best first, notes last. `end`: what a summary says of the end of their run.
inline std::vector<Finding> findings_of(const std::vector<Log>& logs,
                                        const std::optional<Finding>& end = std::nullopt) {
  Collector collector;
  read_logs(collector, logs);
  return ranked(collector, end);
}

inline std::vector<Finding> findings_of(std::string_view text) {
  return findings_of({Log{std::string(text), {}}});
}

/// "cuda-oom 3: rank 1" of the cause; "healthy" where nothing is wrong.
inline std::string cause_of(const std::vector<Finding>& findings) {
  if (findings.empty() || findings.front().role == Role::note) return "healthy";
  const auto& cause = findings.front();
  const auto names = names_of(cause.culprits);
  return cause.category + " " + std::to_string(cause.position.line) + (names.empty() ? "" : ": " + names);
}

inline std::string cause_of(std::string_view text) {
  return cause_of(findings_of(text));
}

/// So many lines that say nothing.
inline std::string nothing(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) text += "nothing\n";
  return text;
}

}  // namespace nlaunch::diagnose
