#include "shell/traps.h"

#include <algorithm>
#include <array>
#include <utility>

namespace nlaunch::shell {

bool Trap::names(std::string_view signal) const {
  return std::ranges::find(signals, signal) != signals.end();
}

bool Trap::catches(std::string_view signal) const {
  return handler && !handler->empty() && names(signal);
}

std::string signal_name(std::string_view signal) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNumbers{{{"0", "EXIT"},
                                                                                   {"1", "HUP"},
                                                                                   {"2", "INT"},
                                                                                   {"3", "QUIT"},
                                                                                   {"10", "USR1"},
                                                                                   {"12", "USR2"},
                                                                                   {"15", "TERM"}}};
  for (const auto& [number, name] : kNumbers)
    if (signal == number) return std::string(name);
  std::string name(signal);
  for (auto& c : name)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return name.starts_with("SIG") ? name.substr(3) : name;
}

std::optional<Trap> trap_of(const Words& words) {
  if (words.empty() || words[0] != "trap") return std::nullopt;
  std::size_t first = 1;
  if (words.size() > 1 && words[1] == "--") {
    ++first;
  } else if (words.size() > 1 && words[1].size() > 1 && words[1].starts_with('-')) {
    return std::nullopt;  // -p, -l
  }
  if (first >= words.size()) return std::nullopt;
  const auto& word = words[first];
  // `trap 2 15` and `trap TERM` reset signals (POSIX; bash(1), trap).
  const bool number = !word.empty() && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
  const bool only_signals = number || first + 1 == words.size();
  Trap trap;
  if (!only_signals && word != "-") trap.handler = word;
  for (auto at = only_signals ? first : first + 1; at < words.size(); ++at)
    trap.signals.push_back(signal_name(words[at]));
  return trap;
}

bool sets_trap(const Words& words, std::string_view signal) {
  const auto trap = trap_of(words);
  return trap && trap->catches(signal);
}

}  // namespace nlaunch::shell
