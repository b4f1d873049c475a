#include "plan/container.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"

namespace nlaunch::plan {
namespace {

constexpr const char* kPreload = "LD_PRELOAD";

/// What one start needs.
struct Passing {
  const Variables& env;    ///< the whole environment
  const Variables& given;  ///< what the plan asks for
  Words options{};         ///< of the tool
  Variables beside{};      ///< further variables of the tool's own environment

  [[nodiscard]] const std::string* find(std::string_view name) const {
    const auto found = std::ranges::find(env, name, &Variables::value_type::first);
    return found == env.end() ? nullptr : &found->second;
  }
};

struct Tool {
  std::string_view name;     ///< of the program
  std::string_view verbs{};  ///< that start a program, a blank around each: options stand behind the verb,
                             ///< and the image comes last. Empty: options stand last
  std::string_view alone{};  ///< what is added to the options in any case
  void (*mount)(const Mount& mount, Words& options) = nullptr;
  std::string_view separators{};  ///< which no path that is mounted may have
  void (*pass)(Passing& passing) = nullptr;
  Passage::Of passes = Passage::Of::all;    ///< variables, by itself
  std::string_view cleaning{};              ///< options that take variables away ...
  Passage::Of cleaned = Passage::Of::plan;  ///< ... and leave these
  std::string_view processes{};             ///< names of its own processes
  std::string_view refused{};               ///< why nothing can be started behind it
  std::string_view instead{};
};

bool is_among(std::string_view list, std::string_view word) {
  return !word.empty() && list.find(fmt::format(" {} ", word)) != std::string_view::npos;
}

void mount_apptainer(const Mount& mount, Words& options) {
  options.insert(options.end(),
                 {"--bind", fmt::format("{0}:{0}{1}", mount.path, mount.writable ? "" : ":ro")});
}

void mount_bwrap(const Mount& mount, Words& options) {
  options.insert(options.end(), {mount.writable ? "--bind" : "--ro-bind", mount.path, mount.path});
}

void mount_enroot(const Mount& mount, Words& options) {
  options.insert(options.end(), {"--mount", fmt::format("{0}:{0}:none:x-create=auto,bind,{1}", mount.path,
                                                        mount.writable ? "rw" : "ro")});
}

/// It sets HOME by itself, keeps the image's PATH, and takes no LD_LIBRARY_PATH from outside: what the plan
/// adds to these is added inside. Values are no shell's business.
void pass_by_prefix(Passing& passing, const std::string& tool) {
  for (const auto& [name, value] : passing.given) {
    if (name == "HOME") continue;
    auto inside = name;
    if (const auto* whole = name == "PATH" ? passing.find(name) : nullptr;
        whole != nullptr && *whole != value)
      inside = whole->ends_with(":" + value) ? "APPEND_PATH" : "PREPEND_PATH";
    passing.beside.emplace_back(fmt::format("{}ENV_{}", tool, inside), value);
  }
  passing.beside.emplace_back(tool + "_NO_EVAL", "1");
}

void pass_apptainer(Passing& passing) {
  pass_by_prefix(passing, "APPTAINER");
}

void pass_singularity(Passing& passing) {
  pass_by_prefix(passing, "SINGULARITY");
}

/// It hands on all that it has.
void pass_bwrap(Passing& passing) {
  if (const auto* preload = passing.find(kPreload))
    passing.options.insert(passing.options.end(), {"--setenv", kPreload, *preload});
}

/// It hands on what it is told, by name: no value stands on a command line. A PATH that is added to is the
/// image's own.
void pass_enroot(Passing& passing) {
  for (const auto& [name, value] : passing.given) {
    const auto* whole = passing.find(name);
    if (name == "PATH" && (whole == nullptr || *whole != value)) continue;
    passing.options.insert(passing.options.end(),
                           {"--env", name == kPreload ? fmt::format("{}={}", name, value) : name});
  }
}

constexpr std::string_view kApptainerCleans = " --cleanenv -e --containall -C --compat ";
constexpr std::string_view kApptainerProcesses = " apptainer singularity starter starter-suid appinit sinit ";
constexpr std::string_view kOfADaemon =
    "its processes are not nlaunch's: they are children of another program, which nlaunch can neither stop "
    "nor look into";
constexpr std::string_view kUseAnother =
    "apptainer, bwrap and enroot start the program as their own child: apptainer reads docker:// images";

constexpr std::array kTools{
    Tool{.name = "apptainer",
         .verbs = " exec run ",
         .mount = mount_apptainer,
         .separators = ":,\\",
         .pass = pass_apptainer,
         .cleaning = kApptainerCleans,
         .processes = kApptainerProcesses},
    Tool{.name = "singularity",
         .verbs = " exec run ",
         .mount = mount_apptainer,
         .separators = ":,\\",
         .pass = pass_singularity,
         .cleaning = kApptainerCleans,
         .processes = kApptainerProcesses},
    Tool{.name = "bwrap",
         .alone = "--die-with-parent",
         .mount = mount_bwrap,
         .pass = pass_bwrap,
         .cleaning = " --clearenv ",
         .cleaned = Passage::Of::nothing,
         .processes = " bwrap "},
    Tool{.name = "enroot",
         .verbs = " start ",
         .mount = mount_enroot,
         .separators = ": \t$",
         .pass = pass_enroot,
         .passes = Passage::Of::plan,
         .processes = " enroot-nsenter "},
    Tool{.name = "docker", .refused = kOfADaemon, .instead = kUseAnother},
    Tool{.name = "podman", .refused = kOfADaemon, .instead = kUseAnother},
    Tool{.name = "nerdctl", .refused = kOfADaemon, .instead = kUseAnother},
    Tool{.name = "srun",
         .refused = "its tasks are children of Slurm's daemon, which nlaunch can neither stop nor look into",
         .instead =
             "`scheduler: {srun: [--container-image=...]}` of the site puts all of nlaunch's step into "
             "the container (pyxis)"},
};

struct Found {
  const Tool* tool;
  std::size_t at;  ///< its place in the wrapper
};

std::optional<Found> find_tool(const Words& wrapper) {
  for (std::size_t at = 0; at < wrapper.size(); ++at) {
    const auto name = std::string_view(wrapper[at]).substr(wrapper[at].rfind('/') + 1);
    const auto* tool = std::ranges::find(kTools, name, &Tool::name);
    if (tool != kTools.end()) return Found{tool, at};
  }
  return std::nullopt;
}

/// Where further options go; nothing where the verb is missing.
std::optional<std::size_t> place_of_options(const Words& wrapper, const Found& found) {
  if (found.tool->verbs.empty()) return wrapper.size() - (wrapper.back() == "--" ? 1 : 0);
  for (auto at = found.at + 1; at < wrapper.size(); ++at) {
    if (is_among(found.tool->verbs, wrapper[at])) return at + 1;
  }
  return std::nullopt;
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
    return {fmt::format("'{}' starts no program without '{}'", tool.name, verbs),
            fmt::format("write [{}, {}, ..., IMAGE]", tool.name, verbs.substr(0, verbs.find(' ')))};
  }
  if (*place == wrapper.size() || wrapper.back().starts_with('-')) {
    return {fmt::format("the wrapper ends without an image: '{}'", wrapper.back()),
            "the image is its last word; the command comes behind it"};
  }
  return {};
}

std::string image_of(const Words& wrapper) {
  const auto found = find_tool(wrapper);
  if (!found || found->tool->verbs.empty()) return "";
  const auto& last = wrapper.back();
  // enroot has containers by name, too.
  const bool named = found->tool->name == "enroot" && !last.contains('/') && !last.ends_with(".sqsh");
  return last.contains("://") || named ? "" : last;
}

Passage passage_of(const Words& wrapper) {
  const auto found = find_tool(wrapper);
  if (!found) return {};
  const auto& tool = *found->tool;
  const auto option =
      std::ranges::find_if(wrapper, [&](const auto& word) { return is_among(tool.cleaning, word); });
  if (option != wrapper.end()) return {tool.cleaned, *option};
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
