#include "report/verdict_text.h"

#include <fmt/format.h>

#include "base/text.h"

namespace nlaunch::report {

std::string verdict_text(const evidence::Verdict& verdict, const evidence::Evidence& evidence,
                         const Paint& paint) {
  const auto first = text::printable(verdict.sentence);
  std::string out = (verdict.sure ? paint.red(first) : paint.yellow(first)) + "\n";
  if (!verdict.sure) {
    for (const auto& one : verdict.culprits)
      out += fmt::format("  {} {}\n", text::printable(evidence.members[one.member].name()),
                         text::printable(one.why));
  }
  for (const auto& analysis : verdict.analyses) {
    if (analysis.says.empty()) continue;
    out += paint.bold(analysis.source) + "\n";
    for (const auto& line : analysis.says) out += fmt::format("  {}\n", text::printable(line));
  }
  if (!evidence.missing.empty()) out += paint.bold("missing") + "\n";
  for (const auto& line : evidence.missing)
    out += paint.dim(fmt::format("  {}", text::printable(line))) + "\n";
  return out;
}

}  // namespace nlaunch::report
