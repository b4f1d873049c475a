#pragma once
#include "scheduler/scheduler.h"

namespace nlaunch::scheduler {

/// A scheduler whose nodes share a folder with us: the run is followed there, in the job's own log.
class FollowedScheduler : public Scheduler {
 public:
  [[nodiscard]] int submit(const plan::Plan& plan, const SubmitOptions& options,
                           const session::Caller& caller) const override;

 protected:
  /// The program that submits; a failure says what to do without one.
  [[nodiscard]] virtual Result<std::string> find_program(
      const plan::Plan& plan, const std::vector<std::string>& environment) const = 0;
  /// Of the script, in the run directory.
  [[nodiscard]] virtual std::string file_name() const = 0;
  /// What would go wrong, as far as it is known before the job is submitted, is a failure; else notes.
  [[nodiscard]] virtual Result<std::vector<std::string>> check(
      const plan::Plan& plan, const std::vector<std::string>& environment) const = 0;
  /// Submits, by the words that `render` gave, and returns the job's id.
  [[nodiscard]] virtual Result<std::string> hand_over(const plan::Plan& plan,
                                                      const std::vector<std::string>& words,
                                                      const std::vector<std::string>& environment) const = 0;
};

}  // namespace nlaunch::scheduler
