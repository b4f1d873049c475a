#include <fmt/format.h>

#include <algorithm>

#include "base/registry.h"
#include "base/text.h"
#include "preflight/ask/inquiries.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

constexpr const char* kCopies = "copies";

std::string numbered_gpu(const json& number) {
  return fmt::format("GPU {}", number.get<int>());
}

/// "361 to 365 GB/s", or a single figure if they are equal.
std::string range_of_speeds(const json& lines, const char* key) {
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

Row damaged_copy(const std::string& subject, const json& line, std::uint64_t bytes) {
  return failed(
      kCopies, subject,
      fmt::format("{} of {} elements arrived corrupted", line.at("wrong").get<std::uint64_t>(),
                  bytes / sizeof(std::uint32_t)),
      "every byte as sent",
      {"data is corrupted in transit: do not train on these GPUs; report the node", Responsible::admin});
}

/// The problems of each line, separately. True if there are none.
bool judge_each(const json& lines, std::uint64_t bytes, std::string (*subject)(const json&),
                std::vector<Row>& rows) {
  bool well = true;
  for (const auto& line : lines) {
    const auto error = line.value("error", "");
    if (!error.empty()) rows.push_back(unknown(kCopies, subject(line), error));
    const bool wrong = error.empty() && line.at("wrong").get<std::uint64_t>() > 0;
    if (wrong) rows.push_back(damaged_copy(subject(line), line, bytes));
    well = well && error.empty() && !wrong;
  }
  return well;
}

std::string copy_pair(const json& pair) {
  return fmt::format("{} to {}", numbered_gpu(pair.at("from")), numbered_gpu(pair.at("to")));
}

std::string copy_with_host(const json& gpu) {
  return fmt::format("{} to the host and back", numbered_gpu(gpu.at("gpu")));
}

void judge_copy_pairs(const NodeObservations& observations, const json& said, std::vector<Row>& rows) {
  const auto& pairs = said.at("pairs");
  if (pairs.empty()) return;
  std::vector<std::string> apart;
  for (const auto& pair : pairs) {
    if (!pair.contains("error") && !pair.at("peer").get<bool>()) apart.push_back(copy_pair(pair));
  }
  const bool well = judge_each(pairs, said.at("bytes"), copy_pair, rows);
  const auto& expected = observations.plan.expected.intra_node;
  if (!apart.empty() && expected == "P2P") {
    rows.push_back(failed(kCopies, "GPU to GPU", "no peer access: " + text::join(apart, ", "),
                          "P2P within a node, as set in the profile",
                          {"nvidia-smi topo -p2p r shows why: a container without peer access, PCIe ACS or "
                           "an IOMMU causes this",
                           Responsible::admin}));
  } else if (well) {
    rows.push_back(passed(kCopies, "GPU to GPU",
                          fmt::format("{} paths, {} with peer access: {}, all elements correct", pairs.size(),
                                      pairs.size() - apart.size(), range_of_speeds(pairs, "bandwidth")),
                          expected));
  }
}

std::vector<Row> check_copies(const NodeObservations& observations) {
  const auto* answer = observations.answer(kCopies);
  if (answer == nullptr) return {};
  if (!answer->error.empty()) return {unknown(kCopies, "GPUs", answer->error)};
  const auto& said = answer->said;
  if (said.contains("error")) return {unknown(kCopies, "GPUs", said.at("error"))};
  std::vector<Row> rows;
  judge_copy_pairs(observations, said, rows);
  if (judge_each(said.at("gpus"), said.at("host_bytes"), copy_with_host, rows)) {
    rows.push_back(
        passed(kCopies, "GPU to host",
               fmt::format("{} GPUs: host to GPU {}, GPU to host {}, all elements correct",
                           said.at("gpus").size(), range_of_speeds(said.at("gpus"), "host_to_device"),
                           range_of_speeds(said.at("gpus"), "device_to_host"))));
  }
  return rows;
}

std::vector<Figure> copy_figures(const NodeObservations& observations) {
  std::vector<Figure> out;
  const auto* answer = observations.answer(kCopies);
  if (answer == nullptr || !answer->said.contains("gpus")) return out;
  for (const auto& gpu : answer->said.at("gpus")) {
    for (const auto* what : {"host_to_device", "device_to_host"}) {
      if (gpu.contains(what)) out.push_back({what, "", numbered_gpu(gpu.at("gpu")), "", gpu.at(what), "B/s"});
    }
  }
  for (const auto& pair : answer->said.at("pairs")) {
    if (!pair.contains("bandwidth")) continue;
    out.push_back(
        {"p2p", "", numbered_gpu(pair.at("from")), numbered_gpu(pair.at("to")), pair.at("bandwidth"), "B/s"});
  }
  return out;
}

const Registered<NodeCheck> copies_check{{
    .order = 190,
    .name = kCopies,
    .what = "copies between GPUs and with the host arrive intact, and how fast they are (deep)",
    .judge = check_copies,
    .figures = copy_figures,
}};

const Registered<Inquiry> copies_inquiry{{
    .order = 10,
    .name = kCopies,
    .level = PreflightLevel::deep,
    .deadline = std::chrono::minutes(1),
    .when = Inquiry::When::alone,
    .arguments = devices_of_plan,
    .applies = has_gpus,
}};

}  // namespace
}  // namespace nlaunch::preflight
