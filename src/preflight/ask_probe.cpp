#include "preflight/ask_probe.h"

#include "base/text.h"
#include "sys/command.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

std::optional<std::uint64_t> number(const json& from, const char* key) {
  const auto found = from.find(key);
  return found != from.end() && found->is_number() ? std::optional(found->get<std::uint64_t>())
                                                   : std::nullopt;
}

}  // namespace

Result<json> ask_probe(const std::string& probe, const std::vector<std::string>& arguments,
                       const std::vector<std::string>& env, Duration deadline) {
  sys::SpawnRequest request;
  request.argv = {probe};
  request.argv.insert(request.argv.end(), arguments.begin(), arguments.end());
  request.env = env;
  const auto said = sys::run_command(request, deadline);
  if (!said) return std::unexpected(said.error());
  // A driver can hold a probe that has said all it knows.
  auto line = json::parse(said->out, nullptr, false);
  if (line.is_object()) return line;
  if (said->timed_out) {
    return failure("preflight.probe", "nlaunch-probe {} did not answer within {}", arguments.front(),
                   seconds_text(deadline));
  }
  return failure("preflight.probe", "nlaunch-probe {} {}: {}", arguments.front(), said->status.str(),
                 text::printable(text::trim(said->err)));
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
  facts.error = line.error().items().front().message;
  facts.nvml_error = facts.error;
  return facts;
}

}  // namespace nlaunch::preflight
