#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/registry.h"
#include "base/text.h"
#include "preflight/ask/inquiries.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

constexpr const char* kGemm = "gemm";

std::string gemm_gpu(const json& gpu) {
  return fmt::format("GPU {}", gpu.at("gpu").get<int>());
}

std::string gemm_subject(const json& gpu) {
  return fmt::format("{} ({})", gemm_gpu(gpu), gpu.at("bus_id").get<std::string>());
}

/// The GPUs in the probe's answer; nothing if there is none.
const json& gemm_gpus(const NodeObservations& observations) {
  static const json kNone = json::array();
  const auto* answer = observations.answer(kGemm);
  const bool there = answer != nullptr && answer->said.is_object() && answer->said.contains("gpus");
  return there ? answer->said.at("gpus") : kNone;
}

Remedy do_not_train() {
  return {"silent data corruption is suspected: do not train on this GPU; report the node",
          Responsible::admin};
}

/// The problem of one GPU, or nothing.
std::optional<Row> judge_gemm(const json& gpu) {
  const auto subject = gemm_subject(gpu);
  if (gpu.contains("error")) return unknown(kGemm, subject, gpu.at("error"));
  if (gpu.contains("unavailable")) return skipped(kGemm, subject, gpu.at("unavailable"));
  if (const auto differing = gpu.at("differing").get<std::uint64_t>(); differing > 0) {
    return failed(kGemm, subject,
                  fmt::format("{} of {} products of the same matrices differ from the first; the first "
                              "different one is number {}",
                              differing, gpu.at("repetitions").get<std::uint64_t>(),
                              gpu.at("first_differing").get<std::uint64_t>()),
                  "the same bits every time", do_not_train());
  }
  if (const auto wrong = gpu.at("wrong_samples").get<unsigned>(); wrong > 0) {
    return failed(kGemm, subject, fmt::format("{} of 8 elements of a matrix product have a wrong sum", wrong),
                  "correct sums", do_not_train());
  }
  return std::nullopt;
}

std::string teraflops(double flops) {
  constexpr double kTera = 1e12;
  return fmt::format("{:.0f}", flops / kTera);
}

Row gemm_summary(const std::vector<json>& well) {
  std::uint64_t products = 0;
  std::vector<double> rates;
  for (const auto& gpu : well) {
    products += gpu.at("repetitions").get<std::uint64_t>();
    rates.push_back(gpu.at("flops"));
  }
  const auto [least, most] = std::ranges::minmax(rates);
  const auto low = teraflops(least);
  const auto high = teraflops(most);
  return passed(
      kGemm, "bf16 matrix products",
      fmt::format("{} GPUs at the same time, {} products, bitwise identical on each GPU: {} TFLOP/s",
                  well.size(), products, low == high ? low : low + " to " + high));
}

std::vector<Row> check_gemm(const NodeObservations& observations) {
  const auto* answer = observations.answer(kGemm);
  if (answer == nullptr) return {};
  if (!answer->error.empty()) return {unknown(kGemm, "GPUs", answer->error)};
  if (answer->said.contains("error")) return {unknown(kGemm, "GPUs", answer->said.at("error"))};
  std::vector<Row> rows;
  std::vector<json> well;
  for (const auto& gpu : gemm_gpus(observations)) {
    if (auto row = judge_gemm(gpu)) {
      rows.push_back(std::move(*row));
    } else {
      well.push_back(gpu);
    }
  }
  if (!well.empty()) rows.push_back(gemm_summary(well));
  return rows;
}

std::vector<Figure> gemm_figures(const NodeObservations& observations) {
  std::vector<Figure> out;
  for (const auto& gpu : gemm_gpus(observations)) {
    if (gpu.contains("flops")) out.push_back({kGemm, "", gemm_gpu(gpu), "", gpu.at("flops"), "FLOP/s"});
  }
  return out;
}

const Registered<NodeCheck> gemm_check{{
    .order = 200,
    .name = kGemm,
    .what = "bf16 matrix products on all GPUs at the same time have the same bits every time (deep)",
    .judge = check_gemm,
    .figures = gemm_figures,
}};

const Registered<Inquiry> gemm_inquiry{{
    .order = 20,
    .name = kGemm,
    .level = PreflightLevel::deep,
    .deadline = std::chrono::minutes(1),
    .when = Inquiry::When::alone,
    .arguments = devices_of_plan,
    .applies = has_gpus,
}};

}  // namespace

std::vector<Fingerprint> gemm_fingerprints(const NodeObservations& observations) {
  std::vector<Fingerprint> out;
  for (const auto& gpu : gemm_gpus(observations)) {
    if (gpu.contains("hash")) out.push_back({0, gemm_gpu(gpu), gpu.at("name"), gpu.at("hash")});
  }
  return out;
}

namespace {

constexpr const char* kGemmAgreement = "gemm-agreement";

using Prints = std::vector<const Fingerprint*>;

std::string host_of_print(const Observations& observations, const Fingerprint& print) {
  return observations.hosts.empty() ? "" : observations.hosts.at(print.node);
}

std::string name_of_gpu(const Observations& observations, const Fingerprint& print) {
  const auto host = host_of_print(observations, print);
  return host.empty() ? print.gpu : host + " " + print.gpu;
}

std::string names_of_prints(const Observations& observations, const Prints& prints) {
  std::vector<std::string> names;
  for (const auto* print : prints) names.push_back(name_of_gpu(observations, *print));
  return text::join(names, ", ");
}

Row minority(const Observations& observations, const Fingerprint& print, std::size_t others) {
  auto row = failed(
      kGemmAgreement, name_of_gpu(observations, print),
      fmt::format(
          "its product of the same matrices has different bits than that of {} other GPUs of its model",
          others),
      "the same bits on every " + print.model,
      {"silent data corruption is suspected: do not train on this GPU; report the node", Responsible::admin});
  if (const auto host = host_of_print(observations, print); !host.empty()) row.hosts = {host};
  return row;
}

/// No majority: a node is blamed only if all of them are on it.
Row undecided(const Observations& observations, const std::string& model, const Prints& all) {
  auto row = failed(kGemmAgreement, model,
                    fmt::format("{} computed different bits for the same product: one of them is wrong",
                                names_of_prints(observations, all)),
                    "the same bits on every GPU of a model",
                    {"silent data corruption is suspected: compare each with a third GPU of the model before "
                     "training on any of them",
                     Responsible::admin});
  const auto first = all.front()->node;
  const bool together = std::ranges::all_of(all, [&](const auto* print) { return print->node == first; });
  if (const auto host = host_of_print(observations, *all.front()); together && !host.empty())
    row.hosts = {host};
  return row;
}

void judge_model(const Observations& observations, const std::string& model, const Prints& all,
                 std::vector<Row>& rows) {
  std::map<std::string, Prints> by_value;
  for (const auto* print : all) by_value[print->value].push_back(print);
  if (by_value.size() == 1) {
    rows.push_back(
        all.size() < 2
            ? skipped(kGemmAgreement, model, "only one GPU of this model: nothing to compare it with")
            : passed(kGemmAgreement, model, fmt::format("{} GPUs computed the same bits", all.size())));
    return;
  }
  const auto most = std::ranges::max_element(by_value, {}, [](const auto& one) { return one.second.size(); });
  if (2 * most->second.size() <= all.size()) {
    rows.push_back(undecided(observations, model, all));
    return;
  }
  for (const auto& [value, prints] : by_value) {
    if (value == most->first) continue;
    for (const auto* print : prints) rows.push_back(minority(observations, *print, most->second.size()));
  }
}

std::vector<Row> check_agreement(const Observations& observations) {
  std::map<std::string, Prints> by_model;
  for (const auto& print : observations.fingerprints) by_model[print.model].push_back(&print);
  std::vector<Row> rows;
  for (const auto& [model, prints] : by_model) judge_model(observations, model, prints, rows);
  return rows;
}

const Registered<Check> gemm_agreement_check{{
    .order = 30,
    .name = kGemmAgreement,
    .what = "the matrix product has the same bits on all GPUs of a model (deep)",
    .stage = Stage::before,
    .judge = check_agreement,
}};

}  // namespace
}  // namespace nlaunch::preflight
