#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "diagnose/finding.h"
#include "diagnose/run_folder.h"

/// Logs → what went wrong, whoever wrote them: the cause first, what followed after it.
namespace nlaunch::diagnose {

struct Options {
  /// How long a pipe or standard input is read when it does not end; what came until then is judged.
  std::chrono::milliseconds patience = std::chrono::minutes(10);
  /// Of the run directory that is read, as summary.json has it; nothing: what stands there.
  const nlohmann::json* summary = nullptr;
  std::function<bool()> enough = nullptr;  ///< true once there has been enough of reading; may be nothing
};

/// A file, or a member of an archive, that was read.
struct Input {
  std::string name;
  std::uint64_t bytes = 0;  ///< of its text, unpacked
  std::uint64_t lines = 0;
  std::string last{};    ///< the end of the last line that is not blank
  std::string remark{};  ///< what a reader should know: "truncated gzip: the readable part was judged"
};

struct Diagnosis {
  std::vector<Finding> findings;  ///< best first; no notes
  std::vector<Finding> notes;
  std::vector<Input> inputs;
  Diagnostics unread;            ///< what could not be read
  std::optional<RunFolder> run;  ///< where a run directory was read, what it says of its end

  [[nodiscard]] const std::string& file_of(const Finding& finding) const {
    return inputs[finding.position.file].name;
  }
};

/// Reads run directories of nlaunch (the logs of their last attempt), files, folders (what stands in them,
/// sorted, links to folders left aside), archives and "-" for standard input.
Diagnosis diagnose(const std::vector<std::string>& paths, const Options& options);

}  // namespace nlaunch::diagnose
