#include "launch/run_dir/ray_logs.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "sys/files.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostOfAFile = 1U << 20U;
constexpr std::uintmax_t kMostInAll = 64U << 20U;

struct Log {
  fs::path path;
  fs::path name;  ///< below `target`
  fs::file_time_type written;
};

void add_logs(const fs::path& session, std::vector<Log>& logs) {
  std::error_code error;
  const auto folder = session / "logs";
  for (fs::recursive_directory_iterator entry(folder, error); !error && entry != fs::end(entry);
       entry.increment(error)) {
    std::error_code gone;
    if (!entry->is_regular_file(gone) || entry->is_symlink(gone)) continue;
    logs.push_back({entry->path(), session.filename() / entry->path().lexically_relative(folder),
                    entry->last_write_time(gone)});
  }
}

std::string end_of(const fs::path& path) {
  std::error_code gone;
  const auto size = fs::file_size(path, gone);
  if (gone) return {};
  std::ifstream file(path, std::ios::binary);
  if (size > kMostOfAFile) file.seekg(static_cast<std::streamoff>(size - kMostOfAFile));
  std::string text(std::min(size, kMostOfAFile), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace

void keep_ray_logs(const fs::path& scratch, const fs::path& target, const Masker& masker) {
  std::vector<Log> logs;
  for (const auto& name : sys::names_in(scratch)) {
    std::error_code gone;
    // session_latest is a link to one of them.
    if (name.starts_with("session_") && !fs::is_symlink(scratch / name, gone)) add_logs(scratch / name, logs);
  }
  std::ranges::sort(logs, std::greater{}, &Log::written);
  std::uintmax_t kept = 0;
  for (const auto& log : logs) {
    const auto text = masker.mask(end_of(log.path));
    if (text.empty()) continue;
    if (kept + text.size() > kMostInAll) return;
    kept += text.size();
    std::error_code error;
    fs::create_directories((target / log.name).parent_path(), error);
    // A full disk has been reported where it mattered.
    (void)sys::write_file_atomically(target / log.name, text);
  }
}

}  // namespace nlaunch::launch
