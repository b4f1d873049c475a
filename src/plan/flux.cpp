#include "plan/flux.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace nlaunch::plan {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// Options whose value is nlaunch's own, with what says the same.
struct Owned {
  std::string_view name;
  std::string_view instead;
};
constexpr std::string_view kWholeNodes = "a job has whole nodes: `nodes:` of the experiment, or --nodes";
constexpr std::string_view kEnvironment = "the environment of a process is the plan's business: `env:`";
constexpr std::array kOwned{
    Owned{"nodes", kWholeNodes},
    Owned{"nslots", kWholeNodes},
    Owned{"cores-per-slot", kWholeNodes},
    Owned{"gpus-per-slot", kWholeNodes},
    Owned{"exclusive", kWholeNodes},
    Owned{"env", kEnvironment},
    Owned{"env-remove", kEnvironment},
    Owned{"env-file", kEnvironment},
    Owned{"cwd", "`workdir:`"},
    Owned{"input", "nlaunch reads nothing"},
    Owned{"wrap", "the script is nlaunch's"},
    Owned{"quiet", "nlaunch reads the answer itself"},
    Owned{"dry-run", "`nlaunch render` shows the script"},
};

/// flux-batch(1) of 0.88.
constexpr std::string_view kWithValue =
    "queue bank time-limit job-name flags output error conf broker-opts dump urgency setopt setattr add-file "
    "begin-time signal requires dependency rlimit";
constexpr std::string_view kWithoutValue = "unbuffered label-io verbose debug";

bool needs_value(const std::string& name) {
  const auto names = text::split(kWithValue, ' ');
  return std::ranges::find(names, name) != names.end();
}

bool is_option_name(std::string_view name) {
  return !name.empty() && name.front() != '-' &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string_view::npos;
}

/// True where nothing is wrong with the name; else it is said.
bool check_name(const config::Text& name, Diagnostics& diagnostics) {
  const auto owned = std::ranges::find(kOwned, name.value, &Owned::name);
  if (owned != kOwned.end()) {
    diagnostics
        .error("plan.flux-owned", name.span,
               fmt::format("'{}' is set by nlaunch and cannot be given here", name.value))
        .hint = owned->instead;
    return false;
  }
  if (is_option_name(name.value)) return true;
  diagnostics.error("plan.flux-option", name.span, fmt::format("flux batch has no option '{}'", name.value))
      .hint = "the long name without its dashes: queue, bank, time-limit";
  return false;
}

bool check_value(const std::string& name, const std::string& value, const SourceSpan& span,
                 Diagnostics& diagnostics) {
  const auto refuse = [&](std::string message, std::string hint) {
    diagnostics.error("plan.flux-value", span, std::move(message)).hint = std::move(hint);
    return false;
  };
  if (value.empty())
    return refuse("a directive needs a value", "`true` makes a flag; a line that is not wanted is left out");
  if (text::printable(value) != value || value.find_first_of("'\"\\") != std::string::npos) {
    return refuse(fmt::format("'{}' cannot stand in a #flux: line", value),
                  "quotes, backslashes, line breaks and other control characters, and what is not UTF-8, are "
                  "not allowed there");
  }
  if (value == "true" && needs_value(name)) {
    return refuse(fmt::format("'{}' needs a value, and `true` would make it a flag", name),
                  fmt::format("`{0}: VALUE`; `{0}: false` takes it away", name));
  }
  return true;
}

/// Keys of a profile that would do nothing here.
void refuse_keys_of_others(const config::Site& site, Diagnostics& diagnostics) {
  const auto refuse = [&](std::string_view key, const SourceSpan& span) {
    diagnostics
        .error("plan.flux-key", span,
               fmt::format("'scheduler.{}' is for Slurm, and the scheduler is flux", key))
        .hint = "leave it out";
  };
  if (!site.srun.empty()) refuse("srun", site.srun.front().span);
  if (site.template_file) refuse("template", site.template_file->span);
  if (site.bad_nodes_file) refuse("bad_nodes", site.bad_nodes_file->span);
}

}  // namespace

void make_flux(const PartInput& input, Plan& plan) {
  auto& flux = plan.flux;
  refuse_keys_of_others(input.site, input.diagnostics);
  for (const auto& [name, given] : input.site.directives) {
    if (!check_name(name, input.diagnostics)) continue;
    auto value = input.resolve(given);
    if (!check_value(name.value, value, given.span, input.diagnostics)) continue;
    std::erase_if(flux.directives, [&](const Directive& other) { return other.name == name.value; });
    if (value == "false") continue;
    if (name.value == "output" || name.value == "error") value = input.absolute(value, "");
    flux.directives.push_back({name.value, value == "true" ? "" : std::move(value), given.span.where()});
  }
  for (const auto& program : input.site.submit) flux.submit.push_back(input.resolve(program));
  if (flux.submit.empty()) flux.submit.emplace_back("flux");
}

std::vector<std::string> flux_options() {
  auto options = text::split(kWithValue, ' ');
  for (auto& flag : text::split(kWithoutValue, ' ')) options.push_back(std::move(flag));
  return options;
}

ordered_json to_json(const Flux& flux) {
  auto directives = ordered_json::array();
  for (const auto& option : flux.directives)
    directives.push_back({{"name", option.name}, {"value", option.value}, {"origin", option.origin}});
  return {{"directives", std::move(directives)}, {"submit", flux.submit}};
}

Flux flux_from_json(const json& from) {
  Flux flux;
  for (const auto& option : from.at("directives"))
    flux.directives.push_back({option.at("name"), option.at("value"), option.at("origin")});
  from.at("submit").get_to(flux.submit);
  return flux;
}

}  // namespace nlaunch::plan
