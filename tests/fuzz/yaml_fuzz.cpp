// Whatever bytes a file holds: it is read, or every complaint has a place within it; what could be read of a
// wrong one has names that can be looked up. For libFuzzer, or with mutate.cpp for a short run of a fixed
// seed.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "config/site.h"
#include "plan/build.h"

namespace {

using namespace nlaunch;

void require(bool holds, const Diagnostic& diagnostic, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s:\n%s", what, render(diagnostic).c_str());
  std::abort();
}

void check_places(const Diagnostics& diagnostics) {
  for (const auto& item : diagnostics.items()) {
    require(!item.id.empty() && !item.message.empty(), item, "a diagnostic that says nothing");
    require(!text::first_invalid_utf8(render(item)), item, "a text that is not UTF-8");
    if (item.span.line == 0) continue;
    const auto columns = text::characters(item.span.source_line()).size();
    require(item.span.column >= 1 && item.span.column <= columns + 1, item, "a place outside of its line");
  }
}

void check(const Diagnostics& diagnostics) {
  require(diagnostics.has_errors(), {}, "a failure without an error");
  check_places(diagnostics);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                                                             std::size_t size) {
  const int fd = ::memfd_create("input", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  const auto path = "/proc/self/fd/" + std::to_string(fd);
  const auto experiment = config::load_experiment(path, {}, {"debug"});
  if (!experiment) check(experiment.error());
  const auto site = config::load_site(path, {}, {});
  if (!site) check(site.error());
  static const auto local = config::load_site("local", {}, {});
  config::Problems problems;
  if (const auto read = config::read_experiment(path, {}, {}, problems); read && problems.any())
    check_places(plan::mistakes_in_names(*read, *local, {"x86_64", {}, {}}, {}));
  const std::string typed(reinterpret_cast<const char*>(data), size < 200 ? size : 200);
  if (const auto setting = config::parse_setting("--set", typed)) {
    const auto changed = config::load_experiment(path, {*setting}, {});
    if (!changed) check(changed.error());
  }
  ::close(fd);
  return 0;
}
