#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include "base/secrets.h"
#include "base/text.h"
#include "import/environment.h"
#include "import/secrets.h"

namespace nlaunch::import {
namespace {

constexpr std::size_t kLongestQuote = 90;
constexpr std::size_t kMostRemarks = 30;  // of one place

/// Calls `change` with every text that will stand in one of the files.
class Texts {
 public:
  using Change = std::function<void(std::string&)>;
  explicit Texts(Change change) : change_(std::move(change)) {}

  void of(Imported& all) {
    for (auto* one : {&all.workdir, &all.venv}) entry(*one);
    for (auto* list : {&all.vars, &all.slurm, &all.directives, &all.srun, &all.modules}) entries(*list);
    environment(all.environment);
    environment(all.site_environment);
    for (auto& secret : all.secrets) change_(secret.value);
    for (auto& role : all.roles) {
      for (auto* words : {&role.wrapper, &role.command}) {
        for (auto& word : *words) change_(word);
      }
      environment(role.environment);
      if (role.ready) change_(role.ready->http);
    }
    for (auto& library : all.libraries) change_(library.path);
    for (auto* text : {&all.modules_init, &all.scratch, &all.interface}) change_(*text);
  }

 private:
  void entry(ImportedEntry& one) {
    change_(one.value);
    change_(one.remark);
  }
  void entries(std::vector<ImportedEntry>& list) {
    for (auto& one : list) entry(one);
  }
  void environment(ImportedEnvironment& one) {
    for (auto* list : {&one.set, &one.prepend, &one.append}) entries(*list);
  }

  Change change_;
};

class Finish {
 public:
  Finish(const Doings& doings, Imported& out) : doings_(doings), out_(out) {
    for (const auto& secret : doings.secrets) masker_.add(secret);
    for (const auto& line : doings.lines) {
      for (auto& secret : secrets_in(line)) masker_.add(std::move(secret));
    }
  }

  void run() {
    each_name_once();
    addresses();
    used_arguments();
    for (auto& role : out_.roles) masked(role);
    Texts([this](std::string& text) { text = masker_.mask(std::move(text)); }).of(out_);
    for (auto& [destination, list] : out_.remarks) remarks(list);
    for (auto& role : out_.roles) {
      for (auto& one : role.remarks) complete(one.text, one.line);
    }
    complete(out_.workdir.remark, out_.workdir.line);
  }

 private:
  /// Of what is set twice, the last counts.
  void each_name_once() {
    const auto once = [](std::vector<ImportedEntry>& list) {
      std::set<std::string> seen;
      std::vector<ImportedEntry> kept;
      for (auto one = list.rbegin(); one != list.rend(); ++one) {
        if (seen.insert(one->name).second) kept.push_back(std::move(*one));
      }
      list.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
    };
    const auto environment = [&](ImportedEnvironment& one) {
      for (auto* list : {&one.set, &one.prepend, &one.append}) once(*list);
    };
    environment(out_.environment);
    environment(out_.site_environment);
    for (auto& role : out_.roles) environment(role.environment);
    std::set<std::string> seen, read;  // from where the script reads it, before the caller's environment
    for (const auto& secret : out_.secrets) {
      if (secret.kind != "env") read.insert(secret.name);
    }
    std::erase_if(out_.secrets, [&](const auto& secret) {
      return (secret.kind == "env" && read.contains(secret.name)) || !seen.insert(secret.name).second;
    });
  }

  /// The first node's address with Ray's port.
  void addresses() {
    constexpr std::string_view kHosts = "${role.ray-head.hosts}:";
    Texts([&](std::string& text) {
      for (auto at = text.find(kHosts); at != std::string::npos; at = text.find(kHosts, at + 1)) {
        auto end = at + kHosts.size();
        while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
        if (end > at + kHosts.size()) text.replace(at, end - at, "${role.ray-head.addrs}");
      }
    }).of(out_);
  }

  /// Arguments of the script that something uses.
  void used_arguments() {
    std::set<std::string> names;
    constexpr std::string_view kVars = "${vars.";
    Texts([&](std::string& text) {
      for (auto at = text.find(kVars); at != std::string::npos; at = text.find(kVars, at + 1)) {
        const auto begin = at + kVars.size();
        auto end = begin;
        while (end < text.size() && is_key_character(text[end])) ++end;
        names.insert(text.substr(begin, end - begin));
      }
    }).of(out_);
    const auto& arguments = doings_.values.arguments();
    for (const auto& name : names) {
      const auto known = arguments.find(name);
      const auto number = known == arguments.end()
                              ? name.substr(std::string_view("argument").size() < name.size() ? 8 : 0)
                              : known->second.name;
      out_.vars.push_back({name, known == arguments.end() ? "" : known->second.fallback,
                           known == arguments.end() ? 0 : known->second.line,
                           fmt::format("argument {} of the script: --set vars.{}=VALUE", number, name)});
    }
  }

  void masked(ImportedRole& role) {
    const auto has_secret = [&](const std::vector<std::string>& words) {
      return std::ranges::any_of(words, [&](const auto& word) { return masker_.mask(word) != word; });
    };
    if (has_secret(role.wrapper) || has_secret(role.command))
      role.remarks.push_back({role.line,
                              "*** was a secret: everybody sees a command line. Declare it under secrets, "
                              "and let the program read its variable"});
  }

  void complete(std::string& text, std::uint32_t line) const {
    const auto mark = text.find(kThatLine);
    if (mark != std::string::npos) text.replace(mark, kThatLine.size(), shown(line));
    text = text::printable(masker_.mask(std::move(text)));
  }

  [[nodiscard]] std::string shown(std::uint32_t line) const {
    if (line == 0 || line > doings_.lines.size()) return {};
    const auto whole = without_keys(masker_.mask(std::string(text::trim(doings_.lines[line - 1]))));
    const auto characters = text::characters(whole);
    std::string out;
    for (std::size_t i = 0; i < characters.size() && i < kLongestQuote; ++i) out += characters[i];
    return out + (characters.size() > kLongestQuote ? "…" : "");
  }

  void remarks(std::vector<Remark>& list) {
    std::ranges::stable_sort(list, {}, &Remark::line);
    std::set<std::pair<std::uint32_t, std::string>> seen;  // of a function that is called twice
    std::erase_if(list, [&](const Remark& one) { return !seen.emplace(one.line, one.text).second; });
    const auto more = list.size() > kMostRemarks ? list.size() - kMostRemarks : 0;
    if (more > 0) list.resize(kMostRemarks);
    for (auto& one : list) complete(one.text, one.line);
    if (more > 0) list.push_back({0, fmt::format("and {} more lines of this kind", more)});
  }

  const Doings& doings_;
  Imported& out_;
  Masker masker_;
};

}  // namespace

void finish(const Doings& doings, Imported& out) {
  Finish(doings, out).run();
}

}  // namespace nlaunch::import
