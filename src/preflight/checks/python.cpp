#include <fmt/format.h>

#include <algorithm>

#include "base/registry.h"
#include "base/text.h"
#include "preflight/ask/inquiries.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

constexpr auto kInterpreter = "interpreter";

/// A role's Python, and its answer.
struct Python {
  const NodeObservations& observations;
  std::uint32_t role = 0;
  json said;

  [[nodiscard]] const std::string& name() const { return observations.plan.roles[role].name; }
  [[nodiscard]] bool on_gpus() const {
    return observations.has_gpus() && observations.plan.roles[role].gpus > 0;
  }
};

std::vector<std::string> words_in(const json& of, const char* key) {
  return of.value(key, std::vector<std::string>());
}

/// "3.11.7 (/venv/bin/python), torch 2.9.0+cu130, nvidia-nccl-cu13 2.28.9"
std::string python_summary(const json& said) {
  auto out = fmt::format("Python {} ({})", said.value("version", ""), said.value("executable", ""));
  const auto packages = said.value("packages", std::map<std::string, std::string>());
  for (const auto& [name, version] : packages) out += fmt::format(", {} {}", name, version);
  return out;
}

/// Whether CUDA was started: its library is mapped, and a device is open.
bool uses_cuda(const json& said) {
  return !said.value("libcuda", "").empty() && !words_in(said, "devices").empty();
}

/// Too early: what the program itself sets before it selects its GPU (CUDA_VISIBLE_DEVICES, as Ray and vLLM
/// do for their workers) comes too late, and all ranks of a node use the first GPU.
Row judge_python_start(const Python& python) {
  const auto imported = words_in(python.said, "imported");
  const bool cuda = uses_cuda(python.said);
  std::string value;
  if (!imported.empty()) value = fmt::format("imports {}", text::join(imported, ", "));
  if (cuda) value += fmt::format("{}starts CUDA", value.empty() ? "" : " and ");
  const auto by = words_in(python.said, "by");
  const auto responsible =
      by.empty() ? std::string("code that its site-packages run at startup") : text::join(by, ", ");
  auto row =
      failed(kInterpreter, python.name(), fmt::format("{} {} before the program starts", responsible, value),
             "a Python that starts without torch and CUDA",
             {fmt::format("remove it from {}, or import it only where it is used: CUDA counts its GPUs once, "
                          "and a CUDA_VISIBLE_DEVICES that is set later (by Ray, by vLLM) has no effect",
                          by.empty() ? "sitecustomize.py, usercustomize.py or the .pth file" : by.front())});
  if (!python.on_gpus()) row.status = Status::warn;
  return row;
}

/// The major versions: within one of them a driver runs what a newer toolkit has built.
std::optional<std::pair<Version, Version>> too_new_torch(const Python& python) {
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
    rows.push_back(warned(kInterpreter, python.name(), "two NCCL wheels: " + text::join(nccl, ", "), "one",
                          {"they put different files in the same place, and the last one installed wins: "
                           "uninstall both, then install the one that torch requires"}));
  }
  if (const auto versions = too_new_torch(python); versions && python.on_gpus()) {
    rows.push_back(
        failed(kInterpreter, python.name(),
               fmt::format("its torch is built for CUDA {}, but the driver supports {}",
                           versions->first.str(), versions->second.str()),
               "a torch built for the driver's CUDA or older",
               {fmt::format("install a torch built for CUDA {}, or load the site's cuda-compat package",
                            versions->second.parts.front())}));
  }
}

void judge_python(const Python& python, bool named, std::vector<Row>& rows) {
  if (const auto error = python.said.value("error", ""); !error.empty()) {
    const auto& name = python.name();
    if (!named) {
      rows.push_back(
          skipped(kInterpreter, name, "its command names no Python; the first one on PATH: " + error));
    } else if (!python.said.value("ended", false)) {
      rows.push_back(unknown(kInterpreter, name, error));
    } else {
      rows.push_back(failed(kInterpreter, name, error, "a Python that starts",
                            {"try it manually, in the role's environment"}));
    }
    return;
  }
  const auto before = rows.size();
  if (!words_in(python.said, "imported").empty() || uses_cuda(python.said))
    rows.push_back(judge_python_start(python));
  judge_packages(python, rows);
  if (rows.size() == before) rows.push_back(passed(kInterpreter, python.name(), python_summary(python.said)));
}

std::vector<Row> check_interpreter(const NodeObservations& observations) {
  std::vector<Row> rows;
  for (const auto& [role, python] : observations.pythons) {
    const auto& name = observations.plan.roles[role].name;
    const auto* answer = observations.answer("interpreter/" + name);
    if (answer == nullptr) continue;
    const nlohmann::json silent{{"error", answer->error}};
    judge_python({observations, role, answer->error.empty() ? answer->said : silent}, python.named, rows);
  }
  return rows;
}

const Registered<NodeCheck> interpreter_check{{
    .order = 140,
    .name = kInterpreter,
    .what = "each role's Python starts without torch and CUDA, and its torch suits the driver",
    .judge = check_interpreter,
}};

bool has_python(const NodeObservations& observations, std::uint32_t role) {
  return observations.pythons.contains(role);
}

std::vector<std::string> python_and_workdir(const NodeObservations& observations,
                                            const plan::BoundProcess* process) {
  const auto role = observations.plan.processes[process->process].role;
  return {observations.pythons.at(role).path, process->workdir};
}

const Registered<Inquiry> interpreter_inquiry{{
    .name = kInterpreter,
    .level = PreflightLevel::standard,
    .deadline = std::chrono::seconds(20),
    .of = Inquiry::Of::roles,
    .arguments = python_and_workdir,
    .concerns = has_python,
}};

constexpr auto kTorch = "torch";

/// The NCCL that torch has loaded, compared with the one the role was found to load: by its preload, its
/// wheel, the loader.
Row judge_torch(const NodeObservations& observations, std::uint32_t role, const nlohmann::json& said) {
  const auto& name = observations.plan.roles[role].name;
  if (const auto error = said.value("error", ""); !error.empty()) return unknown(kTorch, name, error);
  const auto nccl = said.value("nccl", "");
  const auto value = fmt::format("torch {}, CUDA {}, NCCL {}", said.value("version", ""),
                                 said.value("cuda", "") == "" ? "none" : said.value("cuda", ""),
                                 nccl.empty() ? "none" : nccl);
  const auto library = observations.libraries.find(role);
  if (nccl.empty() || library == observations.libraries.end() || library->second.version.empty())
    return passed(kTorch, name, value);
  const auto& expected = library->second;
  if (expected.version == nccl) return passed(kTorch, name, value);
  return failed(kTorch, name, value,
                fmt::format("NCCL {} ({}, {})", expected.version, expected.path, expected.by),
                {"torch loads a different NCCL than the one this role is set up for: it was built with its "
                 "own (statically), or its wheel's directory comes first; `preload: [nccl]` settles it"});
}

std::vector<Row> check_torch(const NodeObservations& observations) {
  std::vector<Row> rows;
  for (const auto& [role, python] : observations.pythons) {
    const auto& name = observations.plan.roles[role].name;
    const auto* answer = observations.answer("torch/" + name);
    if (answer == nullptr) continue;
    rows.push_back(answer->error.empty() ? judge_torch(observations, role, answer->said)
                                         : unknown(kTorch, name, answer->error));
  }
  return rows;
}

const Registered<NodeCheck> torch_check{{
    .order = 150,
    .name = kTorch,
    .what = "torch, once imported, has the NCCL that the role is set up for (deep)",
    .judge = check_torch,
}};

bool has_python_and_gpus(const NodeObservations& observations, std::uint32_t role) {
  return has_python(observations, role) && observations.has_gpus() && observations.plan.roles[role].gpus > 0;
}

/// With the role's preload: torch then loads that NCCL.
std::vector<std::string> python_and_preload(const NodeObservations& observations,
                                            const plan::BoundProcess* process) {
  auto out = python_and_workdir(observations, process);
  out.push_back(text::join(process->preload, ":"));
  return out;
}

const Registered<Inquiry> torch_inquiry{{
    .name = kTorch,
    .level = PreflightLevel::deep,
    .deadline = std::chrono::seconds(90),
    .of = Inquiry::Of::roles,
    .arguments = python_and_preload,
    .concerns = has_python_and_gpus,
}};

}  // namespace
}  // namespace nlaunch::preflight
