#include "preflight/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace nlaunch::preflight {
namespace {

constexpr std::array<std::string_view, 4> kOfSpeed{"bandwidth", "slow-node", "peers", "baseline"};

bool is_wrong(const Row& row) {
  return row.status == Status::fail || row.status == Status::warn;
}

bool share_a_host(const Row& a, const Row& b) {
  if (a.hosts.empty() || b.hosts.empty()) return true;  // there is only one
  return std::ranges::any_of(
      a.hosts, [&](const auto& host) { return std::ranges::find(b.hosts, host) != b.hosts.end(); });
}

/// Of a slow GPU, only its own users matter; of a slow group, those of each GPU of its nodes.
bool concerns(const Row& used, const Row& slow) {
  const auto gpu = used.subject.substr(0, used.subject.find(" ("));
  const bool of_gpus = slow.subject.contains("GPU ");
  const auto words = fmt::format(" {} ", slow.subject);
  return share_a_host(used, slow) && (!of_gpus || words.contains(fmt::format(" {} ", gpu)));
}

}  // namespace

std::string_view name_of(Responsible responsible) {
  return responsible == Responsible::nobody ? "" : word_of(responsible);
}

Row passed(std::string check, std::string subject, std::string value, std::string expected) {
  return {std::move(check),    Status::pass, std::move(subject), std::move(value),
          std::move(expected), "",           Responsible::nobody};
}

Row skipped(std::string check, std::string subject, std::string reason) {
  return {std::move(check), Status::skip, std::move(subject), std::move(reason), "", "", Responsible::nobody};
}

Row unknown(std::string check, std::string subject, std::string reason) {
  return {std::move(check),   Status::unknown, std::move(subject), std::move(reason), "", "",
          Responsible::nobody};
}

Row failed(std::string check, std::string subject, std::string value, std::string expected, Remedy remedy) {
  return {std::move(check),    Status::fail,          std::move(subject), std::move(value),
          std::move(expected), std::move(remedy.fix), remedy.responsible};
}

Row warned(std::string check, std::string subject, std::string value, std::string expected, Remedy remedy) {
  auto row =
      failed(std::move(check), std::move(subject), std::move(value), std::move(expected), std::move(remedy));
  row.status = Status::warn;
  return row;
}

Status worst(const std::vector<Row>& rows) {
  for (const auto status : {Status::fail, Status::unknown, Status::warn}) {
    if (std::ranges::find(rows, status, &Row::status) != rows.end()) return status;
  }
  return Status::pass;
}

void explain_by_users(std::vector<Row>& rows) {
  for (auto& slow : rows) {
    if (!is_wrong(slow) || std::ranges::find(kOfSpeed, slow.check) == kOfSpeed.end()) continue;
    const auto used = std::ranges::find_if(rows, [&](const Row& row) {
      return row.check == "gpu-processes" && is_wrong(row) && concerns(row, slow);
    });
    if (used == rows.end()) continue;
    slow.fix = fmt::format("{} is {}: {}", used->subject, used->value,
                           used->fix.empty() ? "check again without it" : used->fix);
    slow.responsible = used->responsible;
  }
}

}  // namespace nlaunch::preflight
