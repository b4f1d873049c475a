#include "plan/metrics.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/interpolation.h"
#include "plan/vllm.h"

namespace nlaunch::plan {
namespace {

/// "http" of "${self.ports.http}"; empty for any other text.
std::string_view port_name(std::string_view reference) {
  constexpr std::string_view kBegin = "${self.ports.";
  if (!reference.starts_with(kBegin) || !reference.ends_with('}')) return "";
  return reference.substr(kBegin.size(), reference.size() - kBegin.size() - 1);
}

/// Of "http://${self.host}:${self.ports.http}/metrics".
std::string_view port_of_url(std::string_view url) {
  constexpr std::string_view kPath = "/metrics";
  const auto reference = url.find("${self.ports.");
  if (reference == std::string_view::npos || !url.ends_with(kPath)) return "";
  return port_name(url.substr(reference, url.size() - kPath.size() - reference));
}

/// Servers whose API port has /metrics: vLLM's (docs.vllm.ai, usage/metrics) always, but not the one of TRL;
/// SGLang's (docs.sglang.io, references/production_metrics) with --enable-metrics.
bool serves_metrics(const config::Role& role) {
  const auto has = [&](std::string_view word) {
    return std::ranges::find(role.command, word, &config::Text::value) != role.command.end();
  };
  if (has("sglang.launch_server")) return has("--enable-metrics");
  return runs_vllm(role) && (has("serve") || has("vllm.entrypoints.openai.api_server"));
}

/// The reference after `--port`, as a word of its own or after "=".
std::string_view port_of_command(const std::vector<config::Text>& command) {
  constexpr std::string_view kOption = "--port";
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string_view word = command[i].value;
    if (word == kOption && i + 1 < command.size()) return port_name(command[i + 1].value);
    if (word.starts_with("--port=")) return port_name(word.substr(kOption.size() + 1));
  }
  return "";
}

}  // namespace

std::string unknown_in_metrics_file(const std::string& file) {
  for (const auto& reference : references(file)) {
    const auto& name = reference.name;
    if (name != "run.id" && name != "run.name" && name != "run.dir")
      return file.substr(reference.offset, reference.length);
  }
  return "";
}

std::filesystem::path metrics_file_of(const Plan& plan, const std::filesystem::path& run_folder) {
  const auto value = [&](std::string_view name) -> Lookup {
    if (name == "run.id") return run_folder.filename().string();
    if (name == "run.name") return plan.name;
    if (name == "run.dir") return run_folder.string();
    return Unknown{};
  };
  const auto& file = plan.metrics->file;
  return expand(file, value, Pass::last).value_or(file);
}

std::string metrics_port(const config::Role& role) {
  if (role.metrics) return role.metrics->value;
  std::string_view port;
  if (role.throughput)
    port = role.throughput->server    ? "http"
           : role.throughput->metrics ? port_of_url(role.throughput->metrics->value)
                                      : "";
  if (port.empty() && serves_metrics(role)) port = port_of_command(role.command);
  if (port.empty() && role.ready && role.ready->server && role.ready->server->value == ReadyServer::vllm)
    port = "http";
  const bool known = std::ranges::find(role.ports, port, &config::Text::value) != role.ports.end();
  return std::string(known ? port : "");
}

}  // namespace nlaunch::plan
