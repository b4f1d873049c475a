#include "lint/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "base/secrets.h"
#include "base/text.h"
#include "lint/silence.h"

namespace nlaunch::lint {
namespace {

bool stands_before(const Finding& one, const Finding& other) {
  const auto key = [](const Finding& finding) {
    return std::tuple(finding.span.file ? std::string_view(finding.span.file->name) : std::string_view(),
                      finding.span.line, finding.span.column);
  };
  return key(one) < key(other);
}

/// Replaces each secret with as many stars as it has characters, so that later columns stay correct.
void hide(std::string& text, const std::vector<std::string>& secrets) {
  for (const auto& secret : secrets) {
    const std::string stars(text::characters(secret).size(), '*');
    for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at + stars.size())) {
      text.replace(at, secret.size(), stars);
    }
  }
}

/// Neither a finding nor a line shown with it contains a secret.
void hide_secrets(const LintInput& input, std::vector<Finding>& findings) {
  std::vector<std::string> secrets;
  for (const auto& environment : input.environments) {
    for (const auto& setting : environment.settings) {
      constexpr std::size_t kShortest = 4;  // shorter ones would match unrelated text
      const bool named =
          looks_like_secret(setting.name) && setting.value && setting.value->size() >= kShortest;
      if (named || setting.holds_secret()) secrets.push_back(*setting.value);
    }
  }
  for (const auto& one : input.secrets) secrets.push_back(one.value);
  if (secrets.empty()) return;
  std::map<std::shared_ptr<const SourceFile>, std::shared_ptr<const SourceFile>> hidden;
  for (auto& finding : findings) {
    for (auto* text : {&finding.what, &finding.why, &finding.instead}) hide(*text, secrets);
    if (!finding.span.file) continue;
    auto& file = hidden[finding.span.file];
    if (!file) {
      auto copy = *finding.span.file;
      hide(copy.text, secrets);
      file = std::make_shared<const SourceFile>(std::move(copy));
    }
    finding.span.file = file;
  }
}

}  // namespace

void Report::add(Severity severity, const SourceSpan& span, Saying saying) {
  // A finding that several roles share because of one line is reported once, for all of them.
  const auto same = std::ranges::find_if(findings_, [&](const Finding& one) {
    return one.rule == rule_ && one.span.line == span.line && one.span.column == span.column &&
           one.span.file == span.file && one.what == saying.what;
  });
  if (same != findings_.end()) {
    if (!environment_.empty() &&
        std::ranges::find(same->environments, environment_) == same->environments.end()) {
      same->environments.push_back(environment_);
    }
    return;
  }
  if (full()) return;
  if (of_rule_ == kMostOfRule) {
    severity = Severity::note;
    saying = {fmt::format("{} findings of one rule: the rest is not listed", kMostOfRule),
              "most likely it is the same mistake, repeated", "", ""};
  }
  ++of_rule_;
  Finding finding{rule_,
                  severity,
                  span,
                  {},
                  std::move(saying.what),
                  std::move(saying.why),
                  std::move(saying.source),
                  std::move(saying.instead)};
  if (finding.source.empty()) finding.source = source_;
  if (!environment_.empty()) finding.environments.push_back(environment_);
  findings_.push_back(std::move(finding));
}

bool Report::has_any_of(std::span<const std::string_view> rules) const {
  return std::ranges::any_of(
      findings_, [&](const Finding& one) { return std::ranges::find(rules, one.rule) != rules.end(); });
}

const Rule* find_rule(std::string_view name) {
  const auto all = rules();
  const auto found = std::ranges::find(all, name, &Rule::name);
  return found == all.end() ? nullptr : *found;
}

std::vector<Finding> lint(const LintInput& input) {
  Report report;
  for (const auto* rule : rules()) {
    report.begin(rule->name, rule->source);
    rule->check(input, report);
  }
  auto findings = silence(report.take(), input.files);
  std::ranges::stable_sort(findings, stands_before);
  hide_secrets(input, findings);
  return findings;
}

}  // namespace nlaunch::lint
