#include "import/requeue.h"

#include "import/wrappers.h"

namespace nlaunch::import {

void read_resubmission(const lint::Command& command, std::uint32_t line, const std::string& script,
                       const NumberIn& number, Doings& doings) {
  bool itself = false;
  for (const auto& word : command.words) {
    const auto written = doings.values.inner_script(word);
    itself = itself || written.find("${0}") != std::string::npos ||
             written.find("BASH_SOURCE") != std::string::npos || base_name(written) == base_name(script);
  }
  if (!itself) return remark(doings, Destination::walltime, line, std::string(kThatLine));
  doings.resubmits = line;
  doings.most_resubmits = bound_before(doings.lines, line, number);
}

void read_trap(const Launch& launch, const std::string& script, const NumberIn& number, Doings& doings) {
  if (launch.words.size() < 2) return;
  const auto* word = launch.words[1].word;
  const auto commands =
      script_of(word == nullptr ? launch.words[1].known() : doings.values.inner_script(*word));
  for (const auto& command : commands.commands) {
    const auto name = command.name();
    const auto second = command.words.size() > 1 ? command.words[1].constant().value_or("") : "";
    if (name == "scontrol" && second == "requeue") doings.requeues = true;
    if (name == "sbatch") read_resubmission(command, launch.line, script, number, doings);
  }
}

}  // namespace nlaunch::import
