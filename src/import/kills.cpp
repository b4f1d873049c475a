#include "import/kills.h"

#include <re2/re2.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace nlaunch::import {

std::vector<UnknownKill> unknown_kills(const shell::Recording& recording) {
  static const RE2 kPid(R"(-?\d+)");
  std::vector<UnknownKill> kills;
  for (const auto& one : recording.traced) {
    const auto words = shell::words_of(one.text);
    if (words.empty() || words[0] != "kill" || shell::has(words, "-0") || shell::has(words, "-l")) continue;
    const auto is_process = [](const std::string& word) { return RE2::FullMatch(word, kPid); };
    const auto first = words.size() > 1 && words[1].starts_with('-') ? 2 : 1;
    const auto of_option = first == 2 && (words[1] == "-s" || words[1] == "-n") ? 1 : 0;
    if (std::none_of(words.begin() + std::min<std::ptrdiff_t>(first + of_option, std::ssize(words)),
                     words.end(), is_process))
      kills.push_back({one.text, one.script, one.line});
  }
  for (std::size_t i = 0; i < recording.commands.size(); ++i) {
    const auto& one = recording.commands[i];
    const auto name = shell::program_name(one.argv[0]);
    const bool ray = name == "ray" && one.argv.size() > 1 && one.argv[1] == "stop";
    if (ray || (shell::kills(one.argv) && !shell::kills_by_name(one.argv)))
      kills.push_back({text::shell_join(one.argv), one.script, one.line, i});
  }
  return kills;
}

bool stops_others_behind(const shell::Recording& recording, const Part& part) {
  const auto last = std::find_if(recording.traced.rbegin(), recording.traced.rend(), [&](const auto& one) {
                      return one.script == part.script && one.line == part.line;
                    }).base();
  const auto kills = unknown_kills(recording);
  const bool by_kill = std::ranges::any_of(kills, [&](const UnknownKill& kill) {
    return kill.command ? *kill.command > part.commands.back()
                        : std::any_of(last, recording.traced.end(), [&](const auto& one) {
                            return one.script == kill.file && one.line == kill.line;
                          });
  });
  for (auto i = part.commands.back() + 1; i < recording.commands.size(); ++i)
    if (shell::kills_by_name(recording.commands[i].argv)) return true;
  return by_kill;
}

}  // namespace nlaunch::import
