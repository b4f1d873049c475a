#include <fmt/format.h>

#include "lint/rule_checks.h"
#include "lint/values.h"

namespace nlaunch::lint {
namespace {

/// Where Google's plugin is in use, LL128 is what its own profile sets.
bool has_fastrak(const Environment& environment) {
  return environment.find("NCCL_TUNER_CONFIG_PATH") != nullptr ||
         environment.find("NCCL_FASTRAK_CTRL_DEV") != nullptr ||
         environment.find("NCCL_FASTRAK_IFNAME") != nullptr;
}

bool is_zero(const std::string& value) {
  const auto read = read_number(value);
  return read.whole && read.value == 0;
}

bool is_guarded(const Environment& environment) {
  if (environment.may("NCCL_LL128_C2C", is_zero)) return true;
  if (environment.may("NCCL_PROTO", [](const std::string& value) { return excludes(value, "LL128"); }))
    return true;
  return environment.may("FI_CXI_RDZV_THRESHOLD", is_zero) && environment.may("FI_CXI_RDZV_GET_MIN", is_zero);
}

}  // namespace

void check_forced_ll128(const LintInput& input, Report& report) {
  each_value(input, report, "NCCL_PROTO",
             [&](const Environment& environment, const Setting& setting, const std::string& value) {
               if (!forces(value, "LL128") || has_fastrak(environment)) return;
               const bool proven = input.gpu == "GH200" || input.nics == "cxi";
               Report::Saying saying{
                   fmt::format("NCCL_PROTO={} forces LL128", value),
                   "a named protocol skips NCCL's own check of whether the path keeps 128 bytes together; "
                   "where it does not, sums are wrong in silence (seen on GH200 with Slingshot)",
                   "leave it out; NCCL_PROTO=^LL128 where corruption is feared", ""};
               if (proven) {
                 report.error(setting.span, std::move(saying));
               } else {
                 report.warning(setting.span, std::move(saying));
               }
             });
}

void check_forced_ll(const LintInput& input, Report& report) {
  each_value(input, report, "NCCL_PROTO",
             [&](const Environment&, const Setting& setting, const std::string& value) {
               if (!forces(value, "LL") || forces(value, "Simple") || forces(value, "LL128")) return;
               report.warning(
                   setting.span,
                   {fmt::format("NCCL_PROTO={} forces LL for messages of every size", value),
                    "LL sends a flag with every eight bytes: at most half the bandwidth for large messages",
                    "leave it out: NCCL takes LL for small messages by itself", ""});
             });
}

void check_ll128_guard(const LintInput& input, Report& report) {
  if (input.gpu != "GH200" || input.nics != "cxi" || input.nodes == 1U || input.by_nlaunch) return;
  const Version since{{2, 27, 3}};
  for (const auto& environment : input.environments) {
    if (environment.kind == RoleKind::service || is_guarded(environment)) continue;
    const auto* release = environment.release("NCCL");
    if (release != nullptr && *release < since) continue;
    const auto* place = environment.find("FI_PROVIDER");
    for (const auto* name : {"NCCL_NET", "FI_CXI_RX_MATCH_MODE", "NCCL_SOCKET_IFNAME"}) {
      if (place == nullptr) place = environment.find(name);
    }
    report.of(environment.name);
    const auto whole = input.script ? SourceSpan{input.script->file, 0, 0, 1} : SourceSpan();
    report.error(
        place == nullptr ? whole : place->span,
        {fmt::format("GH200 with Slingshot, NCCL {}, and nothing that keeps LL128 off the network",
                     release == nullptr ? "2.27.3 or newer" : release->str()),
         "from 2.27.3 on NCCL uses LL128 across the link between Grace and Hopper: all-reduces with wrong "
         "numbers "
         "and no error",
         "NCCL_PROTO=^LL128 (or NCCL_LL128_C2C=0, or FI_CXI_RDZV_THRESHOLD=0 with FI_CXI_RDZV_GET_MIN=0)",
         ""});
  }
}

}  // namespace nlaunch::lint
