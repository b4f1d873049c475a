#include "lint/silence.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/text.h"

namespace nlaunch::lint {
namespace {

constexpr std::string_view kSilenceRule = "silence";

struct Silences {
  std::set<std::string, std::less<>> file;                            ///< rules for all of it
  std::map<std::uint32_t, std::set<std::string, std::less<>>> lines;  ///< rules by line
  std::vector<Finding> wrong;
};

class FileReader {
 public:
  explicit FileReader(const std::shared_ptr<const SourceFile>& file) : file_(file) {
    std::uint32_t number = 0;
    for (const auto& line : text::split(file->text, '\n')) read(line, ++number);
  }
  [[nodiscard]] Silences take() { return std::move(silences_); }

 private:
  void read(const std::string& line, std::uint32_t number) {
    constexpr std::string_view kMark = "# nlaunch: allow";
    const auto at = line.find(kMark);
    if (at == std::string::npos) return;
    auto rest = std::string_view(line).substr(at + kMark.size());
    const bool whole = rest.starts_with("-file ");
    if (!whole && !rest.starts_with(' ')) return;
    rest.remove_prefix(whole ? 6 : 1);
    const auto colon = rest.find(':');
    const auto reason =
        colon == std::string_view::npos ? std::string_view() : text::trim(rest.substr(colon + 1));
    const SourceSpan span{file_, number,
                          static_cast<std::uint32_t>(text::characters(line.substr(0, at)).size()) + 1,
                          static_cast<std::uint32_t>(kMark.size())};
    if (reason.empty())
      return complain(span, "suppression without a reason", "the next reader needs to know why",
                      "# nlaunch: allow RULE: because …");
    for (const auto& name : text::split(rest.substr(0, colon), ',')) {
      const std::string rule(text::trim(name));
      if (find_rule(rule) == nullptr) {
        complain(span, fmt::format("unknown rule '{}'", rule), "this suppresses nothing",
                 "`nlaunch lint --explain` lists the rules");
      } else if (whole) {
        silences_.file.insert(rule);
      } else {
        const bool alone = text::trim(std::string_view(line).substr(0, at)).empty();
        silences_.lines[alone ? number + 1 : number].insert(rule);
      }
    }
  }

  void complain(const SourceSpan& span, std::string what, std::string why, std::string instead) {
    silences_.wrong.push_back(
        {kSilenceRule, Severity::error, span, {}, std::move(what), std::move(why), "", std::move(instead)});
  }

  std::shared_ptr<const SourceFile> file_;
  Silences silences_;
};

/// Its findings are made in `silence`, where comments are read.
const Registered<Rule> silence_rule{{
    .order = 440,
    .name = kSilenceRule,
    .title = "a suppression that has no effect",
    .explain = "A comment `# nlaunch: allow RULE: reason` suppresses a finding. It has no effect without a "
               "reason or with an unknown rule.",
    .check = [](const LintInput& /*input*/, Report& /*report*/) {},
}};

}  // namespace

std::vector<Finding> silence(std::vector<Finding> findings,
                             const std::vector<std::shared_ptr<const SourceFile>>& files) {
  std::map<std::shared_ptr<const SourceFile>, Silences> all;
  for (const auto& file : files) all.emplace(file, FileReader(file).take());
  std::erase_if(findings, [&](const Finding& finding) {
    const auto found = all.find(finding.span.file);
    if (found == all.end()) return false;
    const auto line = found->second.lines.find(finding.span.line);
    return found->second.file.contains(finding.rule) ||
           (line != found->second.lines.end() && line->second.contains(finding.rule));
  });
  for (auto& [file, silences] : all) std::ranges::move(silences.wrong, std::back_inserter(findings));
  return findings;
}

}  // namespace nlaunch::lint
