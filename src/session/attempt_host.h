#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/exit_code.h"
#include "launch/bind/bind.h"
#include "preflight/examine.h"
#include "preflight/search/suspects.h"
#include "supervise/supervisor.h"

namespace nlaunch::session {

/// Where the processes of one attempt run: this machine, or the nodes of an allocation. It is bound once,
/// then checked or used for measurements; finally it supervises the processes.
class AttemptHost {
 public:
  /// Why an attempt does not proceed.
  struct Refused {
    int exit_code = 0;
    std::string outcome;  ///< for the summary
    std::string sentence;
    std::vector<preflight::Suspect> suspects{};  ///< nodes to avoid: without them another attempt may succeed
  };
  /// A node that could not be bound; `exit_code` tells whether the machine is the cause
  /// (exit_code::internal).
  static Refused not_bound(int exit_code, std::string sentence) {
    return {exit_code,
            exit_code == nlaunch::exit_code::internal ? "internal" : "not-started",
            std::move(sentence),
            {}};
  }
  /// What is known after binding.
  struct Bound {
    std::vector<std::string> notes;    ///< for the user
    std::vector<std::string> dropped;  ///< inherited variables that were not passed on, by name
  };
  /// Which libnccl each process used.
  struct Audit {
    std::vector<std::string> lines;  ///< for people
    std::size_t findings = 0;
    supervise::Json json = supervise::Json::object();  ///< for audit.json
  };

  AttemptHost() = default;
  virtual ~AttemptHost() = default;
  AttemptHost(const AttemptHost&) = delete;
  AttemptHost& operator=(const AttemptHost&) = delete;

  virtual std::optional<Refused> bind(const launch::RunPaths& paths) = 0;
  /// Instead of bind and check: the processes of this attempt are running and have no leader any more.
  virtual std::optional<Refused> take_over(const launch::RunPaths& /*paths*/) {
    return Refused{exit_code::bad_input, "not-started", "a run on one machine ends with its nlaunch", {}};
  }
  /// What the bound attempt is made of, for lock.json: launch::provenance(). A Git repository can take a
  /// while.
  [[nodiscard]] virtual supervise::Json lock() const = 0;
  virtual preflight::Report check(const preflight::Options& options) = 0;
  /// The ranks of the bound plan, each with the libnccl that its role loads there. Must be called before
  /// measure().
  virtual Result<std::vector<preflight::Rank>> ranks() = 0;
  /// Runs these trials in fresh probes, each in the environment of its rank; their members are indices into
  /// ranks(). Can be called any number of times. Output stays in "preflight" of the attempt until the next
  /// call.
  virtual preflight::Measured measure(std::vector<preflight::GroupTrial> trials,
                                      const preflight::Deadlines& deadlines) = 0;
  /// Why nothing can be measured here any more; empty: measuring is still possible.
  [[nodiscard]] virtual std::string lost() const { return ""; }
  virtual supervise::Outcome supervise(unsigned attempt, supervise::EventLog& events) = 0;

  /// Nothing more is asked of the nodes. Those that do not need a summary may exit while it is written.
  virtual void leave() {}
  /// Called last, when the summary of the run is written. Nodes that do not have a summary yet receive it
  /// here.
  virtual void conclude(int /*exit_code*/) {}

  [[nodiscard]] const Bound& bound() const { return bound_; }
  [[nodiscard]] virtual Audit audit() = 0;
  /// `text` with the secrets that are known here masked.
  [[nodiscard]] virtual std::string mask(const std::string& text) const = 0;

 protected:
  Bound bound_;
};

}  // namespace nlaunch::session
