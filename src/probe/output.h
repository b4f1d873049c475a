#pragma once
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "base/diagnostic.h"

namespace nlaunch::probe {

/// Keeps standard output for the probe's JSON lines: from now on, what libraries print there (NCCL's log)
/// goes to standard error. Call it before any library is loaded.
void claim_stdout();

/// Prints one line atomically. Safe from several threads.
void emit(const nlohmann::json& line);

/// Makes the JSON stream file descriptor 1 again, for a program that this process is about to become.
void release_stdout();

/// Reports how long a part of the work took, when it ends: {"event": "phase", "name", "seconds"}.
class Phase {
 public:
  explicit Phase(std::string name) : name_(std::move(name)) {}
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  std::string name_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The messages of an error as one text.
std::string text_of(const Diagnostics& why);

}  // namespace nlaunch::probe
