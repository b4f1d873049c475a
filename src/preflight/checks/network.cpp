#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/registry.h"
#include "base/text.h"
#include "preflight/ask/inquiries.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

constexpr auto kNics = "nics";
constexpr std::array<std::string_view, 4> kKinds{"cxi", "ib", "roce", "efa"};

std::string text_in(const json& of, const char* key) {
  return of.value(key, std::string());
}

struct Nics {
  const NodeObservations& observations;
  std::string kind;          ///< that the site names
  std::vector<json> mine{};  ///< of that kind
  std::size_t usable = 0;
  double fastest = 0;  ///< Gb/s
  /// The run needs them, or the profile of a node that is checked on its own lists them.
  bool needed = false;

  [[nodiscard]] std::size_t wanted() const { return observations.planned().nic_count; }
  [[nodiscard]] std::string expected() const {
    return wanted() == 0 ? fmt::format("{} NICs", kind) : fmt::format("{} x {}", wanted(), kind);
  }
};

/// "8 x ib, 400 Gb/s; 1 x roce, 25 Gb/s": the fastest of those that are up.
std::string nics_summary(const std::vector<json>& nics) {
  std::map<std::string, std::pair<int, double>> kinds;
  for (const auto& nic : nics) {
    auto& [count, gbits] = kinds[text_in(nic, "kind")];
    ++count;
    gbits = std::max(gbits, nic.value("gbits", 0.0));
  }
  std::vector<std::string> parts;
  for (const auto& [kind, of] : kinds) {
    parts.push_back(fmt::format("{} x {}", of.first, kind));
    if (of.second > 0) parts.back() += fmt::format(", {:g} Gb/s", of.second);
  }
  return parts.empty() ? "none" : text::join(parts, "; ");
}

/// Why a job cannot use it, and who can help; empty text: it can.
std::pair<std::string, Remedy> trouble_of_nic(const json& nic) {
  const auto device = text_in(nic, "device");
  if (text_in(nic, "driver").empty())
    return {"has no driver", {"load its driver, or report the node", Responsible::admin}};
  if (!nic.value("up", false)) {
    const auto state = text_in(nic, "state");
    return {fmt::format("the link is down{}", state.empty() ? "" : fmt::format(" ({})", state)),
            {"report the node: check the cable, the switch port and the NIC itself", Responsible::admin}};
  }
  if (const auto error = text_in(nic, "device_error"); !error.empty()) {
    return {fmt::format("{} cannot be opened: {}", device, error),
            {fmt::format(
                "in a container: pass {} through (--device); otherwise the user needs permission to use it",
                device)}};
  }
  return {};
}

Row with_status(Row row, Status status) {
  row.status = status;
  return row;
}

/// The problems of those that are present. A link that is down does no harm if enough others are up.
void judge_each_nic(const Nics& nics, std::vector<Row>& rows) {
  const bool short_of = nics.usable < nics.wanted() || nics.usable == 0;
  for (const auto& nic : nics.mine) {
    const auto interface = text_in(nic, "interface");
    const auto subject =
        interface.empty() ? text_in(nic, "name") : fmt::format("{} ({})", text_in(nic, "name"), interface);
    const auto [trouble, remedy] = trouble_of_nic(nic);
    if (!trouble.empty()) {
      rows.push_back(with_status(failed(kNics, subject, trouble, nics.expected(), remedy),
                                 short_of && nics.needed ? Status::fail : Status::warn));
    } else if (const auto gbits = nic.value("gbits", 0.0); gbits > 0 && gbits < nics.fastest) {
      rows.push_back(warned(kNics, subject, fmt::format("{:g} Gb/s", gbits),
                            fmt::format("{:g} Gb/s, like the others", nics.fastest),
                            {"report the node: its link came up slower than expected", Responsible::admin}));
    }
  }
}

bool is_card_kind(const std::string& card, const std::string& kind) {
  return card == kind || (card == "mlx5" && (kind == "ib" || kind == "roce"));
}

void judge_idle_cards(const Nics& nics, const json& cards, std::vector<Row>& rows) {
  for (const auto& card : cards) {
    if (!is_card_kind(text_in(card, "kind"), nics.kind)) continue;
    rows.push_back(with_status(
        failed(kNics, fmt::format("{} ({})", text_in(card, "bus_id"), text_in(card, "id")), "has no driver",
               nics.expected(), {"load its driver, or report the node", Responsible::admin}),
        nics.needed && nics.usable < std::max<std::size_t>(nics.wanted(), 1) ? Status::fail : Status::warn));
  }
}

Row judge_nic_number(const Nics& nics, const std::vector<json>& all) {
  if (nics.usable > 0 && nics.usable >= nics.wanted()) {
    return passed(kNics, nics.kind, fmt::format("{} usable, {:g} Gb/s", nics.usable, nics.fastest),
                  nics.expected());
  }
  const auto value = nics.mine.empty() ? fmt::format("none of this kind; found: {}", nics_summary(all))
                                       : fmt::format("{} of {} usable", nics.usable, nics.mine.size());
  return with_status(
      failed(kNics, nics.kind, value, nics.expected(),
             {"report the node, or correct node.nics in the site profile", Responsible::admin}),
      nics.needed ? Status::fail : Status::warn);
}

/// Without these the cxi provider uses any service of the NIC that is open to everyone, if there is one
/// (libfabric 2.6.0, prov/cxi/src/cxip_nic.c).
void judge_slingshot(const NodeObservations& observations, std::vector<Row>& rows) {
  constexpr std::array<std::string_view, 3> kNeeded{"SLINGSHOT_VNIS", "SLINGSHOT_SVC_IDS",
                                                    "SLINGSHOT_DEVICES"};
  for (const auto& [role, process] : observations.first_of_roles()) {
    std::vector<std::string> absent;
    for (const auto name : kNeeded) {
      if (variable_of(*process, name).value_or("").empty()) absent.emplace_back(name);
    }
    const auto& subject = observations.plan.roles[role].name;
    if (absent.empty()) {
      rows.push_back(passed(kNics, subject, "has the job's SLINGSHOT_ variables"));
    } else {
      rows.push_back(warned(kNics, subject, fmt::format("no {} in its environment", text::join(absent, ", ")),
                            "those that Slurm sets for a step",
                            {"without them the NICs may refuse the job (\"Invalid VNI\"): start it in an "
                             "srun step, and let containers and wrappers keep SLINGSHOT_*"}));
    }
  }
}

std::vector<Row> check_nics(const NodeObservations& observations) {
  const auto* answer = observations.answer("nics");
  if (answer == nullptr) return {};
  const auto& node = observations.planned();
  if (!answer->error.empty()) {
    return node.nic_kind.empty() ? std::vector<Row>()
                                 : std::vector{unknown(kNics, node.nic_kind, answer->error)};
  }
  const auto all = answer->said.value("nics", std::vector<json>());
  if (node.nic_kind.empty())
    return all.empty() ? std::vector<Row>() : std::vector{passed(kNics, "this machine", nics_summary(all))};
  if (std::ranges::find(kKinds, node.nic_kind) == kKinds.end()) {
    return {skipped(kNics, node.nic_kind,
                    fmt::format("unknown kind of NIC; the known kinds are: {}",
                                text::join(std::vector<std::string>(kKinds.begin(), kKinds.end()), ", ")))};
  }
  Nics nics{.observations = observations, .kind = node.nic_kind};
  nics.needed = observations.plan.node.count > 1 || observations.for_the_machine();
  for (const auto& nic : all) {
    if (text_in(nic, "kind") != nics.kind) continue;
    nics.mine.push_back(nic);
    if (trouble_of_nic(nic).first.empty()) ++nics.usable;
    if (nic.value("up", false)) nics.fastest = std::max(nics.fastest, nic.value("gbits", 0.0));
  }
  std::vector<Row> rows{judge_nic_number(nics, all)};
  judge_each_nic(nics, rows);
  judge_idle_cards(nics, answer->said.value("idle", json::array()), rows);
  if (nics.kind == "cxi" && observations.plan.node.count > 1) judge_slingshot(observations, rows);
  return rows;
}

const Registered<NodeCheck> nics_check{{
    .order = 110,
    .name = kNics,
    .what = "the network adapters of the site are present, with a driver, and with links that are up and "
            "equally fast",
    .judge = check_nics,
}};

const Registered<Inquiry> nics_inquiry{{.name = kNics}};

constexpr auto kFabric = "fabric";

/// What to report about one role.
struct AskedFabric {
  const NodeObservations& observations;
  std::string role;
  std::string provider;
  json said;

  [[nodiscard]] const plan::Node& node() const { return observations.planned(); }
  /// NCCL's plugin for these NICs uses libfabric; NCCL drives all others itself.
  [[nodiscard]] bool needed() const { return provider == "cxi" || provider == "efa"; }
  [[nodiscard]] std::string library() const {
    return fmt::format("libfabric {} ({})", said.value("version", ""), said.value("path", ""));
  }
  [[nodiscard]] std::string expected() const {
    return node().nic_count == 0 ? provider : fmt::format("{} x {}", node().nic_count, provider);
  }
};

Row absent_fabric(const AskedFabric& asked, const std::string& value) {
  return warned(kFabric, asked.role, value, fmt::format("a libfabric with the {} provider", asked.provider),
                {"load the site's libfabric (a module, or LD_LIBRARY_PATH): NCCL's plugin uses another one "
                 "only if it bundles it, and NCCL without its plugin uses TCP"});
}

/// Domains that this role is not permitted to open: the NICs refuse the job, and NCCL will fail too.
Row refused_fabric(const AskedFabric& asked, const std::vector<json>& domains) {
  std::vector<std::string> names;
  std::string error;
  for (const auto& domain : domains) {
    if (domain.value("opened", false)) continue;
    names.push_back(domain.value("name", ""));
    error = domain.value("error", "");
  }
  if (asked.provider == "tcp") return skipped(kFabric, asked.role, "libfabric is not needed here: " + error);
  const bool slingshot = asked.provider == "cxi";
  auto row = failed(
      kFabric, asked.role,
      fmt::format("{} of {} cannot be opened: {}", text::join(names, ", "), asked.library(), error),
      asked.expected(),
      {slingshot
           ? "the job has no permission to use these NICs: start it in an srun step (which gives it a VNI), "
             "let containers keep SLINGSHOT_*, and check FI_MR_CACHE_MONITOR; FI_LOG_LEVEL=info shows more"
           : "FI_LOG_LEVEL=info shows more; in a container: pass /dev/infiniband through"});
  if (!asked.needed() || asked.node().count < 2) row.status = Status::warn;
  return row;
}

/// Links and speeds are judged from the kernel's data (check nics), if there is any.
Row judge_fabric(const AskedFabric& asked) {
  if (const auto error = asked.said.value("error", ""); !error.empty()) {
    return asked.needed() ? absent_fabric(asked, error)
                          : skipped(kFabric, asked.role, "libfabric is not needed here: " + error);
  }
  if (asked.said.value("not_built", false))
    return unknown(kFabric, asked.role, asked.said.value("provider_error", ""));
  const auto domains = asked.said.value("domains", std::vector<json>());
  if (domains.empty()) {
    const auto value = fmt::format("{} offers no {}: {}", asked.library(), asked.provider,
                                   asked.said.value("provider_error", "it lists no domain"));
    return asked.needed() ? absent_fabric(asked, value) : skipped(kFabric, asked.role, value);
  }
  if (!std::ranges::all_of(domains, [](const json& domain) { return domain.value("opened", false); }))
    return refused_fabric(asked, domains);
  const auto down =
      std::ranges::count_if(domains, [](const json& domain) { return domain.value("link", "") == "down"; });
  auto value = fmt::format("{}: {} x {}", asked.library(), domains.size(), asked.provider);
  if (down > 0) value += fmt::format(", {} with its link down", down);
  const bool few = static_cast<std::int64_t>(domains.size()) - down < asked.node().nic_count;
  if (asked.needed() && (few || down > 0)) {
    return warned(kFabric, asked.role, value, asked.expected(),
                  {"see the rows of 'nics': NCCL does not use what libfabric does not show"});
  }
  return passed(kFabric, asked.role, value);
}

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
    rows.push_back(
        answer->error.empty()
            ? judge_fabric({observations, name, fabric_provider(observations.planned()), answer->said})
            : unknown(kFabric, name, answer->error));
  }
  return rows;
}

const Registered<NodeCheck> fabric_check{{
    .order = 120,
    .name = kFabric,
    .what = "each role's libfabric offers the site's provider, and the job can open the NICs",
    .judge = check_fabric,
}};

bool over_a_fabric(const NodeObservations& observations) {
  return observations.plan.node.count > 1 || !observations.planned().nic_kind.empty();
}

std::vector<std::string> provider_of_site(const NodeObservations& observations,
                                          const plan::BoundProcess* /*process*/) {
  return {fabric_provider(observations.planned())};
}

const Registered<Inquiry> fabric_inquiry{{
    .name = kFabric,
    .of = Inquiry::Of::roles,
    .arguments = provider_of_site,
    .applies = over_a_fabric,
}};

}  // namespace
}  // namespace nlaunch::preflight
