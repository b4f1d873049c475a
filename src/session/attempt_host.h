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

/// Where the processes of one attempt live: this machine, or the nodes of an allocation. It is bound once,
/// then checked or measured in, and at last its processes are supervised.
class AttemptHost {
 public:
  /// Why an attempt goes no further.
  struct Refused {
    int exit_code = 0;
    std::string outcome;  ///< for the summary
    std::string sentence;
    std::vector<preflight::Suspect> suspects{};  ///< nodes without which another attempt may go better
  };
  /// A node that could not be bound; `exit_code` says whether the machine is to blame (exit_code::internal).
  static Refused not_bound(int exit_code, std::string sentence) {
    return {exit_code,
            exit_code == nlaunch::exit_code::internal ? "internal" : "not-started",
            std::move(sentence),
            {}};
  }
  /// What is known once it is bound.
  struct Bound {
    std::vector<std::string> notes;    ///< what a person should hear
    std::vector<std::string> dropped;  ///< inherited variables that were not passed on, by name
    supervise::Json lock;              ///< for lock.json
  };
  /// Who had which libnccl.
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
  /// In place of bind and check: the processes of this attempt run, and nobody leads them any more.
  virtual std::optional<Refused> take_over(const launch::RunPaths& /*paths*/) {
    return Refused{exit_code::bad_input, "not-started", "a run on one machine ends with its nlaunch", {}};
  }
  virtual preflight::Report check(const preflight::Options& options) = 0;
  /// The ranks of the plan where it is bound, each with the libnccl that its role loads there. To be asked
  /// for before measure().
  virtual Result<std::vector<preflight::Rank>> ranks() = 0;
  /// Lets fresh probes, each in its rank's environment, do these trials, whose members are indices into
  /// ranks(). As often as one likes. What they leave is in "preflight" of the attempt until the next time.
  virtual preflight::Measured measure(std::vector<preflight::GroupTrial> trials,
                                      const preflight::Deadlines& deadlines) = 0;
  /// Why nothing can be measured here any more; empty: it can.
  [[nodiscard]] virtual std::string lost() const { return ""; }
  virtual supervise::Outcome supervise(unsigned attempt, supervise::EventLog& events) = 0;

  /// The last that is heard of the run, whose summary is written. Nodes that were not given one of their own
  /// get it here.
  virtual void conclude(int /*exit_code*/) {}

  [[nodiscard]] const Bound& bound() const { return bound_; }
  [[nodiscard]] virtual Audit audit() = 0;
  /// `text` without the secrets that are known here.
  [[nodiscard]] virtual std::string mask(const std::string& text) const = 0;

 protected:
  Bound bound_;
};

}  // namespace nlaunch::session
