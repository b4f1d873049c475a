#include <fmt/format.h>

#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

constexpr auto kCheck = "torch";

/// That torch has loaded, against what the role was found to load: by its preload, its wheel, the loader.
Row judge(const NodeObservations& observations, std::uint32_t role, const nlohmann::json& said) {
  const auto& name = observations.plan.roles[role].name;
  if (const auto error = said.value("error", ""); !error.empty()) return unknown(kCheck, name, error);
  const auto nccl = said.value("nccl", "");
  const auto value = fmt::format("torch {}, CUDA {}, NCCL {}", said.value("version", ""),
                                 said.value("cuda", "") == "" ? "none" : said.value("cuda", ""),
                                 nccl.empty() ? "none" : nccl);
  const auto library = observations.libraries.find(role);
  if (nccl.empty() || library == observations.libraries.end() || library->second.version.empty())
    return passed(kCheck, name, value);
  const auto& expected = library->second;
  if (expected.version == nccl) return passed(kCheck, name, value);
  return failed(kCheck, name, value,
                fmt::format("NCCL {} ({}, {})", expected.version, expected.path, expected.by),
                {"torch loads another NCCL than this role is set up for: it was built with its own "
                 "(statically), or its "
                 "wheel's folder comes first; `preload: [nccl]` decides it"});
}

}  // namespace

std::vector<Row> check_torch(const NodeObservations& observations) {
  std::vector<Row> rows;
  for (const auto& [role, python] : observations.pythons) {
    const auto& name = observations.plan.roles[role].name;
    const auto* answer = observations.answer("torch/" + name);
    if (answer == nullptr) continue;
    rows.push_back(answer->error.empty() ? judge(observations, role, answer->said)
                                         : unknown(kCheck, name, answer->error));
  }
  return rows;
}

}  // namespace nlaunch::preflight
