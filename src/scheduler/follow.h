#pragma once
#include "scheduler/scheduler.h"

namespace nlaunch::scheduler {

/// A scheduler whose nodes share a directory with us: the run is followed in the job's own log there.
class FollowedScheduler : public Scheduler {
 public:
  [[nodiscard]] int submit(const plan::Plan& plan, const SubmitOptions& options,
                           const session::Caller& caller) const override;

 protected:
  /// The program that submits; a failure says what to do instead.
  [[nodiscard]] virtual Result<std::string> find_program(
      const plan::Plan& plan, const std::vector<std::string>& environment) const = 0;
  /// Name of the script in the run directory.
  [[nodiscard]] virtual std::string file_name() const = 0;
  /// What is known to go wrong before the job is submitted is a failure; anything else worth saying is a
  /// note.
  [[nodiscard]] virtual Result<std::vector<std::string>> check(
      const plan::Plan& plan, const std::vector<std::string>& environment) const = 0;
  /// Submits with the command from `render` and returns the job id.
  [[nodiscard]] virtual Result<std::string> hand_over(const plan::Plan& plan,
                                                      const std::vector<std::string>& words,
                                                      const std::vector<std::string>& environment) const = 0;
};

}  // namespace nlaunch::scheduler
