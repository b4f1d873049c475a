#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/interpolation.h"
#include "launch/bind.h"

namespace nlaunch::launch {

/// What the references mean that a plan leaves open, on one node.
class LateNames {
 public:
  /// The ports in `plan` are the bound ones.
  LateNames(const plan::Plan& plan, const plan::BoundNode& node, const RunPaths& paths);

  /// `text` with every reference replaced; `process` is whose text it is, or nullptr. What cannot be told
  /// becomes a diagnostic that says in whose text.
  std::string resolve(const std::string& text, const plan::Process* process, Diagnostics& diagnostics) const;

  /// HOST:PORT of the first port of each process of a role.
  [[nodiscard]] std::vector<std::string> addresses(const plan::Role& role) const;

  [[nodiscard]] std::filesystem::path addrs_file(const std::string& role) const;
  [[nodiscard]] std::filesystem::path env_file(const std::string& role) const;

 private:
  [[nodiscard]] Lookup look_up(std::string_view name, const plan::Process* process) const;
  [[nodiscard]] Lookup look_up_self(std::string_view word, const plan::Process& process) const;
  [[nodiscard]] Lookup look_up_role(std::string_view rest) const;
  [[nodiscard]] Lookup look_up_newest(const std::string& glob) const;

  const plan::Plan& plan_;
  const plan::BoundNode& node_;
  const RunPaths& paths_;
};

/// The address by which the processes of a run on one machine reach each other.
inline constexpr std::string_view kLoopback = "127.0.0.1";

}  // namespace nlaunch::launch
