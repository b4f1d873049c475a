#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

constexpr auto kCheck = "nics";
constexpr std::array<std::string_view, 4> kKinds{"cxi", "ib", "roce", "efa"};

std::string str(const json& of, const char* key) {
  return of.value(key, std::string());
}

struct Nics {
  const NodeObservations& observations;
  std::string kind;          ///< that the site names
  std::vector<json> mine{};  ///< of that kind
  std::size_t usable = 0;
  double fastest = 0;  ///< Gb/s
  /// The run, or the profile of a node that is checked for itself, counts on them.
  bool needed = false;

  [[nodiscard]] std::size_t wanted() const { return observations.plan.node.nic_count; }
  [[nodiscard]] std::string expected() const {
    return wanted() == 0 ? fmt::format("{} NICs", kind) : fmt::format("{} x {}", wanted(), kind);
  }
};

/// "8 x ib, 400 Gb/s; 1 x roce, 25 Gb/s": of those that are up the fastest.
std::string summary(const std::vector<json>& nics) {
  std::map<std::string, std::pair<int, double>> kinds;
  for (const auto& nic : nics) {
    auto& [count, gbits] = kinds[str(nic, "kind")];
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

/// Why a job cannot use it, and who can help; an empty text: it can.
std::pair<std::string, Remedy> trouble_of(const json& nic) {
  const auto device = str(nic, "device");
  if (str(nic, "driver").empty())
    return {"has no driver", {"load its driver, or report the node", Responsible::admin}};
  if (!nic.value("up", false)) {
    const auto state = str(nic, "state");
    return {fmt::format("the link is down{}", state.empty() ? "" : fmt::format(" ({})", state)),
            {"report the node: a cable, a switch port or the NIC itself", Responsible::admin}};
  }
  if (const auto error = str(nic, "device_error"); !error.empty()) {
    return {
        fmt::format("{} cannot be opened: {}", device, error),
        {fmt::format("in a container: give it {} (--device); else the user needs the right to it", device)}};
  }
  return {};
}

Row of_status(Row row, Status status) {
  row.status = status;
  return row;
}

/// What is wrong with those that are there. A link that is down does no harm where enough others are up.
void judge_each(const Nics& nics, std::vector<Row>& rows) {
  const bool short_of = nics.usable < nics.wanted() || nics.usable == 0;
  for (const auto& nic : nics.mine) {
    const auto interface = str(nic, "interface");
    const auto subject =
        interface.empty() ? str(nic, "name") : fmt::format("{} ({})", str(nic, "name"), interface);
    const auto [trouble, remedy] = trouble_of(nic);
    if (!trouble.empty()) {
      rows.push_back(of_status(failed(kCheck, subject, trouble, nics.expected(), remedy),
                               short_of && nics.needed ? Status::fail : Status::warn));
    } else if (const auto gbits = nic.value("gbits", 0.0); gbits > 0 && gbits < nics.fastest) {
      rows.push_back(warned(kCheck, subject, fmt::format("{:g} Gb/s", gbits),
                            fmt::format("{:g} Gb/s, as the others have", nics.fastest),
                            {"report the node: its link came up slower than it should", Responsible::admin}));
    }
  }
}

bool is_kind(const std::string& card, const std::string& kind) {
  return card == kind || (card == "mlx5" && (kind == "ib" || kind == "roce"));
}

void judge_idle(const Nics& nics, const json& cards, std::vector<Row>& rows) {
  for (const auto& card : cards) {
    if (!is_kind(str(card, "kind"), nics.kind)) continue;
    rows.push_back(of_status(
        failed(kCheck, fmt::format("{} ({})", str(card, "bus_id"), str(card, "id")), "has no driver",
               nics.expected(), {"load its driver, or report the node", Responsible::admin}),
        nics.needed && nics.usable < std::max<std::size_t>(nics.wanted(), 1) ? Status::fail : Status::warn));
  }
}

Row judge_number(const Nics& nics, const std::vector<json>& all) {
  if (nics.usable > 0 && nics.usable >= nics.wanted()) {
    return passed(kCheck, nics.kind, fmt::format("{} usable, {:g} Gb/s", nics.usable, nics.fastest),
                  nics.expected());
  }
  const auto value = nics.mine.empty() ? fmt::format("none of this kind; there are: {}", summary(all))
                                       : fmt::format("{} of {} can be used", nics.usable, nics.mine.size());
  return of_status(
      failed(kCheck, nics.kind, value, nics.expected(),
             {"report the node; or correct node.nics of the site's profile", Responsible::admin}),
      nics.needed ? Status::fail : Status::warn);
}

/// Without these the cxi provider takes whatever service of the NIC is open to everybody, if there is one
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
      rows.push_back(passed(kCheck, subject, "has the job's SLINGSHOT_ variables"));
    } else {
      rows.push_back(
          warned(kCheck, subject, fmt::format("no {} in its environment", text::join(absent, ", ")),
                 "those that Slurm gives to a step",
                 {"without them the NICs may refuse the job (\"Invalid VNI\"): start it in a step of "
                  "srun, and let containers and wrappers keep SLINGSHOT_*"}));
    }
  }
}

}  // namespace

std::vector<Row> check_nics(const NodeObservations& observations) {
  const auto* answer = observations.answer("nics");
  if (answer == nullptr) return {};
  const auto& node = observations.plan.node;
  if (!answer->error.empty()) {
    return node.nic_kind.empty() ? std::vector<Row>()
                                 : std::vector{unknown(kCheck, node.nic_kind, answer->error)};
  }
  const auto all = answer->said.value("nics", std::vector<json>());
  if (node.nic_kind.empty())
    return all.empty() ? std::vector<Row>() : std::vector{passed(kCheck, "this machine", summary(all))};
  if (std::ranges::find(kKinds, node.nic_kind) == kKinds.end()) {
    return {skipped(kCheck, node.nic_kind,
                    fmt::format("it is not known how such NICs are found; those that are: {}",
                                text::join(std::vector<std::string>(kKinds.begin(), kKinds.end()), ", ")))};
  }
  Nics nics{.observations = observations, .kind = node.nic_kind};
  nics.needed = node.count > 1 || observations.for_the_machine();
  for (const auto& nic : all) {
    if (str(nic, "kind") != nics.kind) continue;
    nics.mine.push_back(nic);
    if (trouble_of(nic).first.empty()) ++nics.usable;
    if (nic.value("up", false)) nics.fastest = std::max(nics.fastest, nic.value("gbits", 0.0));
  }
  std::vector<Row> rows{judge_number(nics, all)};
  judge_each(nics, rows);
  judge_idle(nics, answer->said.value("idle", json::array()), rows);
  if (nics.kind == "cxi" && node.count > 1) judge_slingshot(observations, rows);
  return rows;
}

}  // namespace nlaunch::preflight
