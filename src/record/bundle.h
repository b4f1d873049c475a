#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "record/inventory.h"
#include "record/redactor.h"
#include "record/run_files.h"
#include "record/text_filter.h"

/// One archive with everything that a support ticket about a run needs.
namespace nlaunch::record {

struct BundleRequest {
  const RunFiles& run;
  std::string name;           ///< of the directory inside the archive: NAME-RUN-ID
  std::filesystem::path out;  ///< replaced if it exists
  std::uint64_t limit = 0;    ///< largest size of a log in bytes; a larger one is truncated to head and tail
  bool redact = false;
  std::vector<std::string> environment;  ///< of the caller: its secrets are masked wherever they occur
  /// Content that is not in a file of the run: "README.txt", "machine/topology.txt", with the content.
  std::vector<std::pair<std::string, std::string>> made;
  std::function<bool()> enough;  ///< returns true once the user has interrupted
};

/// A file of the bundle.
struct Packed {
  std::string path;
  std::uint64_t size = 0;     ///< size in the bundle
  std::string sha256;         ///< of the content in the bundle
  std::uint64_t cut_out = 0;  ///< bytes of the original that are left out of the middle
  std::string from;           ///< "the run", or how it was created
};

/// A secret that was masked.
struct MaskedSecret {
  std::string path;
  std::string what;
  TextFilter::Masked where;
};

struct BundleReport {
  std::filesystem::path file;
  std::uint64_t bytes = 0;  ///< of the archive
  std::vector<Packed> files;
  std::vector<LeftOut> left_out;
  std::vector<MaskedSecret> secrets;
  std::vector<Redactor::Count> redacted;
};

/// On failure nothing is left behind, and an earlier bundle stays as it is. Memory: some megabytes. Disk:
/// temporarily, next to the archive, as much as the largest file that is added.
Result<BundleReport> write_bundle(const BundleRequest& request);

/// MANIFEST.json: the last file of the bundle, which does not list itself.
Json manifest(const BundleReport& report, const BundleRequest& request);

}  // namespace nlaunch::record
