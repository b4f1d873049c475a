// Whatever text a script is: its recording and its import end, and what comes out of it is an experiment and
// a profile that can be read, or nothing. For libFuzzer, or with mutate.cpp for a short run of a fixed seed.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/text.h"
#include "config/experiment.h"
#include "config/site.h"
#include "import/import.h"
#include "lint/script_input.h"
#include "shell/recorder.h"

namespace {

using namespace nlaunch;

/// A file with the text, by a path that has no name of its own.
class File {
 public:
  explicit File(const std::string& text) : fd_(::memfd_create("import", MFD_CLOEXEC)) {
    if (fd_ < 0 || ::write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { ::close(fd_); }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

template <class T>
void require(const Result<T>& read, const std::string& text) {
  if (read) return;
  std::fprintf(stderr, "%s\nin:\n%s", render(read.error()).c_str(), text.c_str());
  std::abort();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                                                             std::size_t size) {
  const std::string text(data, data + size);
  if (text.find('\0') != std::string::npos || text::first_invalid_utf8(text)) return 0;  // refused before
  const File script(text);
  shell::RecordRequest request{
      .script = script.path(), .arguments = {"a"}, .variables = {"B=c"}, .allocation = {}, .limits = {}};
  request.allocation.nodes = 2;
  request.allocation.gpus_per_node = 4;
  request.limits.time = std::chrono::seconds(2);
  request.limits.starts = 300;
  const auto recording = shell::record(request);
  if (!recording) return 0;
  const auto file = std::make_shared<const SourceFile>(SourceFile{"job.sbatch", text});
  const auto input = lint::script_input(file, *recording, request.allocation, request.script);
  const auto imported =
      import::import_script(input, lint::lint(input), *recording, request.allocation, "", "");
  if (!imported) return 0;
  const auto experiment = import::experiment_text(*imported);
  require(config::load_experiment(File(experiment).path(), {}, {}), experiment);
  const auto profile = import::profile_text(*imported);
  require(config::load_site(File(profile).path(), {}, {}), profile);
  return 0;
}
