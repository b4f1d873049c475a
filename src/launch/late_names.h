#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/interpolation.h"
#include "launch/bind.h"
#include "launch/node_addresses.h"

namespace nlaunch::launch {

/// What the references mean that a plan leaves open, on one node.
class LateNames {
 public:
  /// The ports in `plan` are the bound ones.
  LateNames(const plan::Plan& plan, const NodeAddresses& directory, const plan::BoundNode& node,
            const RunPaths& paths);

  /// `text` with every reference replaced; `process` is whose text it is, or nullptr. What cannot be told
  /// becomes a diagnostic that says in whose text.
  std::string resolve(const std::string& text, const plan::Process* process, Diagnostics& diagnostics) const;

  /// HOST:PORT of the first port of each process of a role.
  [[nodiscard]] std::vector<std::string> addresses(const plan::Role& role) const;

  /// The address of each node that a role is on, in plan order.
  [[nodiscard]] std::vector<std::string> hosts(const plan::Role& role) const;

  [[nodiscard]] std::filesystem::path addrs_file(const std::string& role) const;
  [[nodiscard]] std::filesystem::path env_file(const std::string& role) const;

 private:
  [[nodiscard]] Lookup look_up(std::string_view name, const plan::Process* process) const;
  [[nodiscard]] Lookup look_up_self(std::string_view word, const plan::Process& process) const;
  [[nodiscard]] Lookup look_up_role(std::string_view rest) const;
  [[nodiscard]] Lookup look_up_newest(const std::string& glob) const;

  const plan::Plan& plan_;
  const NodeAddresses& directory_;
  const plan::BoundNode& node_;
  const RunPaths& paths_;
};

}  // namespace nlaunch::launch
