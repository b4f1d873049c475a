#include "report/drill_text.h"

#include <fmt/format.h>

namespace nlaunch::report {

std::string drill_text(const std::string& group, std::size_t ranks,
                       const std::vector<preflight::DrillRow>& rows, const Paint& paint) {
  auto out = fmt::format("{} ranks of '{}'\n", ranks, group);
  for (const auto& row : rows) {
    const auto title = row.arm.empty() ? row.drill : fmt::format("{}: {}", row.drill, row.arm);
    out += fmt::format("\n{}\n  does   {}\n", paint.bold(title), row.does);
    if (!row.shows.empty()) out += fmt::format("  shows  {}\n", row.shows);
    out += fmt::format("  end    {}\n", row.end);
  }
  return out;
}

}  // namespace nlaunch::report
