#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

/// A version that is known to fail, and where.
struct KnownBad {
  bool (*applies)(const NodeObservations& observations, const Rank& rank, const Version& version);
  const char* what;
  const char* expected;
  const char* fix;
};

/// NCCL 2.28.9 and 2.29.2 test a weak compare-and-swap by its value when they give back a proxy slot; on Arm
/// the slot leaks, and a rank waits for one for ever without a message. 2.29.3 repaired it.
bool leaks_proxy_slots(const NodeObservations& observations, const Rank& /*rank*/, const Version& version) {
  const auto code = version.str();
  return observations.machine.arch == "aarch64" && (code == "2.28.9" || code == "2.29.2");
}

bool excludes_ll128(const std::string& protocols) {
  const auto lower = text::lower(protocols);
  const auto listed = text::split(lower.starts_with('^') ? lower.substr(1) : lower, ',');
  const bool named = std::ranges::find(listed, "ll128") != listed.end();
  return lower.starts_with('^') ? named : !lower.empty() && !named;
}

bool guarded(const NodeObservations& observations, const Rank& rank) {
  const auto is_zero = [&](const char* name) { return observations.variable(rank, name) == "0"; };
  return excludes_ll128(observations.variable(rank, "NCCL_PROTO").value_or("")) ||
         is_zero("NCCL_LL128_C2C") || (is_zero("FI_CXI_RDZV_THRESHOLD") && is_zero("FI_CXI_RDZV_GET_MIN"));
}

/// Since 2.27.3 NCCL uses LL128 across the chip-to-chip link of Grace Hopper; over Slingshot its flags and
/// data can arrive out of order, which corrupts results silently.
bool corrupts_over_slingshot(const NodeObservations& observations, const Rank& rank, const Version& version) {
  const auto& node = observations.plan.node;
  const bool grace_hopper = node.gpu_model.find("GH200") != std::string::npos ||
                            std::ranges::any_of(observations.machine.gpus, [](const GpuFact& gpu) {
                              return gpu.name.find("GH200") != std::string::npos;
                            });
  return grace_hopper && node.nic_kind == "cxi" && node.count > 1 && version >= Version{{2, 27, 3}} &&
         !guarded(observations, rank);
}

constexpr KnownBad kKnownBad[] = {
    {leaks_proxy_slots, "hangs on aarch64 without a message: it loses proxy slots",
     "2.28.7, or 2.29.3 and later", "install another NCCL in this role's environment, or `preload:` one"},
    {corrupts_over_slingshot, "can corrupt data silently: GH200 with Slingshot, and LL128 is allowed",
     "NCCL_PROTO=^LL128 (or NCCL_LL128_C2C=0, or FI_CXI_RDZV_THRESHOLD=0 with FI_CXI_RDZV_GET_MIN=0)",
     "set NCCL_PROTO: \"^LL128\" in the role's env:"},
};

void judge_rank(const NodeObservations& observations, const Rank& rank, const LibraryFact& library,
                std::vector<Row>& rows) {
  const auto version = parse_version(library.version);
  if (!version) return;
  for (const auto& bad : kKnownBad) {
    if (!bad.applies(observations, rank, *version)) continue;
    rows.push_back(
        failed("nccl-known-bad", observations.role_of(rank).name,
               fmt::format("NCCL {} ({}, {}) {}", library.version, library.path, library.by, bad.what),
               bad.expected, {bad.fix}));
  }
}

}  // namespace

std::vector<Row> check_deny_list(const NodeObservations& observations) {
  std::vector<Row> rows;
  std::vector<std::string> clean;
  for (const auto& [role, library] : observations.libraries) {
    if (library.version.empty()) continue;
    // The environment is the role's: its first rank speaks for all.
    const auto rank = std::ranges::find_if(observations.ranks, [&](const Rank& one) {
      return observations.plan.processes[one.process].role == role;
    });
    const auto before = rows.size();
    if (rank != observations.ranks.end()) judge_rank(observations, *rank, library, rows);
    if (rows.size() == before)
      clean.push_back(fmt::format("{} {}", observations.plan.roles[role].name, library.version));
  }
  if (!clean.empty()) rows.push_back(passed("nccl-known-bad", "this machine", text::join(clean, ", ")));
  return rows;
}

}  // namespace nlaunch::preflight
