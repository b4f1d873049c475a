// Whatever bytes the files of a run directory hold: a bundle is made of it, without what is secret, and it
// can be compared. For libFuzzer, or with mutate.cpp for a short run of a fixed seed.
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/json.h"
#include "record/bundle.h"
#include "record/compare.h"
#include "record/extracts.h"
#include "report/compare_text.h"
#include "report/run_readme.h"
#include "sys/files.h"

namespace {

using namespace nlaunch;
namespace fs = std::filesystem;

constexpr std::string_view kSecret = "swordfish-0123456789";

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

/// One folder for all inputs, removed at the end.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("nlaunch-run-fuzz-" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path / "attempt-0" / "logs"); }
  ~Folder() { fs::remove_all(path); }
};

void write_run(const fs::path& run, const std::string& content) {
  for (const auto* name : {"plan.json", "lock.json", "summary.json", "events.jsonl", "diagnosis.json",
                           "attempt-0/bound.host.json", "attempt-0/preflight.json", "attempt-0/audit.json",
                           "attempt-0/nodes.json", "attempt-0/logs/learner.0.log"})
    require(sys::write_file_atomically(run / name, content).has_value(), "a file cannot be written");
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                                                             std::size_t size) {
  static const Folder folder;
  const std::string content(reinterpret_cast<const char*>(data), size);
  write_run(folder.path, content + "\nHF_TOKEN=" + std::string(kSecret) + "\n");
  const auto files = record::read_run(folder.path);
  if (!files) return 0;  // of a newer format
  const auto& run = *files;
  const auto versions = record::versions_of(run);
  record::Extracts made{
      {"README.txt",
       report::run_readme(run, "running", record::read_json(folder.path / "diagnosis.json"), versions)},
      {"versions.json", json_text(record::to_json(versions))}};
  for (const auto& extracts : {record::environment_extracts(run), record::module_extracts(run)})
    made.insert(made.end(), extracts.begin(), extracts.end());
  const auto report = record::write_bundle({.run = run,
                                            .name = "run",
                                            .out = folder.path / "run.tar.zst",
                                            .limit = 4096,
                                            .redact = true,
                                            .environment = {},
                                            .made = std::move(made),
                                            .enough = nullptr});
  require(report.has_value(), "no bundle");
  require(!report->secrets.empty(), "a secret was overlooked");
  const auto comparison = record::compare(run, run);
  require(comparison.equal(), "a run differs from itself");
  report::compare_text(comparison, run, run, report::Paint(false));
  return 0;
}
