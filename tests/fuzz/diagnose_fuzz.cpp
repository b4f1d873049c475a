// Whatever a log is, a diagnosis ends with it; what it finds has a place within it, and the bytes that are
// read in pieces tell the same as those that come at once. For libFuzzer, or with mutate.cpp for a short run
// of a fixed seed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "diagnose/collector.h"
#include "diagnose/ranking.h"
#include "diagnose/scanner.h"

namespace {

using namespace nlaunch::diagnose;

std::vector<Finding> findings_of(const std::string& text, std::size_t step) {
  Collector collector;
  static Scanner scanner;
  collector.begin({});
  scanner.begin(0, collector);
  for (std::string_view rest = text; !rest.empty();) {
    const auto room = scanner.room();
    const auto piece = rest.substr(0, std::min(room.size(), step));
    std::ranges::copy(piece, room.begin());
    scanner.filled(piece.size());
    rest.remove_prefix(piece.size());
  }
  scanner.finish();
  collector.finish();
  return ranked(collector);
}

[[noreturn]] void fail(const char* what, const Finding& finding) {
  std::fprintf(stderr, "%s: %s, line %llu\n", what, finding.category.c_str(),
               static_cast<unsigned long long>(finding.position.line));
  std::abort();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                                                             std::size_t size) {
  const std::string text(data, data + size);
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(text, '\n')) + 1;
  const auto whole = findings_of(text, std::max<std::size_t>(size, 1));
  const auto pieces = findings_of(text, 61);
  for (const auto& finding : whole) {
    if (finding.position.line < 1 || finding.position.line > lines)
      fail("a place outside of its log", finding);
  }
  if (whole.size() != pieces.size()) std::abort();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (whole[i].category != pieces[i].category || whole[i].position != pieces[i].position ||
        whole[i].count != pieces[i].count)
      fail("another finding in pieces", whole[i]);
  }
  return 0;
}
