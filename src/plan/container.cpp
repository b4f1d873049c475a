#include "plan/container.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "base/text.h"
#include "plan/container_tools.h"

namespace nlaunch::plan {
namespace {

struct Found {
  const Tool* tool;
  std::size_t at;  ///< its position in the wrapper
};

std::string_view file_name(std::string_view word) {
  return word.substr(word.rfind('/') + 1);
}

std::optional<Found> find_tool(const Words& wrapper) {
  for (std::size_t at = 0; at < wrapper.size(); ++at) {
    const auto tools = container_tools();
    const auto tool = std::ranges::find(tools, file_name(wrapper[at]), &Tool::name);
    if (tool != tools.end()) return Found{&*tool, at};
  }
  return std::nullopt;
}

/// The position after the options that start there: that of a "--" if one ends them.
std::size_t end_of_options(const Words& wrapper, const Tool& tool, std::size_t at) {
  while (at < wrapper.size() && wrapper[at].starts_with('-') && wrapper[at] != "--")
    at += 1 + (tool.values == nullptr ? 0 : tool.values(wrapper[at]));
  return std::min(at, wrapper.size());
}

/// Where to insert further options: after the verb, or, for a tool without verbs, after the existing options,
/// because a later mount covers an earlier one. Nothing if the verb is missing.
std::optional<std::size_t> place_of_options(const Words& wrapper, const Found& found) {
  if (found.tool->verbs.empty()) return end_of_options(wrapper, *found.tool, found.at + 1);
  for (auto at = found.at + 1; at < wrapper.size(); ++at) {
    if (is_among(found.tool->verbs, wrapper[at])) return at + 1;
  }
  return std::nullopt;
}

/// After the image there can be programs of the image that start the command.
std::optional<std::size_t> place_of_image(const Words& wrapper, const Found& found) {
  if (found.tool->verbs.empty()) return std::nullopt;
  const auto options = place_of_options(wrapper, found);
  if (!options) return std::nullopt;
  auto at = end_of_options(wrapper, *found.tool, *options);
  if (at < wrapper.size() && wrapper[at] == "--") ++at;
  return at < wrapper.size() ? std::optional(at) : std::nullopt;
}

Words with_options(const Words& wrapper, const Found& found, const Words& options) {
  auto out = wrapper;
  const auto place = place_of_options(wrapper, found);
  if (place) out.insert(out.begin() + static_cast<std::ptrdiff_t>(*place), options.begin(), options.end());
  return out;
}

Words entries(const Variables& variables) {
  Words out;
  for (const auto& [name, value] : variables) out.push_back(fmt::format("{}={}", name, value));
  return out;
}

Start start_in(const Words& wrapper, Variables env, const Variables& given, const Words& command) {
  Start start{wrapper, {}};
  if (const auto found = find_tool(wrapper); found && found->tool->pass != nullptr) {
    Passing passing{env, given};
    found->tool->pass(passing);
    start.argv = with_options(wrapper, *found, passing.options);
    const auto beside = std::move(passing.beside);
    std::erase_if(env, [](const auto& variable) { return variable.first == kPreload; });
    env.insert(env.end(), beside.begin(), beside.end());
  }
  start.argv.insert(start.argv.end(), command.begin(), command.end());
  start.env = entries(env);
  return start;
}

bool is_the_programs(const Variables::value_type& variable) {
  return variable.first == kPreload || variable.first.starts_with("NLAUNCH_");
}

}  // namespace

bool is_started_elsewhere(const Words& command) {
  constexpr std::string_view kOthers = " ssh kubectl systemd-run ";
  const auto tools = container_tools();
  return std::ranges::any_of(command, [&](std::string_view word) {
    const auto name = file_name(word);
    const auto tool = std::ranges::find(tools, name, &Tool::name);
    return (tool != tools.end() && !tool->refused.empty()) || is_among(kOthers, name);
  });
}

bool is_container(const Words& wrapper) {
  return find_tool(wrapper).has_value();
}

WrapperProblem problem_with(const Words& wrapper) {
  const auto found = find_tool(wrapper);
  if (!found) return {};
  const auto& tool = *found->tool;
  if (!tool.refused.empty())
    return {fmt::format("'{}' cannot be a wrapper: {}", tool.name, tool.refused), std::string(tool.instead)};
  const auto verbs = text::join(text::split(text::trim(tool.verbs), ' '), " or ");
  if (tool.verbs.empty()) return {};
  const auto place = place_of_options(wrapper, *found);
  if (!place) {
    return {fmt::format("'{}' needs '{}' to start a program", tool.name, verbs),
            fmt::format("write [{}, {}, ..., IMAGE]", tool.name, verbs.substr(0, verbs.find(' ')))};
  }
  if (!place_of_image(wrapper, *found)) {
    return {fmt::format("the wrapper ends without an image, at '{}'", wrapper.back()),
            "the image comes after the options and their values; the command comes after the wrapper"};
  }
  return {};
}

std::string image_of(const Words& wrapper) {
  const auto found = find_tool(wrapper);
  const auto place = found ? place_of_image(wrapper, *found) : std::nullopt;
  if (!place) return "";
  const auto& image = wrapper[*place];
  // enroot also accepts containers by name.
  const bool named = found->tool->name == "enroot" && !image.contains('/') && !image.ends_with(".sqsh");
  return image.contains("://") || named ? "" : image;
}

Variables set_by(const Words& wrapper) {
  Variables out;
  const auto add = [&](std::string_view text) {
    const auto equals = text.find('=');
    if (equals != std::string_view::npos) out.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  };
  for (std::size_t i = 0; i < wrapper.size(); ++i) {
    const auto& word = wrapper[i];
    const auto* next = i + 1 < wrapper.size() ? &wrapper[i + 1] : nullptr;
    if (word == "env" || word.ends_with("/env")) {
      while (i + 1 < wrapper.size() && wrapper[i + 1].contains('=')) add(wrapper[++i]);
    } else if (word == "--setenv" && i + 2 < wrapper.size()) {
      out.emplace_back(wrapper[i + 1], wrapper[i + 2]);
    } else if (word == "--env" && next != nullptr) {
      for (const auto& one : text::split(*next, ',')) add(one);
    } else if (word.starts_with("--env=")) {
      for (const auto& one : text::split(word.substr(6), ',')) add(one);
    }
  }
  return out;
}

Passage passage_of(const Words& wrapper) {
  const auto found = find_tool(wrapper);
  if (!found) return {};
  const auto& tool = *found->tool;
  const auto begin =
      tool.verbs.empty() ? found->at + 1 : place_of_options(wrapper, *found).value_or(found->at + 1);
  const auto options = std::span(wrapper).subspan(begin, end_of_options(wrapper, tool, begin) - begin);
  const auto option =
      std::ranges::find_if(options, [&](const auto& word) { return is_among(tool.cleaning, word); });
  if (option != options.end()) return {tool.cleaned, *option};
  return {tool.passes, tool.passes == Passage::Of::all ? "" : std::string(tool.name)};
}

bool belongs_to_tool(const Words& wrapper, std::string_view name) {
  const auto found = find_tool(wrapper);
  return found && is_among(found->tool->processes, name);
}

bool can_mount(const Words& wrapper, const std::string& path) {
  const auto found = find_tool(wrapper);
  return !found || path.find_first_of(found->tool->separators) == std::string::npos;
}

Words with_mounts(const Words& wrapper, const std::vector<Mount>& mounts) {
  const auto found = find_tool(wrapper);
  if (!found || found->tool->mount == nullptr) return wrapper;
  Words options;
  if (!found->tool->alone.empty()) options.emplace_back(found->tool->alone);
  for (const auto& mount : mounts) found->tool->mount(mount, options);
  return with_options(wrapper, *found, options);
}

Start start_of(const BoundProcess& process, const Words& command, const Variables& more) {
  auto env = process.env;
  auto given = process.given;
  for (auto* variables : {&env, &given}) variables->insert(variables->end(), more.begin(), more.end());
  return start_in(process.wrapper, std::move(env), given, command);
}

Start start_of_probe(const BoundProcess& process, const Words& command) {
  auto env = process.env;
  auto given = process.given;
  for (auto* variables : {&env, &given}) std::erase_if(*variables, is_the_programs);
  return start_in(process.wrapper, std::move(env), given, command);
}

}  // namespace nlaunch::plan
