#include <fmt/format.h>

#include <algorithm>

#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

constexpr const char* kCheck = "gemm";

std::string gpu_name(const json& gpu) {
  return fmt::format("GPU {}", gpu.at("gpu").get<int>());
}

std::string subject_of(const json& gpu) {
  return fmt::format("{} ({})", gpu_name(gpu), gpu.at("bus_id").get<std::string>());
}

/// The GPUs in the probe's answer; nothing where there is none.
const json& gpus_in(const NodeObservations& observations) {
  static const json kNone = json::array();
  const auto* answer = observations.answer(kCheck);
  const bool there = answer != nullptr && answer->said.is_object() && answer->said.contains("gpus");
  return there ? answer->said.at("gpus") : kNone;
}

Remedy do_not_train() {
  return {"silent data corruption is suspected: do not train on this GPU, and report the node",
          Responsible::admin};
}

/// What is wrong with one GPU, or nothing.
std::optional<Row> judge(const json& gpu) {
  const auto subject = subject_of(gpu);
  if (gpu.contains("error")) return unknown(kCheck, subject, gpu.at("error"));
  if (gpu.contains("unavailable")) return skipped(kCheck, subject, gpu.at("unavailable"));
  if (const auto differing = gpu.at("differing").get<std::uint64_t>(); differing > 0) {
    return failed(
        kCheck, subject,
        fmt::format("{} of {} products of the same numbers differ from the first; the first of them "
                    "is number {}",
                    differing, gpu.at("repetitions").get<std::uint64_t>(),
                    gpu.at("first_differing").get<std::uint64_t>()),
        "the same bits every time", do_not_train());
  }
  if (const auto wrong = gpu.at("wrong_samples").get<unsigned>(); wrong > 0) {
    return failed(
        kCheck, subject,
        fmt::format("{} of 8 elements of a matrix product are not the sum that they should be", wrong),
        "right sums", do_not_train());
  }
  return std::nullopt;
}

std::string teraflops(double flops) {
  constexpr double kTera = 1e12;
  return fmt::format("{:.0f}", flops / kTera);
}

Row sum_up(const std::vector<json>& well) {
  std::uint64_t products = 0;
  std::vector<double> rates;
  for (const auto& gpu : well) {
    products += gpu.at("repetitions").get<std::uint64_t>();
    rates.push_back(gpu.at("flops"));
  }
  const auto [least, most] = std::ranges::minmax(rates);
  const auto low = teraflops(least);
  const auto high = teraflops(most);
  return passed(kCheck, "bf16 matrix products",
                fmt::format("{} GPUs at once, {} products, each GPU's with the same bits: {} TFLOP/s",
                            well.size(), products, low == high ? low : low + " to " + high));
}

}  // namespace

std::vector<Row> check_gemm(const NodeObservations& observations) {
  const auto* answer = observations.answer(kCheck);
  if (answer == nullptr) return {};
  if (!answer->error.empty()) return {unknown(kCheck, "GPUs", answer->error)};
  if (answer->said.contains("error")) return {unknown(kCheck, "GPUs", answer->said.at("error"))};
  std::vector<Row> rows;
  std::vector<json> well;
  for (const auto& gpu : gpus_in(observations)) {
    if (auto row = judge(gpu)) {
      rows.push_back(std::move(*row));
    } else {
      well.push_back(gpu);
    }
  }
  if (!well.empty()) rows.push_back(sum_up(well));
  return rows;
}

std::vector<Figure> gemm_figures(const NodeObservations& observations) {
  std::vector<Figure> out;
  for (const auto& gpu : gpus_in(observations)) {
    if (gpu.contains("flops")) out.push_back({kCheck, "", gpu_name(gpu), "", gpu.at("flops"), "FLOP/s"});
  }
  return out;
}

std::vector<Fingerprint> gemm_fingerprints(const NodeObservations& observations) {
  std::vector<Fingerprint> out;
  for (const auto& gpu : gpus_in(observations)) {
    if (gpu.contains("hash")) out.push_back({0, gpu_name(gpu), gpu.at("name"), gpu.at("hash")});
  }
  return out;
}

}  // namespace nlaunch::preflight
