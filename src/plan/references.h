#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/interpolation.h"
#include "config/experiment.h"
#include "config/site.h"
#include "plan/bound.h"
#include "plan/plan.h"

/// What `${...}` can name, and its value. plan/reference_table.h has them all.
namespace nlaunch::plan {

/// The names as a plan knows them. All arguments must outlive this.
class PlanNames {
 public:
  /// `caller`: its environment, for `${env.NAME}`.
  PlanNames(const config::Experiment& experiment, const config::Site& site,
            const std::map<std::string, std::string>& caller)
      : experiment_(experiment), site_(site), caller_(caller) {}

  /// Resolves the `vars:`; cycles and unknown names become diagnostics.
  void resolve_vars(Diagnostics& diagnostics);
  [[nodiscard]] const std::map<std::string, std::string>& vars() const { return vars_; }
  /// The same for a caller with another environment, which must outlive the copy.
  [[nodiscard]] PlanNames with_caller(const std::map<std::string, std::string>& caller) const {
    PlanNames names(experiment_, site_, caller);
    names.vars_ = vars_;
    return names;
  }

  /// `text` with everything that the plan knows filled in; references that only a node knows are kept. Errors
  /// become diagnostics at their location. `role`: the role of the text, or nullptr outside of roles, where
  /// `${self.*}` is not available.
  std::string resolve(const config::Text& text, const config::Role* role, Diagnostics& diagnostics) const;

  // Accessors for the rows of the table.
  [[nodiscard]] const config::Experiment& experiment() const { return experiment_; }
  [[nodiscard]] const config::Site& site() const { return site_; }
  [[nodiscard]] const std::map<std::string, std::string>& caller() const { return caller_; }

 private:
  std::optional<std::string> resolve_var(const std::string& name, std::vector<std::string>& open,
                                         Diagnostics& diagnostics);

  const config::Experiment& experiment_;
  const config::Site& site_;
  const std::map<std::string, std::string>& caller_;
  std::map<std::string, std::string> vars_;
};

/// The names that a plan leaves open, as one node knows them.
class NodeNames {
 public:
  /// The location of a run's files.
  struct Folders {
    std::string id;  ///< of the run
    std::filesystem::path run;
    std::filesystem::path attempt;
    std::string resume{};  ///< the checkpoint that the learners start from; empty: none
  };
  /// The ports in `plan` are the bound ones; `addresses`: the addresses at which the nodes reach each other,
  /// by node index. The references must outlive this.
  NodeNames(const Plan& plan, const BoundNode& node, std::vector<std::string> addresses, Folders folders)
      : plan_(plan), node_(node), addresses_(std::move(addresses)), folders_(std::move(folders)) {}

  /// `text` with every reference replaced; `process` is the process of the text, or nullptr. A reference that
  /// cannot be resolved becomes a diagnostic that names the text's owner.
  std::string resolve(const std::string& text, const Process* process, Diagnostics& diagnostics) const;

  /// HOST:PORT of the first port of each process of a role; for replicas, of their leaders.
  [[nodiscard]] std::vector<std::string> addresses(const Role& role) const;
  /// The address of each node that a role uses, in plan order.
  [[nodiscard]] std::vector<std::string> hosts(const Role& role) const;
  [[nodiscard]] std::filesystem::path addrs_file(const std::string& role) const;
  [[nodiscard]] std::filesystem::path env_file(const std::string& role) const;

  // Accessors for the rows of the table.
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const BoundNode& node() const { return node_; }
  [[nodiscard]] const Folders& folders() const { return folders_; }
  [[nodiscard]] const std::string& address_of(std::uint32_t node) const { return addresses_.at(node); }
  [[nodiscard]] const std::string& address_of(const Process& process) const {
    return address_of(process.node);
  }

 private:
  const Plan& plan_;
  const BoundNode& node_;
  std::vector<std::string> addresses_;
  Folders folders_;
};

/// True if others address a role's processes at this one: a replica is addressed at its leader, and a standby
/// is not addressed.
bool is_reached(const Role& role, const Process& process);

}  // namespace nlaunch::plan
