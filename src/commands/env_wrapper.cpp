#include "commands/env_wrapper.h"

#include <algorithm>

#include "base/secrets.h"
#include "base/text.h"
#include "plan/container.h"

namespace nlaunch::commands {
namespace {

bool is_entry_of(const std::string& entry, const std::string& name) {
  return entry.starts_with(name + "=");
}

}  // namespace

std::vector<std::string> carriers_of(const std::string& name, const plan::BoundProcess& process) {
  const auto is_it = [&](const auto& variable) { return variable.first == name; };
  auto alone = process;  // other requested variables are left out on both sides
  std::erase_if(alone.given, [&](const auto& variable) { return !is_it(variable); });
  auto without = alone;
  for (auto* variables : {&without.env, &without.given}) std::erase_if(*variables, is_it);
  const auto with = plan::start_of(alone, {});
  const auto bare = plan::start_of(without, {});
  std::vector<std::string> lines;
  const auto [first, rest] = std::ranges::mismatch(with.argv, bare.argv);
  const plan::Words options(first, first + static_cast<std::ptrdiff_t>(with.argv.size() - bare.argv.size()));
  if (!options.empty()) lines.push_back(text::shell_join(options));
  for (const auto& entry : with.env) {
    const bool more = std::ranges::find(bare.env, entry) == bare.env.end();
    if (!more || is_entry_of(entry, name)) continue;
    lines.push_back(looks_like_secret(name) ? entry.substr(0, entry.find('=') + 1) + std::string(kMasked)
                                            : entry);
  }
  return lines;
}

}  // namespace nlaunch::commands
