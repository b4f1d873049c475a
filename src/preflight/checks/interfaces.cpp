#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/registry.h"
#include "base/text.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

constexpr auto kInterfaces = "interfaces";

/// A variable that names the interfaces which a library may use.
struct InterfaceVariable {
  std::string_view name;
  bool prefixes = false;  ///< NCCL: prefixes, "^" excludes, "=" means whole names. Gloo: whole names
};
/// NCCL src/misc/socket.cc; Gloo transport/tcp/device.cc
constexpr std::array<InterfaceVariable, 2> kVariables{{{"NCCL_SOCKET_IFNAME", true}, {"GLOO_SOCKET_IFNAME"}}};

/// Whether an interface of this node is one that the value names.
bool names_one(const InterfaceVariable& variable, std::string value,
               const std::vector<std::string>& interfaces) {
  const bool whole = !variable.prefixes || value.starts_with('=');
  if (variable.prefixes && value.starts_with('^')) return true;
  if (value.starts_with('=')) value.erase(0, 1);
  const auto words = text::split(value, ',');
  return std::ranges::any_of(words, [&](const std::string& written) {
    const auto word = written.substr(0, written.find(':'));  // NCCL: "eth0:4000", with a port
    return std::ranges::any_of(interfaces, [&](const std::string& one) {
      return whole ? one == word : !word.empty() && one.starts_with(word);
    });
  });
}

/// Where the experiment or the profile sets it: "grpo.yaml:7:12"; empty: a module or the caller.
std::string origin_of(const plan::Role& role, std::string_view variable) {
  const auto last = std::ranges::find_if(role.env.rbegin(), role.env.rend(),
                                         [&](const plan::EnvOp& op) { return op.name == variable; });
  return last == role.env.rend() ? "" : last->origin;
}

Row judge_variable(const NodeObservations& observations, const plan::Role& role,
                   const InterfaceVariable& variable, const std::string& value) {
  const auto origin = origin_of(role, variable.name);
  const auto place = origin.empty() ? std::string() : fmt::format(" ({})", origin);
  const auto setting = fmt::format("{}={}{}", variable.name, value, place);
  if (names_one(variable, value, observations.interfaces)) return passed(kInterfaces, role.name, setting);
  auto row = failed(kInterfaces, role.name, setting + " names no interface of this node",
                    fmt::format("one of {}", text::join(observations.interfaces, ", ")),
                    {fmt::format("write one of them there{}, or remove the variable",
                                 variable.prefixes ? ", or its prefix" : "")});
  // Without GPUs nothing uses NCCL, and a service may not use Gloo.
  const bool used = computes(role.kind) && (!variable.prefixes || observations.has_gpus());
  if (!used) row.status = Status::warn;
  return row;
}

std::vector<Row> check_interfaces(const NodeObservations& observations) {
  std::vector<Row> rows;
  if (observations.interfaces.empty()) return rows;
  for (const auto& [index, process] : observations.first_of_roles()) {
    for (const auto& variable : kVariables) {
      const auto value = variable_of(*process, std::string(variable.name)).value_or("");
      if (!value.empty())
        rows.push_back(judge_variable(observations, observations.plan.roles[index], variable, value));
    }
  }
  return rows;
}

const Registered<NodeCheck> interfaces_check{{
    .order = 125,
    .name = kInterfaces,
    .what = "NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME name an interface of the node",
    .judge = check_interfaces,
}};

}  // namespace
}  // namespace nlaunch::preflight
