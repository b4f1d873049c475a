#include "shell/absent_files.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "shell/words.h"

namespace nlaunch::shell {
namespace {

bool is_read_by_source(const std::string& path) {
  const auto name = program_name(path);
  return name == "activate" || name.ends_with(".sh") || name.ends_with("bashrc") ||
         name.ends_with("bash_profile");
}

/// `[ -f PATH ]`, but not for a variable's value that only looks like a path.
bool is_test(const std::string& command) {
  return command.starts_with("'[' ") || command.starts_with("[[ ") || command.starts_with("test ");
}

/// {"-f", "ready/server.txt"} of `[ ! -f ready/server.txt ]`, the path as the script has it.
std::pair<std::string, std::string> operand_of(const std::string& command, const std::string& name) {
  std::string before;
  for (const auto& word : words_of(command)) {
    if (word.starts_with('-') && word.size() == 2)
      before = word;
    else if (program_name(word) == name)
      return {before.empty() ? "-e" : before, word};
  }
  return {"-e", name};
}

}  // namespace

std::string AbsentFiles::stand_in(const Look& look, const std::string& path) {
  const auto asked = look.asked;
  const auto* place = places_.of_shell(look.shell);
  // A script that turns `set -x` off does not reveal what it reads.
  if ((place == nullptr || place->line == 0) && asked == Missing::file && is_read_by_source(path))
    return sourced(path, "", 0);
  if (place == nullptr) return {};
  if (asked == Missing::name)
    return is_test(place->command) ? tested(look, *place, path) : executed(path, place->command);
  constexpr std::array<std::string_view, 4> kBuiltins{"source ", ". ", "cd ", "pushd "};
  const bool looks =
      std::ranges::any_of(kBuiltins, [&](auto word) { return place->command.starts_with(word); });
  if (!looks || place->command.find(program_name(path)) == std::string::npos) return {};
  if (asked == Missing::folder) {
    notes_.absent(path);
    return "/dev/null";
  }
  return sourced(path, place->command, place->line);
}

bool AbsentFiles::may_be_there(const std::string& folder) const {
  constexpr std::array<std::string_view, 6> kOfEveryMachine{"/tmp/",     "/var/tmp/", "/dev/",
                                                            "/dev/shm/", "/proc/",    "/sys/"};
  const auto path = folder + "/";
  return !path.starts_with(folder_of(request_) + "/") &&
         std::ranges::none_of(kOfEveryMachine,
                              [&](std::string_view begin) { return path.starts_with(begin); });
}

/// True if it is below the submission directory and not in a Python environment.
bool AbsentFiles::is_of_job(const std::string& path) const {
  return program_name(path) != "activate" && path.starts_with(folder_of(request_) + "/");
}

/// A stand-in for a file that the script sources. A file of the job itself is noted as unread: what it sets
/// is unknown.
std::string AbsentFiles::sourced(const std::string& path, const std::string& command, std::uint32_t line) {
  if (is_of_job(path) || !notes_.found_in(path).empty())
    notes_.unread(line, path, true);
  else
    notes_.absent(path);
  constexpr std::string_view kConda = "/etc/profile.d/conda.sh";
  if (path.ends_with(kConda))
    return scripts_.put("NLAUNCH_CONDA=" + text::shell_quote(path.substr(0, path.size() - kConda.size())) +
                        "\n");
  return program_name(path) == "activate" ? scripts_.put(activation(path, command)) : "/dev/null";
}

/// `exec NAME` searches PATH itself: the program appears to exist where it looks last, and its start is
/// recorded.
std::string AbsentFiles::executed(const std::string& path, const std::string& command) const {
  const bool looks_last = command.starts_with("exec ") &&
                          command.find(program_name(path)) != std::string::npos &&
                          std::filesystem::path(path).parent_path() == last_of_search_;
  return looks_last ? own_.other() : std::string();
}

/// A file that the script waits for appears after a while; any other is missing and noted.
std::string AbsentFiles::tested(const Look& look, const Place& place, const std::string& path) {
  const auto name = program_name(path);
  const auto at = place.command.find(name);
  const auto end = at + name.size();
  const bool named = at != std::string::npos &&
                     (end == place.command.size() || std::string_view(" '\"").contains(place.command[end]));
  if (!named) return {};
  constexpr int kLooks = 20;
  const bool waits = (look.has_waited && !look.background) ||
                     place.command.find("! -") != std::string::npos ||
                     place.command.find("'!' -") != std::string::npos;
  const bool comes = ++tests_[path] > kLooks && waits;
  const auto [test, typed] = operand_of(place.command, name);
  const auto there = test == "-d" ? own_.folder.native() : own_.other();
  // `which`, a system script, asks on behalf of its caller.
  const auto parent = places_.parent_of(look.shell);
  const auto* caller = is_of_system(place.script) && parent ? places_.of(*parent) : &place;
  if (caller == nullptr) return comes ? there : "";
  auto& asked_for = recording_.asked_for;
  if (!comes) {
    const bool own = places_.is_the_script(caller->script);
    if (std::ranges::find(asked_for, path, &Absent::name) == asked_for.end())
      asked_for.push_back({caller->line, path, own ? "" : layer_.unmapped(caller->script).native()});
    return "";
  }
  if (!awaited_.insert(path).second || look.background) return there;
  std::erase_if(asked_for, [&](const Absent& one) { return one.name == path; });
  recording_.waited_for.push_back({caller->line, typed, test, recording_.commands.size(), look.in_task});
  return there;
}

}  // namespace nlaunch::shell
