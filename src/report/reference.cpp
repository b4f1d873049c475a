#include "report/reference.h"

#include <fmt/format.h>

#include "base/exit_code.h"
#include "config/schema.h"
#include "lint/catalogue.h"
#include "lint/rule.h"
#include "preflight/checks.h"
#include "report/catalogue_text.h"

namespace nlaunch::report {
namespace {

constexpr std::string_view kMade =
    "<!-- Written by `nlaunch reference`: change the tables in the code, not this file. -->\n";

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string row(std::initializer_list<std::string_view> cells) {
  std::string out = "|";
  for (const auto text : cells) out += fmt::format(" {} |", cell(text));
  return out + "\n";
}

std::string head(std::string_view title, std::string_view lead,
                 std::initializer_list<std::string_view> columns) {
  std::string out = fmt::format("{}# {}\n\n{}\n\n{}|", kMade, title, lead, row(columns));
  for (std::size_t i = 0; i < columns.size(); ++i) out += "---|";
  return out + "\n";
}

std::string code(std::string_view text) {
  return text.empty() ? std::string() : fmt::format("`{}`", text);
}

std::string rules_page() {
  auto out = fmt::format(
      "{}# Rules of `nlaunch lint`\n\nHow to use and silence them: [lint.md](../lint.md).\n", kMade);
  for (const auto* rule : lint::rules()) {
    out += fmt::format("\n## {}\n{}.\n\n{}\n", rule->name, rule->title, rule->explain);
    if (!rule->source.empty()) out += fmt::format("\nSource: {}\n", rule->source);
  }
  return out;
}

std::string checks_page() {
  auto out = head("Checks of the preflight",
                  "In the order in which they are reported. A check passes, warns, fails, cannot be carried "
                  "out (unknown), or does not apply (skip).",
                  {"check", "of", "what is checked"});
  for (const auto* check : preflight::node_checks())
    out += row({code(check->name), "each node", check->what});
  for (const auto* check : preflight::checks())
    out += row({code(check->name), "ranks and groups", check->what});
  return out;
}

std::string exit_codes_page() {
  auto out = head("Exit codes",
                  "A run that nobody stops exits with the code of the process that failed first, or with 128 "
                  "+ the signal if a signal killed it. `summary.json` has the outcome (`outcome`), because a "
                  "program may use the same numbers.",
                  {"code", "when"});
  for (const auto& one : exit_code::kMeanings) out += row({code(std::to_string(one.code)), one.when});
  out +=
      "\n`nlaunch preflight` has its own codes; with `--prolog` the code is non-zero only if a check "
      "failed.\n\n" +
      row({"code", "when"}) + "|---|---|\n";
  for (const auto& one : exit_code::kPreflightMeanings)
    out += row({code(std::to_string(one.code)), one.when});
  out += "\n`nlaunch bench` has its own codes, too.\n\n" + row({"code", "when"}) + "|---|---|\n";
  for (const auto& one : exit_code::kBenchMeanings) out += row({code(std::to_string(one.code)), one.when});
  out += "\nSo does `nlaunch diagnose`.\n\n" + row({"code", "when"}) + "|---|---|\n";
  for (const auto& one : exit_code::kDiagnoseMeanings) out += row({code(std::to_string(one.code)), one.when});
  return out;
}

std::string variables_page() {
  auto out = fmt::format(
      "{}# Variables\n\nWhat `nlaunch env --doc NAME` prints, in one line each. A release is the first that "
      "reads the variable; if there is none, the oldest release that was examined already did.\n",
      kMade);
  for (const auto& owner : lint::owners()) {
    out += fmt::format("\n## {}\n{}\n{}|---|---|---|---|---|\n", owner.name,
                       owner.newest.empty() ? "" : fmt::format("Up to {}.\n", owner.newest),
                       row({"name", "read by", "values", "default", "meaning"}));
    for (const auto& variable : lint::variables()) {
      if (variable.owner != owner.name) continue;
      out += row({code(variable.name), releases_text(variable), values_text(variable), variable.fallback,
                  variable.meaning});
    }
  }
  return out;
}

std::string keys_page(std::string_view title, std::string_view guide, std::string_view schema) {
  auto out = head(
      title,
      fmt::format("How to use them: [{0}](../{0}). `nlaunch schema` prints the schema itself, for editors.",
                  guide),
      {"key", "value", "meaning"});
  for (const auto& key : config::schema_keys(schema))
    out += row({code(key.path), key.value, key.description});
  return out;
}

std::string experiment_page() {
  return keys_page("Keys of an experiment", "experiment.md", config::experiment_schema());
}

std::string site_page() {
  return keys_page("Keys of a site profile", "site.md", config::site_schema());
}

}  // namespace

const std::vector<ReferencePage>& reference_pages() {
  static const std::vector<ReferencePage> pages{{"rules", rules_page},
                                                {"checks", checks_page},
                                                {"exit-codes", exit_codes_page},
                                                {"variables", variables_page},
                                                {"experiment-keys", experiment_page},
                                                {"site-keys", site_page}};
  return pages;
}

}  // namespace nlaunch::report
