#include "shell/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "shell/answers.h"

namespace nlaunch::shell {
namespace {

/// The line of the first text where two texts start to differ, truncated if long.
std::string what_differs(std::string_view one, std::string_view other) {
  const auto [at, unused] = std::ranges::mismatch(one, other);
  const auto index = static_cast<std::size_t>(at - one.begin());
  constexpr std::size_t kLongest = 80;
  constexpr std::size_t kBefore = 40;
  auto begin = one.rfind('\n', index == 0 ? 0 : index - 1);
  begin = begin == std::string_view::npos ? 0 : begin + 1;
  if (index > begin + kBefore) begin = index - kBefore;
  const auto line = one.substr(begin, std::min(one.find('\n', begin), one.size()) - begin);
  return std::string(text::trim(line.substr(0, kLongest)));
}

std::vector<const RecordedCommand*> started_in(const Recording& recording) {
  std::vector<const RecordedCommand*> started;
  for (const auto& command : recording.commands)
    if (command.fate != Fate::answered) started.push_back(&command);
  return started;
}

/// The first difference in words and variables; empty if the two cannot be compared.
std::vector<std::string> texts_of(const RecordedCommand& command) {
  auto texts = command.argv;
  texts.insert(texts.end(), command.environment.begin(), command.environment.end());
  return texts;
}

bool lists_gpus(std::string_view command) {
  constexpr std::array<std::string_view, 3> kOptions{" -L", " --list-gpus", " --query-gpu"};
  return command.starts_with("nvidia-smi") &&
         std::ranges::any_of(kOptions, [&](auto option) { return command.find(option) != command.npos; });
}

}  // namespace

std::vector<Absent> decided_by_machine(const Recording& one, const Recording& again, const Recording& other) {
  const auto here = started_in(one);
  const auto same = started_in(again);
  const auto there = started_in(other);
  if (here.size() != same.size()) return {};  // it differs on every run
  std::vector<Absent> decided;
  for (std::size_t i = 0; i < here.size(); ++i) {
    const auto texts = texts_of(*here[i]);
    const auto repeated = texts_of(*same[i]);
    const bool gone = i >= there.size() || there[i]->line != here[i]->line;
    const auto others = gone ? std::vector<std::string>() : texts_of(*there[i]);
    if (texts.size() != repeated.size()) continue;
    if (texts.size() != others.size()) {
      decided.push_back({here[i]->line, text::shell_join(here[i]->argv)});
      if (gone) return decided;  // later ones have different positions
      continue;
    }
    for (std::size_t word = 0; word < texts.size(); ++word)
      if (texts[word] == repeated[word] && texts[word] != others[word])
        decided.push_back({here[i]->line, what_differs(texts[word], others[word])});
  }
  if (there.size() > here.size())
    decided.push_back({there[here.size()]->line, text::shell_join(there[here.size()]->argv)});
  return decided;
}

Result<void> compare_machines(const RecordRequest& request, Recording& recording) {
  const bool asks = std::ranges::any_of(recording.made_up, [](const Absent& one) {
    return describes_machine(one.name.substr(0, one.name.find(' ')));
  });
  if (!asks || !recording.whole()) return {};
  const auto again = record(request);
  auto elsewhere = request;
  elsewhere.allocation.other_machine = true;
  const auto other = record(elsewhere);
  if (!again || !other) return std::unexpected(again ? other.error() : again.error());
  recording.by_machine = decided_by_machine(recording, *again, *other);
  // The number of GPUs was given, and nothing else in their list is used.
  if (recording.by_machine.empty() && request.allocation.gpus_per_node > 0)
    std::erase_if(recording.made_up, [](const Absent& one) { return lists_gpus(one.name); });
  return {};
}

}  // namespace nlaunch::shell
