#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <fstream>

#include "base/registry.h"
#include "base/text.h"
#include "evidence/source.h"

// The ends of logs: of the process, of NCCL, and of the samples of the GPUs.
namespace nlaunch::evidence {
namespace {

constexpr std::size_t kLogLines = 500;
/// A line can have any length; no more than this is read of a file.
constexpr std::streamoff kLogBytes = 1 << 20;

/// The last lines of a file; nothing if it cannot be read.
std::optional<std::string> last_lines(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return std::nullopt;
  const auto size = static_cast<std::streamoff>(file.tellg());
  file.seekg(std::max<std::streamoff>(0, size - kLogBytes));
  std::string text(static_cast<std::size_t>(std::min(size, kLogBytes)), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  std::size_t from = text.size();
  for (std::size_t lines = 0; lines <= kLogLines && from != std::string::npos && from > 0; ++lines)
    from = text.rfind('\n', from - 1);
  return from == std::string::npos || from == 0 ? text : text.substr(from + 1);
}

std::vector<std::string> files_matching(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

Found collect_log(const CollectContext& context) {
  Found found;
  const auto& path = context.subject->log;
  if (path.empty()) return found;
  constexpr auto kFile = "log.txt";
  std::error_code error;
  const auto text = std::filesystem::is_symlink(path, error) ? std::nullopt : last_lines(path);
  if (!text) {
    found.missing.push_back({"log", fmt::format("{} cannot be read", path), ""});
  } else if (context.write(kFile, *text)) {
    found.got.emplace_back(kFile);
  }
  return found;
}

const Registered<Source> log_source{{
    .order = 60,
    .name = "log",
    .of = Source::Of::process,
    .bound = std::chrono::seconds(5),
    .lane = 2,
    .collect = collect_log,
}};

Found collect_gpu_use(const CollectContext& context) {
  Found found;
  const auto& path = context.spec.gpu_use;
  const auto text = path.empty() ? std::nullopt : last_lines(path);
  constexpr auto kFile = "gpu-use.jsonl";
  if (text && context.write(kFile, *text)) found.got.emplace_back(kFile);
  return found;
}

const Registered<Source> use_of_the_gpus_source{{
    .order = 30,
    .name = "use of the GPUs",
    .of = Source::Of::host,
    .bound = std::chrono::seconds(5),
    .lane = 1,
    .collect = collect_gpu_use,
}};

Found collect_nccl_logs(const CollectContext& context) {
  Found found;
  std::string all;
  for (const auto& path : files_matching(context.subject->nccl_logs)) {
    if (const auto text = last_lines(path)) all += fmt::format("==> {} <==\n{}\n", path, *text);
  }
  constexpr auto kFile = "nccl-log.txt";
  if (!all.empty() && context.write(kFile, all)) found.got.emplace_back(kFile);
  return found;
}

const Registered<Source> nccl_log_source{{
    .order = 70,
    .name = "NCCL log",
    .of = Source::Of::process,
    .bound = std::chrono::seconds(5),
    .lane = 2,
    .collect = collect_nccl_logs,
}};

}  // namespace
}  // namespace nlaunch::evidence
