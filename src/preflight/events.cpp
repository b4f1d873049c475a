#include "preflight/events.h"

#include <nlohmann/json.hpp>

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

void read_identity(const json& line, RankReport& report) {
  Identity identity;
  identity.host_id = line.value("host_id", "");
  identity.host_id_source = line.value("host_id_source", "");
  identity.visible_devices = line.value("visible_devices", "");
  const auto& gpu = line.at("gpu");
  if (!gpu.is_null()) {
    identity.device = gpu.value("device", -1);
    identity.bus_id = gpu.value("bus_id", "");
    identity.uuid = gpu.value("uuid", "");
    identity.nvml_uuid = gpu.value("nvml_uuid", "");
  }
  report.identity = std::move(identity);
}

void read_result(const json& line, Progress& progress) {
  SizeResult result;
  result.bytes = line.at("bytes").get<std::uint64_t>();
  result.elements = line.at("elements").get<std::uint64_t>();
  result.wrong = line.at("wrong").get<std::uint64_t>();
  result.first_wrong = line.value("first_wrong", std::uint64_t{0});
  result.expected = line.value("expected", 0U);
  result.found = line.value("found", 0U);
  result.missing = line.value("missing", -1);
  result.seconds = line.at("seconds").get<double>();
  result.busbw = line.at("busbw").get<double>();
  progress.results.push_back(result);
}

void read_transport(const json& line, Progress& progress) {
  progress.transport_error = line.value("error", "");
  progress.network = line.value("network", "");
  for (const auto& pair : line.value("pairs", json::array())) {
    progress.pairs.push_back({pair.at("from").get<std::size_t>(), pair.at("to").get<std::size_t>(),
                              pair.at("via").get<std::string>()});
  }
}

void read(const json& line, RankReport& report) {
  const auto event = line.at("event").get<std::string>();
  if (event == "identity") return read_identity(line, report);
  if (event == "done") {
    report.done = true;
    return;
  }
  const auto group = line.at("group").get<std::string>();
  if (event == "error") {
    report.errors.push_back({line.at("phase").get<std::string>(), group, line.at("kind").get<std::string>(),
                             line.at("text").get<std::string>()});
    return;
  }
  auto& progress = report.groups[group];
  if (event == "joining") progress.joining = true;
  if (event == "joined") progress.joined = true;
  if (event == "result") read_result(line, progress);
  if (event == "transport") read_transport(line, progress);
}

}  // namespace

bool read_event(std::string_view text, RankReport& report) {
  try {
    read(json::parse(text), report);
    return true;
  } catch (const json::exception&) {
    return false;
  }
}

}  // namespace nlaunch::preflight
