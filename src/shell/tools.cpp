#include "shell/tools.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "shell/answers.h"

namespace nlaunch::shell {
namespace {

namespace fs = std::filesystem;

/// `ls /sys/class/net`, `cat /proc/meminfo`
bool looks_at_this_machine(const Words& argv) {
  return std::ranges::any_of(argv, [](const auto& word) {
    return word.starts_with("/sys/") ||
           (word.starts_with("/proc/") && !word.starts_with("/proc/sys/kernel/random"));
  });
}

bool asks_canonical_path(const std::string& name, const Words& argv) {
  if (name == "realpath")
    return std::ranges::none_of(argv, [](const auto& word) { return word.starts_with("--relative"); });
  static const Options kCanonical{"-f", "-m", "-e", "--canonicalize", "-en", "-fn"};
  return name == "readlink" &&
         std::ranges::any_of(argv, [](const auto& word) { return kCanonical.contains(word); });
}

}  // namespace

bool Tools::places_files(const std::string& tool) {
  static const Options kNames{"cp", "mv", "ln", "install", "dd"};
  return kNames.contains(tool);
}

bool Tools::tells_time(const Words& argv) {
  constexpr std::array<std::string_view, 8> kOthers{"-d",     "-f",     "-r",          "-s",
                                                    "--date", "--file", "--reference", "--set"};
  return std::ranges::none_of(argv, [&](const auto& word) {
    return std::ranges::any_of(kOthers, [&](const auto& option) { return word.starts_with(option); });
  });
}

bool Tools::is_missing(const ProgramStart& start, const std::string& path) const {
  const auto resolved = layer_.resolved(fs::path(start.folder) / path, true, start.pid);
  std::error_code error;
  return !resolved || !fs::exists(layer_.map_to_read(*resolved), error);
}

bool Tools::sources_are_here(const ProgramStart& start, const Words& argv) const {
  std::vector<fs::path> paths;
  for (std::size_t i = 1; i < argv.size(); ++i)
    if (!argv[i].starts_with('-')) paths.emplace_back(argv[i]);
  if (paths.size() < 2) return false;
  paths.back() = paths.back().parent_path();
  const bool links = program_name(argv[0]) == "ln";
  if (links) paths.erase(paths.begin(), paths.end() - 1);
  return std::ranges::none_of(paths, [&](const auto& path) { return is_missing(start, path); });
}

std::optional<std::string> Tools::canonical_path(const ProgramStart& start, const Words& argv) const {
  const bool asks = asks_canonical_path(program_name(argv[0]), argv);
  if (!asks || argv.size() < 2 || argv.back().empty() || argv.back().starts_with('-') ||
      !is_missing(start, argv.back()))
    return std::nullopt;
  auto text = (fs::path(start.folder) / argv.back()).lexically_normal().native();
  if (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

/// `which PROGRAM` for one that is found only because the recorder has put it there.
bool Tools::names_own_program(const Words& argv) const {
  return std::ranges::any_of(argv, [&](const auto& word) {
    std::error_code error;
    return word.find('/') == std::string::npos && fs::exists(own_.programs() + "/" + word, error);
  });
}

void Tools::note_tee(const ProgramStart& start, const Words& argv) {
  written_.tee(start, argv);
  if (has(argv, "-a") || has(argv, "--append")) return;
  const auto* place = places_.of(start.pid);
  for (std::size_t i = 1; i < argv.size(); ++i)
    if (!argv[i].starts_with('-'))
      recording_.teed.push_back({places_.line_of(start.pid),
                                 (fs::path(start.folder) / argv[i]).lexically_normal().native(),
                                 place == nullptr ? "" : place->script});
}

/// It counts as idle until it starts something.
void Tools::note_xargs(const ProgramStart& start, const Words& argv) {
  static const Options kValued{"-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s"};
  const auto words = rest(argv, program_at(argv, 1, kValued));
  if (!words.empty() && !only_computes(program_name(words[0])))
    xargs_[start.pid] = {places_.line_of(start.pid), text::shell_join(words)};
}

/// `sed -i SCRIPT FILE` on a file that exists only on the cluster.
void Tools::note_edited(const ProgramStart& start, const Words& argv) {
  const bool in_place = std::ranges::any_of(
      argv, [](const auto& word) { return word.starts_with("-i") || word.starts_with("--in-place"); });
  const auto path = layer_.resolved(fs::path(start.folder) / argv.back(), true, start.pid);
  if (in_place && path && is_missing(start, argv.back())) notes_.unread(places_.line_of(start.pid), *path);
}

void Tools::runs(const ProgramStart& start, const Words& argv, const std::string& name) {
  static const Options kOfNow{"date", "mktemp", "nproc", "id", "whoami", "uuidgen", "shuf", "uname"};
  const auto line = places_.line_of(start.pid);
  if (name == "xargs") note_xargs(start, argv);
  if (name == "sed") note_edited(start, argv);
  if (name == "tee") note_tee(start, argv);
  const bool finds_own = name == "which" && names_own_program(argv);
  if (kOfNow.contains(name) || finds_own || looks_at_this_machine(argv)) notes_.made_up(line, start, argv);
  if (name.ends_with("awk") && start.file(STDIN_FILENO).starts_with("pipe:"))
    awks_[start.pid] = {line, text::shell_join(argv)};
  const auto out = start.file(STDOUT_FILENO);
  const bool writes = out.starts_with('/') && out != "/dev/null" && !out.starts_with(own_.folder.native());
  notes_.read_by(line, start, argv, writes);
  notes_.contents(line, start, argv, writes);
}

void Tools::ended(pid_t pid, int status) {
  if (const auto one = awks_.find(pid); one != awks_.end()) {
    constexpr int kError = 2;  // of mawk and gawk: the program is wrong
    if (WIFEXITED(status) && WEXITSTATUS(status) == kError) recording_.broken.push_back(one->second);
    awks_.erase(one);
  }
  if (const auto one = xargs_.find(pid); one != xargs_.end()) {
    recording_.idle.push_back(one->second);
    xargs_.erase(one);
  }
  if (const auto one = placing_.find(pid); one != placing_.end()) {
    recording_.commands[one->second].fails = status != 0;
    placing_.erase(one);
  }
}

}  // namespace nlaunch::shell
