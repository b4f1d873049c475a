#include "launch/job/slurm_node.h"

#include <algorithm>

#include "base/text.h"
#include "launch/machine.h"
#include "sys/command.h"
#include "sys/spawn.h"

namespace nlaunch::launch {
namespace {

Result<std::string> scontrol(std::vector<std::string> words, const std::vector<std::string>& environment,
                             Duration patience) {
  sys::SpawnRequest request;
  request.argv = {"scontrol"};
  request.argv.insert(request.argv.end(), words.begin(), words.end());
  request.env = environment;
  const auto said = sys::run_command(std::move(request), patience);
  if (!said) return std::unexpected(said.error());
  if (said->timed_out)
    return failure("launch.scontrol", "scontrol did not answer within {}", format_duration(patience));
  if (said->status.ok()) return said->out;
  const auto words_of_it = said->err.empty() ? said->out : said->err;
  return failure("launch.scontrol", "scontrol {}: {}", said->status.str(),
                 text::printable(text::trim(words_of_it)));
}

}  // namespace

std::string slurm_node_name(const std::vector<std::string>& environment) {
  const auto name = sys::env_value(environment, "SLURMD_NODENAME");
  if (!name.empty()) return std::string(name);
  const auto host = this_host().host;
  return host.substr(0, host.find('.'));
}

bool is_drained(std::string_view line) {
  constexpr std::string_view kState = " State=";
  const auto at = line.find(kState);
  if (at == std::string_view::npos) return false;
  const auto begin = at + kState.size();
  const auto states = text::split(line.substr(begin, line.find_first_of(" \n", begin) - begin), '+');
  return std::ranges::find(states, "DRAIN") != states.end();
}

Result<bool> drain_node(const std::string& node, const std::string& reason,
                        const std::vector<std::string>& environment, Duration patience) {
  const auto shown = scontrol({"-o", "show", "node", node}, environment, patience / 2);
  if (!shown) return std::unexpected(shown.error());
  if (is_drained(*shown)) return false;
  const auto done =
      scontrol({"update", "NodeName=" + node, "State=DRAIN", "Reason=" + reason}, environment, patience / 2);
  if (!done) return std::unexpected(done.error());
  return true;
}

}  // namespace nlaunch::launch
