#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

constexpr const char* kCheck = "copies";

std::string gpu_name(const json& number) {
  return fmt::format("GPU {}", number.get<int>());
}

/// "361 to 365 GB/s", or one figure where they are one.
std::string range_of(const json& lines, const char* key) {
  std::vector<double> all;
  for (const auto& line : lines) {
    if (line.contains(key)) all.push_back(line.at(key).get<double>());
  }
  if (all.empty()) return "nothing measured";
  const auto [least, most] = std::ranges::minmax(all);
  const auto low = format_rate(least);
  const auto high = format_rate(most);
  return low == high ? low : fmt::format("{} to {}", low, high);
}

Row damaged(const std::string& subject, const json& line, std::uint64_t bytes) {
  return failed(
      kCheck, subject,
      fmt::format("{} of {} elements arrived as others", line.at("wrong").get<std::uint64_t>(),
                  bytes / sizeof(std::uint32_t)),
      "every byte as it was sent",
      {"data is damaged on the way: do not train on these GPUs; report the node", Responsible::admin});
}

/// What went wrong with some of the lines, each by itself. True when nothing did.
bool judge_each(const json& lines, std::uint64_t bytes, std::string (*subject)(const json&),
                std::vector<Row>& rows) {
  bool well = true;
  for (const auto& line : lines) {
    const auto error = line.value("error", "");
    if (!error.empty()) rows.push_back(unknown(kCheck, subject(line), error));
    const bool wrong = error.empty() && line.at("wrong").get<std::uint64_t>() > 0;
    if (wrong) rows.push_back(damaged(subject(line), line, bytes));
    well = well && error.empty() && !wrong;
  }
  return well;
}

std::string pair_name(const json& pair) {
  return fmt::format("{} to {}", gpu_name(pair.at("from")), gpu_name(pair.at("to")));
}

std::string host_name(const json& gpu) {
  return fmt::format("{} to the host and back", gpu_name(gpu.at("gpu")));
}

void judge_pairs(const NodeObservations& observations, const json& said, std::vector<Row>& rows) {
  const auto& pairs = said.at("pairs");
  if (pairs.empty()) return;
  std::vector<std::string> apart;
  for (const auto& pair : pairs) {
    if (!pair.contains("error") && !pair.at("peer").get<bool>()) apart.push_back(pair_name(pair));
  }
  const bool well = judge_each(pairs, said.at("bytes"), pair_name, rows);
  const auto& expected = observations.plan.expected.intra_node;
  if (!apart.empty() && expected == "P2P") {
    rows.push_back(failed(kCheck, "GPU to GPU", "no peer access: " + text::join(apart, ", "),
                          "P2P within a node, as the profile says",
                          {"nvidia-smi topo -p2p r says why: a container without peer access, PCIe ACS or an "
                           "IOMMU does this",
                           Responsible::admin}));
  } else if (well) {
    rows.push_back(passed(kCheck, "GPU to GPU",
                          fmt::format("{} ways, {} with peer access: {}, every element right", pairs.size(),
                                      pairs.size() - apart.size(), range_of(pairs, "bandwidth")),
                          expected));
  }
}

}  // namespace

std::vector<Row> check_copies(const NodeObservations& observations) {
  const auto* answer = observations.answer(kCheck);
  if (answer == nullptr) return {};
  if (!answer->error.empty()) return {unknown(kCheck, "GPUs", answer->error)};
  const auto& said = answer->said;
  if (said.contains("error")) return {unknown(kCheck, "GPUs", said.at("error"))};
  std::vector<Row> rows;
  judge_pairs(observations, said, rows);
  if (judge_each(said.at("gpus"), said.at("host_bytes"), host_name, rows)) {
    rows.push_back(passed(kCheck, "GPU to host",
                          fmt::format("{} GPUs: to the GPU {}, from it {}, every element right",
                                      said.at("gpus").size(), range_of(said.at("gpus"), "host_to_device"),
                                      range_of(said.at("gpus"), "device_to_host"))));
  }
  return rows;
}

std::vector<Figure> copy_figures(const NodeObservations& observations) {
  std::vector<Figure> out;
  const auto* answer = observations.answer(kCheck);
  if (answer == nullptr || !answer->said.contains("gpus")) return out;
  for (const auto& gpu : answer->said.at("gpus")) {
    for (const auto* what : {"host_to_device", "device_to_host"}) {
      if (gpu.contains(what)) out.push_back({what, "", gpu_name(gpu.at("gpu")), "", gpu.at(what), "B/s"});
    }
  }
  for (const auto& pair : answer->said.at("pairs")) {
    if (!pair.contains("bandwidth")) continue;
    out.push_back(
        {"p2p", "", gpu_name(pair.at("from")), gpu_name(pair.at("to")), pair.at("bandwidth"), "B/s"});
  }
  return out;
}

}  // namespace nlaunch::preflight
