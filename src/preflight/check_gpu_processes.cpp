#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "preflight/checks.h"
#include "preflight/gpu_state.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;
constexpr auto kCheck = "gpu-processes";

/// Below this a GPU counts as idle: a driver may keep 2 % of the memory for itself, a desktop some more.
std::uint64_t small(const json& memory) {
  constexpr std::uint64_t kDriverShare = 50;
  constexpr std::uint64_t kAlways = 1U << 30U;
  return std::max(kAlways, memory.value("total", std::uint64_t{0}) / kDriverShare);
}

/// Nothing of use fits beside what is there.
bool is_full(const json& memory) {
  constexpr std::uint64_t kTenth = 10;
  const auto total = memory.value("total", std::uint64_t{0});
  return total > 0 && memory.value("used", std::uint64_t{0}) > total - total / kTenth;
}

/// A display's share is no hindrance.
bool matters(const json& process, std::uint64_t limit) {
  return process.value("kind", "") != "graphics" || process.value("memory", std::uint64_t{0}) > limit;
}

/// "pid 4711 (python train.py, bob, 38.0 GiB)"
std::string describe(const json& process) {
  constexpr std::size_t kLongest = 60;
  auto command = process.value("command", "not visible here");
  if (command.size() > kLongest) command.replace(kLongest, std::string::npos, "...");
  std::string out = fmt::format("pid {} ({}", process.value("pid", 0), text::printable(command));
  if (process.contains("user")) out += ", " + process["user"].get<std::string>();
  if (process.contains("memory")) out += ", " + size_text(process["memory"].get<std::uint64_t>());
  return out + ")";
}

Remedy remedy(const std::vector<json>& holders) {
  std::string own;
  std::set<std::string> others;
  bool hidden = false;
  for (const auto& holder : holders) {
    if (!holder.contains("user")) {
      hidden = true;
    } else if (holder.value("mine", false)) {
      own += fmt::format(" {}", holder.value("pid", 0));
    } else {
      others.insert(holder["user"].get<std::string>());
    }
  }
  if (!own.empty()) return {"end what is yours: kill" + own};
  if (!others.empty()) {
    const std::vector<std::string> names(others.begin(), others.end());
    return {fmt::format("ask {}, or take another node", text::join(names, ", ")), Responsible::admin};
  }
  return {hidden ? "look on the host itself: it is outside of this container, or hidden from you" : "",
          Responsible::admin};
}

/// "held by pid 4711 (...), pid 4712 (...) and 3 more"
std::string list(const std::vector<json>& holders) {
  constexpr std::size_t kShown = 4;
  std::string out = "held by ";
  for (std::size_t i = 0; i < std::min(holders.size(), kShown); ++i)
    out += fmt::format("{}{}", i == 0 ? "" : ", ", describe(holders[i]));
  if (holders.size() > kShown) out += fmt::format(" and {} more", holders.size() - kShown);
  return out;
}

void judge(const GpuState& gpu, std::vector<Row>& rows) {
  const auto memory = gpu.said.value("memory", json::object());
  const auto limit = small(memory);
  const auto status = is_full(memory) ? Status::fail : Status::warn;
  std::vector<json> holders;
  std::uint64_t known = 0;
  bool all_known = true;
  for (const auto& process : gpu.said.value("processes", json::array())) {
    known += process.value("memory", std::uint64_t{0});
    all_known &= process.contains("memory");
    if (matters(process, limit)) holders.push_back(process);
  }
  if (!holders.empty()) {
    rows.push_back(warned(kCheck, gpu.name, list(holders), "an idle GPU", remedy(holders)));
    rows.back().status = status;
  }
  const auto used = memory.value("used", std::uint64_t{0});
  if (!all_known || used <= known || used - known <= limit) return;
  rows.push_back(
      warned(kCheck, gpu.name,
             fmt::format("{} of {} are in use, by no process that NVML shows", size_text(used - known),
                         size_text(memory.value("total", std::uint64_t{0}))),
             "an idle GPU",
             {"it may be a process of another container, or one that ends and cannot (state D in "
              "ps): look on the host; if there is none, reset the GPU",
              Responsible::admin}));
  rows.back().status = status;
}

}  // namespace

std::vector<Row> check_gpu_processes(const NodeObservations& observations) {
  const auto gpus = gpu_states(observations);
  return judge_gpus(gpus, judge,
                    passed(kCheck, text::count(gpus.size(), "GPU"), "nobody uses them", "idle GPUs"));
}

}  // namespace nlaunch::preflight
