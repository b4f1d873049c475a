#include "commands/preflight_inner.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/json.h"
#include "base/text.h"
#include "launch/run_dir/run_folder.h"
#include "plan/environment.h"
#include "preflight/report/report_json.h"
#include "session/node_worker.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// A directory for one check at a time, always at the same path and emptied by the next check: a check that
/// is killed leaves no more than that behind.
class Workplace {
 public:
  /// Uses the first of `places` where it can be created.
  static Result<Workplace> take(const std::vector<fs::path>& places, Clock::time_point deadline) {
    std::string why;
    for (const auto& place : places) {
      Workplace workplace;
      workplace.paths_ = {"node-check", place / fmt::format("nlaunch-{}-node", ::geteuid()), {}};
      const auto made = sys::make_private_folder(workplace.paths_.folder);
      if (made) {
        const auto file = workplace.paths_.folder / "lock";
        workplace.lock_ = sys::UniqueFd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        if (workplace.lock_) return std::move(workplace).begin(deadline);
      }
      why += fmt::format("{}{}", why.empty() ? "" : ", ", place.string());
    }
    return failure("preflight.folder", "cannot create a directory in {}", why);
  }

  ~Workplace() {
    std::error_code ignored;
    if (lock_) fs::remove_all(paths_.attempt, ignored);
  }
  Workplace(Workplace&&) = default;
  Workplace& operator=(Workplace&&) = default;

  [[nodiscard]] const launch::RunPaths& paths() const { return paths_; }

 private:
  Workplace() = default;

  Result<Workplace> begin(Clock::time_point deadline) && {
    constexpr Duration kGlance = 20ms;
    while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (Clock::now() > deadline) {
        lock_.reset();
        return failure("preflight.busy", "another check of this machine is running");
      }
      std::this_thread::sleep_for(kGlance);
    }
    std::error_code ignored;
    fs::remove_all(paths_.folder / "attempt-0", ignored);
    if (const auto made = launch::make_attempt_folder(paths_, 0); !made) return std::unexpected(made.error());
    return std::move(*this);
  }

  launch::RunPaths paths_;
  sys::UniqueFd lock_;
};

preflight::Report report_of(std::vector<preflight::Row> rows) {
  preflight::Report report;
  report.rows = std::move(rows);
  report.verdict = preflight::worst(report.rows);
  return report;
}

/// Compares the GPUs that the profile and Slurm know (Slurm gives a Prolog those of the job) with those that
/// NVML shows. A plan for this machine uses the GPUs that exist, so it would find no problem on a node that
/// has lost one.
std::vector<preflight::Row> missing_gpus(std::uint32_t wanted, const Result<launch::Machine>& machine,
                                         const plan::Environment& environment) {
  constexpr auto kCheck = "gpus";
  constexpr auto kSubject = "number";
  const auto given = environment.find("CUDA_VISIBLE_DEVICES");
  if (wanted == 0 && given == environment.end()) return {};
  if (!machine) return {preflight::unknown(kCheck, kSubject, machine.error().first_message())};
  if (!machine->nvml_error.empty()) return {preflight::unknown(kCheck, kSubject, machine->nvml_error)};
  const preflight::Remedy remedy{"report the node: a GPU is missing", preflight::Responsible::admin};
  if (machine->gpus.size() < wanted) {
    return {preflight::failed(kCheck, kSubject, text::count(machine->gpus.size(), "GPU"),
                              fmt::format("{}, as the profile says", wanted), remedy)};
  }
  const auto visible = launch::visible_gpus(*machine, given == environment.end() ? nullptr : &given->second);
  if (visible) return {};
  return {preflight::failed(kCheck, "CUDA_VISIBLE_DEVICES", visible.error().first_message(),
                            "GPUs of this machine", remedy)};
}

/// Jobs may be running on the node: processes that use a GPU are reported, but are not a fault of the node.
void excuse_users(std::vector<preflight::Row>& rows) {
  for (auto& row : rows) {
    if (row.check == "gpu-processes" && row.status == preflight::Status::fail)
      row.status = preflight::Status::warn;
  }
}

Result<preflight::Report> check(const PlanArgs& args, const std::string& level, Duration time,
                                Context context) {
  const auto deadline = Clock::now() + time;
  launch::MachineSource source(launch::find_install());
  const auto site = load_site(args, context, source);
  if (!site) return std::unexpected(site.error());
  auto rows = missing_gpus(site->gpus ? site->gpus->value : 0, source.get(),
                           plan::to_environment(context.environment));
  if (preflight::worst(rows) == preflight::Status::fail) return report_of(std::move(rows));
  if (!rows.empty()) {  // checks that do not need GPUs are still possible
    std::erase_if(context.environment,
                  [](const std::string& entry) { return entry.starts_with("CUDA_VISIBLE_DEVICES="); });
  }
  const auto plan = load_machine_plan(args, context, source);
  if (!plan) return std::unexpected(plan.error());

  const auto workplace = Workplace::take({plan->node.scratch, "/tmp", "/dev/shm", "/run"}, deadline);
  if (!workplace) {
    rows.push_back(preflight::unknown("node", "this machine", workplace.error().first_message()));
    return report_of(std::move(rows));
  }
  const auto& paths = workplace->paths();
  session::NodeWorker worker(*plan, {.environment = context.environment, .machine = source});
  if (const auto refused = worker.bind_alone(paths, true)) return std::unexpected(refused->why);
  auto request = worker.preflight_request();
  request.options.level = level.empty() ? plan->preflight.level : level_of(level);
  const auto step = std::min<Duration>(request.deadlines.op, time / 3);
  request.deadlines = {step, step};
  request.cancelled = [deadline] { return Clock::now() > deadline; };
  auto report = preflight::run(request);
  report.rows.insert(report.rows.begin(), rows.begin(), rows.end());
  excuse_users(report.rows);
  report.verdict = preflight::worst(report.rows);
  return report;
}

}  // namespace

int check_this_machine(const PlanArgs& args, const std::string& level, Duration time,
                       const Context& context) {
  std::error_code gone;
  if (fs::current_path(gone).empty()) fs::current_path("/");
  const auto report = check(args, level, time, context);
  if (!report) return context.console.error(report.error());
  context.console.result(json_text(preflight::to_json(*report)) + "\n");
  return 0;
}

}  // namespace nlaunch::commands
