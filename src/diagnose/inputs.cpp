#include "diagnose/inputs.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "diagnose/run_folder.h"
#include "sys/tar.h"

namespace nlaunch::diagnose {
namespace {

namespace fs = std::filesystem;

class InputReader {
 public:
  InputReader(const Options& options, Diagnosis& diagnosis,
              const std::function<void(Input&, sys::ByteSource&)>& read)
      : options_(options), diagnosis_(diagnosis), read_(read) {}

  void path(const std::string& name) {
    if (name == "-") return stream("(standard input)", sys::UniqueFd(::dup(STDIN_FILENO)));
    std::error_code error;
    if (fs::is_directory(name, error)) return folder(name);
    file(name);
  }

 private:
  /// Links to directories are not followed: they lead to what is read elsewhere, or in a circle.
  void folder(const fs::path& folder) {
    if (auto run = read_run_folder(folder, options_.summary)) {
      unread(run->unread);
      const auto logs = run->logs;
      diagnosis_.run = std::move(run);  // how its processes exited decides what their lines mean
      for (const auto& log : logs) file(log.string());
      return;
    }
    std::vector<fs::path> files;
    std::error_code error;
    fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
    if (error)
      return unread(failure("sys.read", "cannot read {}: {}", folder.string(), error.message()).error());
    for (; entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      std::error_code gone;
      if (entry->is_regular_file(gone)) files.push_back(entry->path());
    }
    std::ranges::sort(files);
    for (const auto& found : files) file(found.string());
  }

  void file(const std::string& name) {
    auto fd = sys::open_for_reading(name);
    if (!fd) return unread(fd.error());
    stream(name, std::move(*fd));
  }

  void stream(const std::string& name, sys::UniqueFd fd) {
    auto bytes = sys::unpacked(sys::fd_source(std::move(fd), {options_.patience, options_.enough}));
    std::string first(sys::kTarBlock, '\0');
    first.resize(sys::read_full(*bytes, first));
    sys::TarBlock block{};
    if (first.size() == block.size()) {
      std::ranges::copy(first, block.begin());
      if (sys::parse_tar_header(block)) return archive(name, *bytes, block);
    }
    one(name, *sys::prefixed(std::move(first), std::move(bytes)));
  }

  void archive(const std::string& name, sys::ByteSource& bytes, const sys::TarBlock& first) {
    const auto wrong =
        sys::for_each_tar_file(bytes, first, [&](const sys::TarMember& member, sys::ByteSource& content) {
          one(name + "/" + member.name, content);
        });
    if (wrong.empty()) return;
    diagnosis_.unread.warning("diagnose.archive", {}, fmt::format("{}: {}", name, wrong));
  }

  void one(const std::string& name, sys::ByteSource& bytes) {
    diagnosis_.inputs.push_back({.name = name});
    auto& input = diagnosis_.inputs.back();
    read_(input, bytes);
    if (input.remark.empty()) input.remark = bytes.remark();
  }

  void unread(const Diagnostics& why) { diagnosis_.unread.append(why); }

  const Options& options_;
  Diagnosis& diagnosis_;
  const std::function<void(Input&, sys::ByteSource&)>& read_;
};

}  // namespace

void for_each_input(const std::vector<std::string>& paths, const Options& options, Diagnosis& diagnosis,
                    const std::function<void(Input& input, sys::ByteSource& bytes)>& read) {
  InputReader reader(options, diagnosis, read);
  for (const auto& path : paths) reader.path(path);
}

}  // namespace nlaunch::diagnose
