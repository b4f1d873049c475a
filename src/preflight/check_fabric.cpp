#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

constexpr auto kCheck = "fabric";

/// What is to be told of one role.
struct Asked {
  const NodeObservations& observations;
  std::string role;
  std::string provider;
  json said;

  [[nodiscard]] const plan::Node& node() const { return observations.plan.node; }
  /// NCCL's plugin for these NICs is libfabric's user; all others NCCL drives by itself.
  [[nodiscard]] bool needed() const { return provider == "cxi" || provider == "efa"; }
  [[nodiscard]] std::string library() const {
    return fmt::format("libfabric {} ({})", said.value("version", ""), said.value("path", ""));
  }
  [[nodiscard]] std::string expected() const {
    return node().nic_count == 0 ? provider : fmt::format("{} x {}", node().nic_count, provider);
  }
};

Row absent(const Asked& asked, const std::string& value) {
  return warned(
      kCheck, asked.role, value, fmt::format("a libfabric with the {} provider", asked.provider),
      {"load the site's libfabric (a module, or LD_LIBRARY_PATH): NCCL's plugin uses another one only where "
       "it brings it along, and NCCL without its plugin goes over TCP"});
}

/// Domains that this role may not open: the NICs refuse the job, and NCCL will not get further.
Row refused(const Asked& asked, const std::vector<json>& domains) {
  std::vector<std::string> names;
  std::string error;
  for (const auto& domain : domains) {
    if (domain.value("opened", false)) continue;
    names.push_back(domain.value("name", ""));
    error = domain.value("error", "");
  }
  if (asked.provider == "tcp") return skipped(kCheck, asked.role, "libfabric is not needed here: " + error);
  const bool slingshot = asked.provider == "cxi";
  auto row = failed(
      kCheck, asked.role,
      fmt::format("{} of {} cannot be opened: {}", text::join(names, ", "), asked.library(), error),
      asked.expected(),
      {slingshot ? "the job has no right to these NICs: start it in a step of srun (which gives it a "
                   "VNI), let containers keep SLINGSHOT_*, and see FI_MR_CACHE_MONITOR; FI_LOG_LEVEL=info "
                   "says more"
                 : "FI_LOG_LEVEL=info says more; in a container: give it /dev/infiniband"});
  if (!asked.needed() || asked.node().count < 2) row.status = Status::warn;
  return row;
}

/// Links and speeds are judged from the kernel's word (check_nics.cpp), where there is one.
Row judge(const Asked& asked) {
  if (const auto error = asked.said.value("error", ""); !error.empty()) {
    return asked.needed() ? absent(asked, error)
                          : skipped(kCheck, asked.role, "libfabric is not needed here: " + error);
  }
  if (asked.said.value("not_built", false))
    return unknown(kCheck, asked.role, asked.said.value("provider_error", ""));
  const auto domains = asked.said.value("domains", std::vector<json>());
  if (domains.empty()) {
    const auto value = fmt::format("{} offers no {}: {}", asked.library(), asked.provider,
                                   asked.said.value("provider_error", "it lists no domain"));
    return asked.needed() ? absent(asked, value) : skipped(kCheck, asked.role, value);
  }
  if (!std::ranges::all_of(domains, [](const json& domain) { return domain.value("opened", false); }))
    return refused(asked, domains);
  const auto down =
      std::ranges::count_if(domains, [](const json& domain) { return domain.value("link", "") == "down"; });
  auto value = fmt::format("{}: {} x {}", asked.library(), domains.size(), asked.provider);
  if (down > 0) value += fmt::format(", {} with its link down", down);
  const bool few = static_cast<std::int64_t>(domains.size()) - down < asked.node().nic_count;
  if (asked.needed() && (few || down > 0)) {
    return warned(kCheck, asked.role, value, asked.expected(),
                  {"see the rows of 'nics': what libfabric does not show NCCL does not use"});
  }
  return passed(kCheck, asked.role, value);
}

}  // namespace

std::string fabric_provider(const plan::Node& node) {
  if (node.nic_kind == "cxi" || node.nic_kind == "efa") return node.nic_kind;
  return node.nic_kind == "ib" || node.nic_kind == "roce" ? "verbs" : "tcp";
}

std::vector<Row> check_fabric(const NodeObservations& observations) {
  std::vector<Row> rows;
  for (const auto& [role, process] : observations.first_of_roles()) {
    const auto& name = observations.plan.roles[role].name;
    const auto* answer = observations.answer("fabric/" + name);
    if (answer == nullptr) continue;
    rows.push_back(answer->error.empty()
                       ? judge({observations, name, fabric_provider(observations.plan.node), answer->said})
                       : unknown(kCheck, name, answer->error));
  }
  return rows;
}

}  // namespace nlaunch::preflight
