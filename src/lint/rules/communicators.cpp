#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/registry.h"
#include "base/text.h"
#include "lint/rule.h"
#include "lint/values.h"

/// What the members of one NCCL communicator have to agree on, and the protocols that are forced on them.
namespace nlaunch::lint {
namespace {

/// With Google's plugin, its own profile sets LL128.
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

void check_forced_ll128(const LintInput& input, Report& report) {
  each_value(input, report, "NCCL_PROTO",
             [&](const Environment& environment, const Setting& setting, const std::string& value) {
               if (!forces(value, "LL128") || has_fastrak(environment)) return;
               const bool proven = input.gpu == "GH200" || input.nics == "cxi";
               Report::Saying saying{
                   fmt::format("NCCL_PROTO={} forces LL128", value),
                   "a named protocol skips NCCL's check that the path keeps 128 bytes together; if it does "
                   "not, sums are silently wrong (seen on GH200 with Slingshot)",
                   "leave it out, or use NCCL_PROTO=^LL128 if you suspect corruption", ""};
               if (proven) {
                 report.error(setting.span, std::move(saying));
               } else {
                 report.warning(setting.span, std::move(saying));
               }
             });
}

const Registered<Rule> forced_ll128_rule{{
    .order = 130,
    .name = "forced-ll128",
    .title = "NCCL_PROTO names LL128",
    .explain = "LL128 needs links that keep 128 bytes together. NCCL knows where that holds, but does not "
               "check when the protocol is named.",
    .source = "NCCL src/graph/tuning.cc; NVIDIA/nccl#2001",
    .check = check_forced_ll128,
}};

void check_forced_ll(const LintInput& input, Report& report) {
  each_value(input, report, "NCCL_PROTO",
             [&](const Environment&, const Setting& setting, const std::string& value) {
               if (!forces(value, "LL") || forces(value, "Simple") || forces(value, "LL128")) return;
               report.warning(
                   setting.span,
                   {fmt::format("NCCL_PROTO={} forces LL for messages of every size", value),
                    "LL sends a flag with every eight bytes: at most half the bandwidth for large messages",
                    "leave it out: NCCL already uses LL for small messages", ""});
             });
}

const Registered<Rule> forced_ll_rule{{
    .order = 140,
    .name = "forced-ll",
    .title = "NCCL_PROTO=LL",
    .explain = "LL is for small messages: half of what it sends is flags. If forced, it is also used for "
               "gigabytes of gradients.",
    .source = "NCCL src/graph/tuning.cc; measured: docs/measurements.md",
    .check = check_forced_ll,
}};

/// Plugins that have only this protocol, and whose guides require it.
bool is_of_tcpx(const Environment& environment) {
  return std::ranges::any_of(environment.settings, [](const Setting& setting) {
    return setting.name.starts_with("NCCL_GPUDIRECTTCPX_");
  });
}

void check_forced_simple(const LintInput& input, Report& report) {
  // There it keeps LL128 off the network.
  if (input.plan || input.nics == "cxi" || input.gpu == "GH200") return;
  each_value(input, report, "NCCL_PROTO",
             [&](const Environment& environment, const Setting& setting, const std::string& value) {
               if (!forces(value, "Simple") || forces(value, "LL") || forces(value, "LL128") ||
                   is_of_tcpx(environment) || has_fastrak(environment))
                 return;
               report.note(setting.span,
                           {fmt::format("NCCL_PROTO={} forces Simple for messages of every size", value),
                            "small messages have a higher latency than with LL or LL128, which NCCL "
                            "chooses for them if the network supports them",
                            input.nics == "efa"
                                ? "leave it out: aws-ofi-nccl itself selects the protocols that EFA supports"
                                : "leave it out: NCCL already uses Simple for large messages",
                            ""});
             });
}

const Registered<Rule> forced_simple_rule{{
    .order = 145,
    .name = "forced-simple",
    .title = "NCCL_PROTO=Simple",
    .explain =
        "Simple is for large messages. If forced, it is also used for small ones, which then wait for whole "
        "chunks. Older releases of aws-ofi-nccl needed it; newer ones set it themselves where needed. Not "
        "reported for plugins whose guides require it.",
    .source = "NCCL src/graph/tuning.cc; aws-ofi-nccl src/nccl_ofi_net.c",
    .check = check_forced_simple,
}};

void check_ll128_guard(const LintInput& input, Report& report) {
  if (input.gpu != "GH200" || input.nics != "cxi" || input.nodes == 1U || input.by_nlaunch) return;
  const Version since{{2, 27, 3}};
  for (const auto& environment : input.environments) {
    if ((environment.kind && !computes(*environment.kind)) || is_guarded(environment)) continue;
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
         "from 2.27.3 NCCL uses LL128 across the link between Grace and Hopper: all-reduces return wrong "
         "numbers "
         "without an error",
         "NCCL_PROTO=^LL128 (or NCCL_LL128_C2C=0, or FI_CXI_RDZV_THRESHOLD=0 with FI_CXI_RDZV_GET_MIN=0)",
         ""});
  }
}

const Registered<Rule> ll128_guard_rule{{
    .order = 150,
    .name = "ll128-guard",
    .title = "GH200 with Slingshot, and nothing that keeps LL128 off the network",
    .explain =
        "From 2.27.3 NCCL allows LL128 over the link between Grace and Hopper, and so over Slingshot, "
        "where data arrives corrupted: wrong sums, at full speed, without an error. Not fixed as of 2.30.7.",
    .source = "NVIDIA/nccl#2001; shs-ccl-docs pull request 21",
    .check = check_ll128_guard,
}};

/// The environments of a group, keyed by something that they should have in common.
template <class Of>
std::map<std::string, std::vector<std::string>> sorted_by(const LintInput& input,
                                                          const std::vector<std::size_t>& members,
                                                          const Of& of) {
  std::map<std::string, std::vector<std::string>> by;
  for (const auto index : members) {
    const auto& environment = input.environments[index];
    if (const auto key = of(environment)) by[*key].push_back(environment.name);
  }
  return by;
}

std::string shown(const std::map<std::string, std::vector<std::string>>& by) {
  std::vector<std::string> parts;
  for (const auto& [value, names] : by)
    parts.push_back(fmt::format("{} in {}", value, text::join(names, ", ")));
  return text::join(parts, ", ");
}

void check_cumem_differs(const LintInput& input, Report& report) {
  for (const auto& [group, members] : input.groups) {
    const Setting* place = nullptr;
    bool known = true;
    for (const auto index : members) {
      const auto* setting = input.environments[index].find("NCCL_CUMEM_ENABLE");
      if (setting == nullptr) continue;
      place = setting;
      known = known && setting->sure && (setting->unset || setting->value);
    }
    if (place == nullptr || !known) continue;
    const auto by = sorted_by(input, members, [](const Environment& environment) {
      return std::optional(environment.value("NCCL_CUMEM_ENABLE").value_or("unset"));
    });
    if (by.size() < 2) continue;
    report.error(place->span, {fmt::format("NCCL_CUMEM_ENABLE differs within {}: {}", group, shown(by)),
                               "the ranks of a communicator must agree on how memory is shared, or its "
                               "setup fails or hangs",
                               "use the same value in all of them, or leave it out", ""});
  }
}

const Registered<Rule> cumem_differs_rule{{
    .order = 250,
    .name = "cumem-differs",
    .title = "NCCL_CUMEM_ENABLE differs within a group",
    .explain = "Older vLLM sets it to 0 for its engines. Learners and engines share the communicator of the "
               "weight sync.",
    .source = "vLLM pull request 24141; NCCL src/misc/cudawrap.cc",
    .check = check_cumem_differs,
}};

void check_release_differs(const LintInput& input, Report& report) {
  for (const auto& [group, members] : input.groups) {
    const auto by =
        sorted_by(input, members, [](const Environment& environment) -> std::optional<std::string> {
          const auto* release = environment.release("NCCL");
          return release == nullptr ? std::nullopt : std::optional(release->str());
        });
    if (by.size() < 2) continue;
    SourceSpan place;
    for (const auto index : members) {
      if (input.environments[index].preload_span) place = input.environments[index].preload_span;
    }
    report.error(place,
                 {fmt::format("{} has several releases of NCCL: {}", group, shown(by)),
                  "NCCL refuses a communicator of two versions (\"Mismatched NCCL version detected\")",
                  "use one release everywhere: preload the same library, or install the same wheel", ""});
  }
}

const Registered<Rule> release_differs_rule{{
    .order = 260,
    .name = "release-differs",
    .title = "several releases of NCCL in one group",
    .explain =
        "NCCL rejects a communicator with two versions since 2.23.4; before, its behavior was undefined.",
    .source = "NCCL src/init.cc",
    .check = check_release_differs,
}};

}  // namespace
}  // namespace nlaunch::lint
