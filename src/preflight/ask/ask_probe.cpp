#include "preflight/ask/ask_probe.h"

#include "base/json.h"
#include "base/text.h"
#include "plan/container.h"
#include "sys/command.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

std::optional<std::uint64_t> number(const json& from, const char* key) {
  const auto found = from.find(key);
  return found != from.end() && found->is_number() ? std::optional(found->get<std::uint64_t>())
                                                   : std::nullopt;
}

/// The last line that is an object: whatever wraps the probe may print its own lines.
json answer_in(std::string_view out) {
  const auto lines = text::split(out, '\n');
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (auto said = parse_json(*line); said.is_object()) return said;
  }
  return {};
}

/// `subcommand` names the probe in the error if it prints nothing.
Result<json> ask(const std::string& subcommand, sys::SpawnRequest request, Duration deadline) {
  const auto said = sys::run_command(std::move(request), deadline);
  if (!said) return std::unexpected(said.error());
  // A driver can block a probe that has already printed everything.
  if (auto line = answer_in(said->out); line.is_object()) return line;
  if (said->timed_out) {
    return failure("preflight.probe", "nlaunch-probe {} did not answer within {}", subcommand,
                   seconds_text(deadline));
  }
  return failure("preflight.probe", "nlaunch-probe {} {}: {}", subcommand, said->status.str(),
                 text::printable(text::trim(said->err)));
}

std::vector<std::string> command_of(const std::string& probe, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{probe};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace

Result<json> ask_probe(const std::string& probe, const std::vector<std::string>& arguments,
                       const std::vector<std::string>& env, Duration deadline) {
  sys::SpawnRequest request;
  request.argv = command_of(probe, arguments);
  request.env = env;
  return ask(arguments.front(), std::move(request), deadline);
}

Result<json> ask_probe_of(const plan::BoundProcess& process, const std::string& probe,
                          const std::vector<std::string>& arguments, Duration deadline) {
  auto start = plan::start_of_probe(process, command_of(probe, arguments));
  sys::SpawnRequest request;
  request.argv = std::move(start.argv);
  request.env = std::move(start.env);
  if (!process.wrapper.empty()) request.cwd = process.workdir;
  return ask(arguments.front(), std::move(request), deadline);
}

MachineFacts read_machine_facts(const json& line) {
  MachineFacts facts;
  facts.hostname = line.value("hostname", "");
  facts.arch = line.value("arch", "");
  facts.driver = line.value("driver", "");
  facts.cuda_driver = line.value("cuda_driver", "");
  facts.nvml_error = line.value("nvml_error", "");
  facts.no_driver = line.value("no_driver", false);
  const auto limits = line.value("limits", json::object());
  facts.memlock = number(limits, "memlock");
  facts.nofile = number(limits, "nofile");
  facts.nproc = number(limits, "nproc");
  facts.core = number(limits, "core");
  facts.shm_free = number(limits, "shm_free");
  facts.userfaultfd = limits.value("userfaultfd", "");
  for (const auto& gpu : line.value("gpus", json::array())) {
    facts.gpus.push_back({gpu.value("bus_id", ""), gpu.value("uuid", ""), gpu.value("name", ""),
                          gpu.value("memory_total", std::uint64_t{0}),
                          gpu.value("memory_used", std::uint64_t{0})});
  }
  return facts;
}

MachineFacts ask_machine_facts(const std::string& probe) {
  const auto line = ask_probe(probe, {"facts"}, sys::own_environment());
  if (line) return read_machine_facts(*line);
  MachineFacts facts;
  facts.error = line.error().first_message();
  facts.nvml_error = facts.error;
  return facts;
}

}  // namespace nlaunch::preflight
