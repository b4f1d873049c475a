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

/// One archive of everything that a support ticket about a run needs.
namespace nlaunch::record {

struct BundleRequest {
  const RunFiles& run;
  std::string name;           ///< of the folder within the archive: NAME-RUN-ID
  std::filesystem::path out;  ///< replaced if there
  std::uint64_t limit = 0;    ///< bytes of a log; of a larger one head and tail
  bool redact = false;
  std::vector<std::string> environment;  ///< of who asks: its secrets are taken out wherever they stand
  /// What is in no file of the run: "README.txt", "machine/topology.txt", with the content.
  std::vector<std::pair<std::string, std::string>> made;
  std::function<bool()> enough;  ///< true once a person has had enough of waiting
};

/// A file of the bundle.
struct Packed {
  std::string path;
  std::uint64_t size = 0;     ///< as it lies in the bundle
  std::string sha256;         ///< likewise
  std::uint64_t cut_out = 0;  ///< bytes of the original that are left out in its middle
  std::string from;           ///< "the run", or how it was made
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

/// Nothing is left behind where it fails, and a bundle of before stays as it is. Memory: some megabytes; on
/// disk, beside the archive and only meanwhile, as much as the largest file that goes in.
Result<BundleReport> write_bundle(const BundleRequest& request);

/// MANIFEST.json, which is the last file of the bundle and does not name itself.
Json manifest(const BundleReport& report, const BundleRequest& request);

}  // namespace nlaunch::record
