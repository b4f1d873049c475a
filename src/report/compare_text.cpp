#include "report/compare_text.h"

#include <fmt/format.h>

#include "base/text.h"

namespace nlaunch::report {
namespace {

/// Long lists (PATH) are shortened to what is useful on a terminal; --json has all of it.
std::string shown(const std::string& value, const std::string& other) {
  constexpr std::size_t kWidth = 60;
  constexpr std::size_t kContext = 12;
  if (value.size() <= kWidth) return text::printable(value);
  // Starts a little before the first difference.
  const auto first = static_cast<std::size_t>(
      std::mismatch(value.begin(), value.end(), other.begin(), other.end()).first - value.begin());
  const auto from = first > kContext ? first - kContext : 0;
  return text::printable(fmt::format("{}{}{}", from > 0 ? "..." : "", value.substr(from, kWidth),
                                     from + kWidth < value.size() ? "..." : ""));
}

std::string run_line(const char* letter, const record::RunFiles& run) {
  auto sentence = record::text_at(run.summary, "sentence");
  if (sentence.empty()) sentence = "no summary";
  return fmt::format("{}  {}: {}\n", letter, run.folder.filename().string(), text::printable(sentence));
}

}  // namespace

std::string compare_text(const record::Comparison& comparison, const record::RunFiles& a,
                         const record::RunFiles& b, const Paint& paint) {
  auto out = run_line("A", a) + run_line("B", b);
  std::vector<std::string> same;
  for (const auto& section : comparison.sections) {
    if (section.differences.empty()) {
      if (section.equal > 0) same.push_back(fmt::format("{} ({})", section.name, section.equal));
      continue;
    }
    out += fmt::format("\n{}{}\n", paint.bold(section.name),
                       section.equal > 0 ? fmt::format(" ({} the same)", section.equal) : "");
    Table table({"", "A", "B", ""});
    for (const auto& [what, in_a, in_b, change] : section.differences)
      table.add({text::printable(what), shown(in_a, in_b), shown(in_b, in_a), change});
    out += table.str(paint);
  }
  if (!same.empty()) out += fmt::format("\nthe same: {}\n", text::join(same, ", "));
  if (comparison.equal()) out += paint.green("nothing differs except measurements") + "\n";
  return out;
}

}  // namespace nlaunch::report
