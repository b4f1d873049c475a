#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "diagnose/finding.h"
#include "diagnose/run_folder.h"

/// Logs of any program → what went wrong: the cause first, then what followed from it.
namespace nlaunch::diagnose {

struct Options {
  /// How long a pipe or standard input that does not end is read; what came until then is judged.
  std::chrono::milliseconds patience = std::chrono::minutes(10);
  /// For the run directory that is read; nothing: its summary.json.
  const KnownSummary* summary = nullptr;
  /// True stops reading; may be empty. Any thread may call it.
  std::function<bool()> enough = nullptr;
  unsigned threads = 1;  ///< to read several files at once; the result is the same
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
  std::optional<RunFolder> run;  ///< if a run directory was read, what it says about its end

  [[nodiscard]] const std::string& file_of(const Finding& finding) const {
    return inputs[finding.position.file].name;
  }
};

/// Reads run directories of nlaunch (the logs of their last attempt), files, directories (their contents,
/// sorted, without links to directories), archives and "-" for standard input.
Diagnosis diagnose(const std::vector<std::string>& paths, const Options& options);

}  // namespace nlaunch::diagnose
