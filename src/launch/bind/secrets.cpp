#include "launch/bind/secrets.h"

#include <sstream>

#include "base/secrets.h"
#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::launch {
namespace {

constexpr std::uint64_t kLargestSecretFile = 1U << 20U;

std::string home_of(const std::map<std::string, std::string>& caller) {
  const auto home = caller.find("HOME");
  return home == caller.end() ? std::string() : home->second;
}

/// The password of a machine in ~/.netrc (the format of ftp(1): machine NAME login L password P).
Result<std::string> from_netrc(const std::string& machine, const std::map<std::string, std::string>& caller) {
  const auto given = caller.find("NETRC");
  const auto path = given == caller.end() ? home_of(caller) + "/.netrc" : given->second;
  const auto content = sys::read_regular_file(path, kLargestSecretFile);
  if (!content) return std::unexpected(content.error());
  std::istringstream words(*content);
  bool here = false;
  for (std::string word; words >> word;) {
    if (word == "machine") {
      words >> word;
      here = word == machine;
    } else if (word == "default") {
      here = false;
    } else if (here && word == "password" && words >> word) {
      return word;
    }
  }
  return failure("launch.secret", "{} has no password for machine '{}'", path, machine);
}

Result<std::string> read_secret(const plan::Secret& secret,
                                const std::map<std::string, std::string>& caller) {
  if (secret.source == plan::Secret::Source::netrc) return from_netrc(secret.from, caller);
  if (secret.source == plan::Secret::Source::env) {
    const auto found = caller.find(secret.from);
    if (found != caller.end() && !found->second.empty()) return found->second;
    return failure("launch.secret", "the variable {} is not set in the environment of nlaunch", secret.from);
  }
  const auto path = secret.from.starts_with("~/") ? home_of(caller) + secret.from.substr(1) : secret.from;
  auto content = sys::read_regular_file(path, kLargestSecretFile);
  if (!content) return std::unexpected(content.error());
  return std::string(text::trim(*content));
}

std::string hint_for(const plan::Secret& secret) {
  if (secret.source != plan::Secret::Source::env)
    return fmt::format("write it there, or take it from a variable: secrets: {{{}: env}}", secret.name);
  return fmt::format(
      "export {}=... before you call nlaunch, or read it from a file: secrets: {{{}: {{file: PATH}}}}",
      secret.from, secret.name);
}

}  // namespace

Result<std::map<std::string, std::string>> read_secrets(const std::vector<plan::Secret>& secrets,
                                                        const std::map<std::string, std::string>& caller) {
  std::map<std::string, std::string> values;
  Diagnostics diagnostics;
  for (const auto& secret : secrets) {
    auto value = read_secret(secret, caller);
    if (value && value->size() < Masker::kShortest) {
      value = failure("launch.secret",
                      "its value has {}, fewer than the {} that nlaunch needs to mask it in logs",
                      text::count(value->size(), "byte"), Masker::kShortest);
    }
    if (value) {
      values.emplace(secret.name, std::move(*value));
      continue;
    }
    const auto& reason = value.error().first_message();
    diagnostics
        .error("launch.secret", {}, fmt::format("secret {} ({}): {}", secret.name, secret.origin, reason))
        .hint = hint_for(secret);
  }
  if (diagnostics.has_errors()) return std::unexpected(std::move(diagnostics));
  return values;
}

}  // namespace nlaunch::launch
