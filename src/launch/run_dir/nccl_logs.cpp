#include "launch/run_dir/nccl_logs.h"

#include <algorithm>

#include "lint/nccl_reported.h"
#include "sys/files.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

// NCCL logs what it read when communicators are created, at the top of the log; all ranks of a role read the
// same.
constexpr std::size_t kRead = 1U << 20U;  // bytes per file
constexpr std::size_t kMostFiles = 16;    // per role

std::string head_of(const fs::path& path) {
  const auto file = sys::open_regular_file(path, sys::Links::refused);
  std::string text(kRead, '\0');
  text.resize(file ? sys::read_up_to(file->get(), text) : 0);
  return text;
}

}  // namespace

std::map<std::string, std::vector<std::string>> compare_nccl_logs(const fs::path& attempt,
                                                                  const lint::LintInput& input) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(attempt / "nccl", error)) {
    if (entry.path().extension() == ".log") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& environment : input.environments) {
    std::string all;
    std::size_t files = 0;
    for (const auto& path : paths) {
      const bool own = path.filename().string().starts_with(environment.name + ".");
      if (own && files++ < kMostFiles) all += head_of(path);
    }
    if (all.empty()) continue;
    auto differences = lint::compare(environment, lint::read_nccl_log(all));
    if (!differences.empty()) out.emplace(environment.name, std::move(differences));
  }
  return out;
}

}  // namespace nlaunch::launch
