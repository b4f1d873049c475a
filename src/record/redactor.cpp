#include "record/redactor.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace nlaunch::record {
namespace {

using re2::RE2;

struct Words {
  Redactor::Kind kind;
  std::string_view shown;   ///< followed by its number
  std::string_view plural;  ///< for people
};
constexpr std::array kWords{
    Words{Redactor::Kind::host, "node-", "host names"},
    Words{Redactor::Kind::domain, "domain-", "domains"},
    Words{Redactor::Kind::nodes, "nodes-", "node lists"},
    Words{Redactor::Kind::user, "user-", "user names"},
    Words{Redactor::Kind::home, "/home-", "home directories"},
    Words{Redactor::Kind::account, "account-", "accounts"},
    Words{Redactor::Kind::address, "ip-", "addresses"},
};

const Words& words(Redactor::Kind kind) {
  return *std::ranges::find(kWords, kind, &Words::kind);
}

/// Four numbers separated by dots, or groups of hexadecimal digits with colons; inet_pton decides.
constexpr const char* kAddress =
    R"([0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{0,4}){2,7})";

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

/// An address that identifies a network: not loopback, not "any", not a mask. IPv6 only if it is global
/// (2000::/3), unique local, link-local or multicast: other groups with colons are times and namespaces.
bool is_address(const std::string& text) {
  in_addr four{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) {
    const auto first = ntohl(four.s_addr) >> 24U;
    return first != 0 && first != 127 && first != 255;
  }
  in6_addr six{};
  if (::inet_pton(AF_INET6, text.c_str(), &six) != 1) return false;
  const unsigned first = six.s6_addr[0];
  return first >> 5U == 1 || first >> 1U == 0x7e || first >= 0xfe;
}

bool is_nobodys(Redactor::Kind kind, const std::string& name) {
  using Kind = Redactor::Kind;
  static const std::set<std::string> kNobodys{"localhost", "root",         "nobody", "/",
                                              "/root",     "/nonexistent", "none"};
  in_addr four{};
  in6_addr six{};
  const bool number =
      ::inet_pton(AF_INET, name.c_str(), &four) == 1 || ::inet_pton(AF_INET6, name.c_str(), &six) == 1;
  return name.size() < 2 || kNobodys.contains(name) ||
         (kind == Kind::host && (number || name.find('*') != std::string::npos)) ||
         (kind == Kind::home && name.front() != '/');
}

}  // namespace

struct Redactor::Pattern {
  Pattern(const std::string& text, const RE2::Options& options) : re(text, options) {}
  RE2 re;
};

Redactor::Redactor() = default;
Redactor::~Redactor() = default;

std::string Redactor::next(Kind kind) const {
  std::set<std::string> shown;
  for (const auto& [name, entry] : names_) {
    if (entry.kind == kind) shown.insert(entry.shown);
  }
  return fmt::format("{}{}", words(kind).shown, shown.size() + 1);
}

void Redactor::add_one(Kind kind, const std::string& name, const std::string& shown) {
  if (!is_nobodys(kind, name)) names_.try_emplace(name, Name{kind, shown});
}

void Redactor::add(Kind kind, const std::string& name) {
  if (is_nobodys(kind, name)) return;
  const auto dot = kind == Kind::host ? name.find('.') : std::string::npos;
  if (dot == std::string::npos) return add_one(kind, name, next(kind));
  const auto known = names_.find(name.substr(0, dot));
  const auto shown = known == names_.end() ? next(kind) : known->second.shown;
  add_one(kind, name, shown);
  add_one(kind, name.substr(0, dot), shown);
  add(Kind::domain, name.substr(dot + 1));
}

Redactor::Name* Redactor::find(std::string_view found) {
  if (const auto known = names_.find(found); known != names_.end()) return &known->second;
  const std::string text(found);
  if (!is_address(text)) return nullptr;
  return &names_.try_emplace(text, Name{Kind::address, next(Kind::address)}).first->second;
}

std::string Redactor::redact(std::string_view text) {
  return rewrite(text, 1);
}

bool Redactor::holds(std::string_view text) {
  return rewrite(text, 0) != text;
}

std::string Redactor::rewrite(std::string_view text, std::uint64_t counted) {
  if (!pattern_) {
    std::vector<std::string> all;
    for (const auto& [name, entry] : names_) all.push_back(name);
    // The first alternative that matches wins: "/home/alice" before "alice".
    std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.size() > b.size(); });
    std::string alternatives;
    for (const auto& name : all) alternatives += RE2::QuoteMeta(name) + "|";
    RE2::Options options(RE2::Latin1);
    options.set_max_mem(64 << 20);
    pattern_ = std::make_unique<Pattern>(alternatives + kAddress, options);
  }
  std::string out;
  std::size_t copied = 0;
  const re2::StringPiece all(text.data(), text.size());
  re2::StringPiece match;
  for (std::size_t at = 0;
       at < text.size() && pattern_->re.Match(all, at, all.size(), RE2::UNANCHORED, &match, 1);) {
    const auto from = static_cast<std::size_t>(match.data() - text.data());
    const auto to = from + match.size();
    const bool whole = (from == 0 || !is_word(text[from - 1]) || !is_word(match[0])) &&
                       (to == text.size() || !is_word(text[to]));
    auto* name = whole ? find({match.data(), match.size()}) : nullptr;
    at = name != nullptr ? to : from + 1;
    if (name == nullptr) continue;
    name->times += counted;
    out.append(text.substr(copied, from - copied)).append(name->shown);
    copied = to;
  }
  return out.append(text.substr(copied));
}

std::vector<Redactor::Count> Redactor::counts() const {
  std::vector<Count> out;
  for (const auto& [kind, shown, plural] : kWords) {
    Count count{std::string(plural), 0, 0};
    std::set<std::string> found;
    for (const auto& [name, entry] : names_) {
      if (entry.kind != kind || entry.times == 0) continue;
      found.insert(entry.shown);
      count.times += entry.times;
    }
    count.names = found.size();
    if (count.times > 0) out.push_back(std::move(count));
  }
  return out;
}

}  // namespace nlaunch::record
