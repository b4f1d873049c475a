#include "lint/loops.h"

#include <re2/re2.h>

#include "base/text.h"

namespace nlaunch::lint {

std::vector<Loop> short_loops(const SourceLines& lines) {
  static const RE2 kBegins(R"re(^\s*(for|until|while)\s)re");
  static const RE2 kEnds(R"re((^|;)\s*done\b)re");
  constexpr std::uint32_t kLongest = 30;
  std::vector<Loop> loops;
  // `timeout 300 bash -c "until curl …; do sleep 2; done"`
  static const RE2 kInText(R"re(\bbash\s+-l?c\s+["']\s*((?:until|while)\s[^\n]*?\bdone)\b)re");
  for (std::uint32_t begin = 1; begin <= lines.count(); ++begin) {  // also in the text of bash -c
    std::string text;
    if (RE2::PartialMatch(lines.line(begin), kInText, &text) &&
        !text::trim(lines.line(begin)).starts_with('#'))
      loops.push_back({.begin = begin, .end = begin, .head = text, .text = std::string(lines.line(begin))});
    if (!RE2::PartialMatch(lines.line(begin), kBegins)) continue;
    Loop loop{.begin = begin, .end = begin, .head = std::string(lines.line(begin)), .text = {}};
    const auto indentation = lines.line(begin).find_first_not_of(" \t");
    for (; loop.end <= lines.count() && loop.end < begin + kLongest; ++loop.end) {
      const auto line = lines.line(loop.end);
      if (!text::trim(line).starts_with('#')) loop.text += std::string(line) + "\n";
      const bool outer = loop.end == begin || line.find_first_not_of(" \t") == indentation;
      if (outer && RE2::PartialMatch(line, kEnds)) {
        loops.push_back(std::move(loop));
        break;
      }
    }
  }
  return loops;
}

bool polls(const Loop& loop) {
  static const RE2 kUntil(R"re(^\s*(until\s|while\s+!|while\s+(\[\[?|test)\s.*(\$\(|\s-[efs]\s)))re");
  static const RE2 kBreak(R"re(\bbreak\b)re");
  return loop.text.find("sleep") != std::string::npos &&
         (RE2::PartialMatch(loop.head, kUntil) || RE2::PartialMatch(loop.text, kBreak));
}

}  // namespace nlaunch::lint
