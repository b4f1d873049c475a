#include "preflight/ask/events.h"

#include "base/json.h"

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
    identity.domain = gpu.value("domain", "");
    identity.free_bytes = gpu.value("free_bytes", std::uint64_t{0});
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
  result.rank = line.value("rank", -1);
  result.fault = line.value("fault", "");
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

void read_workload(const json& line, Progress& progress) {
  progress.workloads.push_back({line.at("workload"), line.at("wrong"), line.at("seconds")});
}

void read_choice(const json& line, Progress& progress) {
  const auto op = value_of<Collective>(line.at("op").get<std::string>()).value_or(Collective::all_reduce);
  progress.choices.push_back(
      {op, line.at("bytes"), line.at("algorithm"), line.at("protocol"), line.at("channels")});
}

void read_drill(const json& line, Progress& progress) {
  using End = DrillSeen::End;
  static const std::map<std::string, End> kEnds{{"completed", End::completed},
                                                {"waiting", End::waiting},
                                                {"blocked", End::blocked},
                                                {"failed", End::failed}};
  const auto end = kEnds.find(line.at("ended").get<std::string>());
  progress.drill = DrillSeen{end == kEnds.end() ? End::failed : end->second, line.at("launched"),
                             line.at("text"), line.at("wrong"), line.at("seconds")};
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
  if (event == "workload") read_workload(line, progress);
  if (event == "choice") read_choice(line, progress);
  if (event == "drill") read_drill(line, progress);
  if (event == "transport") read_transport(line, progress);
}

}  // namespace

bool read_event(std::string_view text, RankReport& report) {
  return read_event(parse_json(text), report);
}

bool read_event(const json& line, RankReport& report) {
  try {
    read(line, report);
    return true;
  } catch (const json::exception&) {
    return false;
  }
}

}  // namespace nlaunch::preflight
