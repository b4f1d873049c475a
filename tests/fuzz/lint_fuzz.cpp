// Whatever a text is, lint ends with it: as a script that is not run, as a .env file, and as a Beaker spec,
// whose arguments bash runs, recorded. What lint finds has a place within the text. For libFuzzer, or with
// mutate.cpp for a short run of a fixed seed.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/text.h"
#include "lint/file_input.h"
#include "lint/rule.h"

namespace {

using namespace nlaunch;

void check(const lint::Finding& finding) {
  if (finding.span.line == 0) return;
  const auto columns = text::characters(finding.span.source_line()).size();
  if (finding.span.column >= 1 && finding.span.column <= columns + 1) return;
  std::fprintf(stderr, "a place outside of its line: %s %s\n", finding.span.where().c_str(),
               finding.what.c_str());
  std::abort();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                                                             std::size_t size) {
  const std::string text(data, data + size);
  const auto script = lint::script_input(std::make_shared<const SourceFile>(SourceFile{"job.sbatch", text}));
  for (const auto& finding : lint::lint(script)) check(finding);
  for (const auto* name : {"job.env", "spec.yaml"}) {
    const auto input = lint::file_input(std::make_shared<const SourceFile>(SourceFile{name, text}));
    if (!input) continue;
    for (const auto& finding : lint::lint(*input)) check(finding);
  }
  return 0;
}
