#include "evidence/readers/gpu_use.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json.h"
#include "base/text.h"

namespace nlaunch::evidence {
namespace {

using nlohmann::json;

constexpr std::size_t kNow = 3;  ///< samples

struct Samples {
  std::vector<double> busy;
  std::vector<double> power;
  double limit = 0;
};

/// The value below which this share of them lies; 0 for none.
double share(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

std::vector<double> last_of(const std::vector<double>& values) {
  return {values.end() - static_cast<std::ptrdiff_t>(std::min(kNow, values.size())), values.end()};
}

void take(const json& line, std::map<std::string, Samples>& samples) {
  if (!line.is_object() || !line.contains("gpus")) return;
  for (const auto& gpu : line.at("gpus")) {
    auto& of = samples[gpu.at("bus_id").get<std::string>()];
    if (gpu.contains("busy")) of.busy.push_back(gpu.at("busy").get<double>());
    if (gpu.contains("power")) of.power.push_back(gpu.at("power").get<double>());
    of.limit = gpu.value("power_limit", of.limit);
  }
}

}  // namespace

bool GpuUse::idle() const {
  constexpr double kAtMost = 5;
  return busy_now <= kAtMost;
}

bool GpuUse::draws_less() const {
  constexpr double kOfWorking = 0.6;
  return power_now < kOfWorking * working;
}

bool GpuUse::spins() const {
  constexpr double kAtLeast = 95;
  constexpr double kOfLimit = 0.4;
  return busy_now >= kAtLeast && power_now > 0 && (draws_less() || power_now < kOfLimit * limit);
}

std::map<std::string, GpuUse> read_gpu_use(std::string_view lines) {
  std::map<std::string, Samples> samples;
  for (const auto& line : text::split(lines, '\n')) {
    try {
      take(parse_json(line), samples);
    } catch (const json::exception&) {
      continue;
    }
  }
  std::map<std::string, GpuUse> uses;
  for (const auto& [bus_id, of] : samples) {
    if (of.busy.empty()) continue;
    uses[bus_id] = {.busy_now = share(last_of(of.busy), 0.5),
                    .busy = share(of.busy, 0.5),
                    .power_now = share(last_of(of.power), 0.5),
                    .power = share(of.power, 0.5),
                    .working = share(of.power, 0.9),
                    .limit = of.limit};
  }
  return uses;
}

}  // namespace nlaunch::evidence
