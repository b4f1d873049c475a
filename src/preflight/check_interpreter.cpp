#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

constexpr auto kCheck = "interpreter";

/// A role's Python, and what it said.
struct Python {
  const NodeObservations& observations;
  std::uint32_t role = 0;
  json said;

  [[nodiscard]] const std::string& name() const { return observations.plan.roles[role].name; }
  [[nodiscard]] bool on_gpus() const {
    return observations.has_gpus() && observations.plan.roles[role].gpus > 0;
  }
};

std::vector<std::string> words(const json& of, const char* key) {
  return of.value(key, std::vector<std::string>());
}

/// "3.11.7 (/venv/bin/python), torch 2.9.0+cu130, nvidia-nccl-cu13 2.28.9"
std::string summary(const json& said) {
  auto out = fmt::format("Python {} ({})", said.value("version", ""), said.value("executable", ""));
  const auto packages = said.value("packages", std::map<std::string, std::string>());
  for (const auto& [name, version] : packages) out += fmt::format(", {} {}", name, version);
  return out;
}

/// Whether CUDA has begun: its library is mapped, and a device is open.
bool uses_cuda(const json& said) {
  return !said.value("libcuda", "").empty() && !words(said, "devices").empty();
}

/// Too early: what the program itself sets before it chooses its GPU (CUDA_VISIBLE_DEVICES, as Ray and vLLM
/// do for their workers) comes too late, and all ranks of a node take the first GPU.
Row judge_start(const Python& python) {
  const auto imported = words(python.said, "imported");
  const bool cuda = uses_cuda(python.said);
  std::string value;
  if (!imported.empty()) value = fmt::format("imports {}", text::join(imported, ", "));
  if (cuda) value += fmt::format("{}starts CUDA", value.empty() ? "" : " and ");
  const auto by = words(python.said, "by");
  const auto responsible =
      by.empty() ? std::string("what its site-packages run at the start") : text::join(by, ", ");
  auto row = failed(
      kCheck, python.name(), fmt::format("{} {} before the program begins", responsible, value),
      "a Python that starts without torch and CUDA",
      {fmt::format("take it out of {}, or import it there only where it is used: CUDA counts its GPUs once, "
                   "and a CUDA_VISIBLE_DEVICES that is set later (by Ray, by vLLM) changes nothing",
                   by.empty() ? "sitecustomize.py, usercustomize.py or the .pth file" : by.front())});
  if (!python.on_gpus()) row.status = Status::warn;
  return row;
}

/// The major numbers: within one of them a driver runs what a newer toolkit has built.
std::optional<std::pair<Version, Version>> too_new(const Python& python) {
  const auto built = parse_version(python.said.value("torch_cuda", ""));
  const auto driver = parse_version(python.observations.machine.cuda_driver);
  if (!built || !driver || built->parts.front() <= driver->parts.front()) return std::nullopt;
  return std::pair(*built, *driver);
}

void judge_packages(const Python& python, std::vector<Row>& rows) {
  const auto packages = python.said.value("packages", std::map<std::string, std::string>());
  std::vector<std::string> nccl;
  for (const auto& [name, version] : packages) {
    if (name.starts_with("nvidia-nccl")) nccl.push_back(name + " " + version);
  }
  if (nccl.size() > 1) {
    rows.push_back(warned(kCheck, python.name(), "two NCCL wheels: " + text::join(nccl, ", "), "one",
                          {"they put different files in one place, and the last that was installed counts: "
                           "uninstall both, then install the one that torch asks for"}));
  }
  if (const auto versions = too_new(python); versions && python.on_gpus()) {
    rows.push_back(failed(kCheck, python.name(),
                          fmt::format("its torch is built for CUDA {}, the driver supports {}",
                                      versions->first.str(), versions->second.str()),
                          "a torch for the driver's CUDA or an older one",
                          {fmt::format("install a torch for CUDA {}, or load the site's cuda-compat package",
                                       versions->second.parts.front())}));
  }
}

void judge(const Python& python, bool named, std::vector<Row>& rows) {
  if (const auto error = python.said.value("error", ""); !error.empty()) {
    const auto& name = python.name();
    if (!named) {
      rows.push_back(skipped(kCheck, name, "its command names no Python, and the first on PATH: " + error));
    } else if (!python.said.value("ended", false)) {
      rows.push_back(unknown(kCheck, name, error));
    } else {
      rows.push_back(
          failed(kCheck, name, error, "a Python that starts", {"try it by hand, in the role's environment"}));
    }
    return;
  }
  const auto before = rows.size();
  if (!words(python.said, "imported").empty() || uses_cuda(python.said)) rows.push_back(judge_start(python));
  judge_packages(python, rows);
  if (rows.size() == before) rows.push_back(passed(kCheck, python.name(), summary(python.said)));
}

}  // namespace

std::vector<Row> check_interpreter(const NodeObservations& observations) {
  std::vector<Row> rows;
  for (const auto& [role, python] : observations.pythons) {
    const auto& name = observations.plan.roles[role].name;
    const auto* answer = observations.answer("interpreter/" + name);
    if (answer == nullptr) continue;
    const nlohmann::json silent{{"error", answer->error}};
    judge({observations, role, answer->error.empty() ? answer->said : silent}, python.named, rows);
  }
  return rows;
}

}  // namespace nlaunch::preflight
