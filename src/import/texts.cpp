#include "import/texts.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <set>

#include "base/secrets.h"
#include "base/text.h"
#include "import/secrets.h"

namespace nlaunch::import {
namespace {

constexpr std::size_t kMostRemarks = 30;  // of one place

class Texts {
 public:
  using Change = std::function<void(std::string&, ImportedRole*)>;
  explicit Texts(const Change& change) : change_(change) {}

  void of(Imported& all) {
    for (auto* one : {&all.workdir, &all.venv}) entry(*one, nullptr);
    for (auto* list : {&all.vars, &all.slurm, &all.directives, &all.srun, &all.modules, &all.module_paths})
      entries(*list, nullptr);
    environment(all.environment, nullptr);
    environment(all.site_environment, nullptr);
    for (auto& secret : all.secrets) change_(secret.value, nullptr);
    for (auto& role : all.roles) {
      for (auto* words : {&role.wrapper, &role.command}) {
        for (auto& word : *words) change_(word, &role);
      }
      change_(role.workdir, &role);
      change_(role.venv, &role);
      environment(role.environment, &role);
      if (role.ready) change_(role.ready->http, &role);
      if (role.ready) change_(role.ready->tcp, &role);
    }
    for (auto& library : all.libraries) change_(library.path, nullptr);
    for (auto* text : {&all.modules_init, &all.scratch, &all.interface}) change_(*text, nullptr);
  }

 private:
  void entry(ImportedEntry& one, ImportedRole* role) {
    change_(one.value, role);
    change_(one.remark, role);
  }
  void entries(std::vector<ImportedEntry>& list, ImportedRole* role) {
    for (auto& one : list) entry(one, role);
  }
  void environment(ImportedEnvironment& one, ImportedRole* role) {
    for (auto* list : {&one.set, &one.prepend, &one.append}) entries(*list, role);
  }

  const Change& change_;
};

class Finish {
 public:
  Finish(const std::vector<std::string>& lines, const std::vector<HandedOver>& secrets, Imported& all)
      : all_(all) {
    for (const auto& one : secrets) masker_.add(one.value);
    for (const auto& line : lines)
      for (auto& secret : secrets_in(line)) masker_.add(std::move(secret));
    for (const auto& part : all.parts) keep_secrets_of(part);
  }

  void run() {
    each_text(all_, [this](std::string& text, ImportedRole*) { text = masker_.mask(std::move(text)); });
    for (auto& [destination, list] : all_.remarks) remarks(list);
    for (auto& role : all_.roles)
      for (auto& one : role.remarks) one.text = shown(std::move(one.text));
  }

 private:
  void keep_secrets_of(const Part& part) {
    for (const auto& [name, value] : part.changes)
      if (value) keep_secret(name, *value, masker_);
    for (std::size_t i = 0; i < part.argv.size(); ++i) {
      const auto& word = part.argv[i];
      const auto equals = word.find('=');
      if (equals != std::string::npos)
        keep_secret(word.substr(0, equals), word.substr(equals + 1), masker_);
      else if (word.starts_with('-') && i + 1 < part.argv.size())
        keep_secret(word, part.argv[i + 1], masker_);
    }
  }

  [[nodiscard]] std::string shown(std::string text) const {
    return text::printable(without_keys(masker_.mask(std::move(text))));
  }

  void remarks(std::vector<Remark>& list) const {
    std::ranges::stable_sort(list, {}, &Remark::line);
    std::set<std::pair<std::uint32_t, std::string>> seen;
    std::erase_if(list, [&](const Remark& one) { return !seen.emplace(one.line, one.text).second; });
    const auto more = list.size() > kMostRemarks ? list.size() - kMostRemarks : 0;
    if (more > 0) list.resize(kMostRemarks);
    for (auto& one : list) one.text = shown(std::move(one.text));
    if (more > 0) list.push_back({0, fmt::format("and {} more lines of this kind", more)});
  }

  Imported& all_;
  Masker masker_;
};

}  // namespace

std::string whole_command(const std::vector<std::string>& lines, std::uint32_t line) {
  if (line == 0 || line > lines.size()) return {};
  auto first = line - 1;
  while (first > 0 && lines[first - 1].ends_with('\\')) --first;
  std::string text;
  for (auto i = first; i < lines.size(); ++i) {
    text += lines[i] + "\n";
    if (!lines[i].ends_with('\\')) break;
  }
  return text;
}

void each_text(Imported& all, const std::function<void(std::string& text, ImportedRole* role)>& change) {
  Texts(change).of(all);
}

std::string head_of_loop(const std::vector<std::string>& lines, std::uint32_t line) {
  static const RE2 kHead(R"(^\s*(while|until|for)\b)");
  static const RE2 kDone(R"((^|;|\s)done\b)");
  int depth = 0;
  for (auto at = std::min<std::size_t>(line, lines.size()); at > 0; --at) {
    const auto& text = lines[at - 1];
    const bool begins = RE2::PartialMatch(text, kHead);
    const bool ends = RE2::PartialMatch(text, kDone);
    if (begins && (at == line || !ends) && depth-- == 0) return text;
    if (ends && !begins && at != line) ++depth;
  }
  return {};
}

void finish(const std::vector<std::string>& lines, const std::vector<HandedOver>& secrets, Imported& all) {
  Finish(lines, secrets, all).run();
}

}  // namespace nlaunch::import
