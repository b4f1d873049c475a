#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "fleet/leader.h"
#include "launch/job/allocation.h"
#include "launch/job/job_script.h"
#include "launch/job/precheck.h"
#include "scheduler/follow.h"
#include "scheduler/step.h"
#include "sys/command.h"
#include "sys/spawn.h"

namespace nlaunch::scheduler {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60);

/// What `flux WORDS` printed, without the blanks around it. Its refusal is a failure with its words.
Result<std::string> ask(std::vector<std::string> words, const std::vector<std::string>& environment) {
  sys::SpawnRequest request;
  request.argv = std::move(words);
  request.env = environment;
  const auto what = text::join(request.argv, " ");
  const auto said = sys::run_command(std::move(request), kPatience);
  if (!said) return std::unexpected(said.error());
  if (said->timed_out)
    return failure("scheduler.flux", "{} did not answer within {}", what, format_duration(kPatience));
  if (said->status.ok()) return std::string(text::trim(said->out));
  return failure("scheduler.flux", "{} {}: {}", what, said->status.str(),
                 text::printable(text::trim(said->err)));
}

/// What a job's script says that is not in its plan. All paths are absolute.
struct FluxJob {
  std::string nlaunch;                 ///< this program
  std::string plan_file;               ///< the saved plan
  std::string output;                  ///< the job's log; the plan's directive wins
  std::vector<std::string> arguments;  ///< of `nlaunch run`, behind the plan
};

/// The batch script of a plan, its options as `#flux:` directives (RFC 36). The same arguments give the same
/// bytes. What flux batch could not be told, or would take for something else, is a failure.
class Script {
 public:
  explicit Script(const plan::Plan& plan) : plan_(plan) {}

  Result<std::string> write(const FluxJob& job) {
    add_default("job-name", plan_.name);
    add("nodes", std::to_string(plan_.node.count));
    add("exclusive", "");
    if (job.plan_file.contains("{{") && !given("output"))
      refuse(job.output, "double braces have a meaning there: give another --runs-dir");
    add_default("output", job.output);
    for (const auto& option : plan_.flux.directives) add(option.name, option.value);
    if (diagnostics_.has_errors()) return std::unexpected(std::move(diagnostics_));
    std::vector<std::string> command{job.nlaunch, "run", "--plan", job.plan_file};
    command.insert(command.end(), job.arguments.begin(), job.arguments.end());
    // Each comment begins with a word: a line of signs and then "flux:" would be a directive.
    return fmt::format(
        "#!/bin/bash\n"
        "# Job for Flux, made by nlaunch: {} on {}, from {}\n"
        "# What runs where, with which GPUs and which environment, is in its plan. To look at it:\n"
        "# nlaunch plan --plan {}\n"
        "# The plan is frozen: what is changed in the experiment from now on changes nothing here.\n"
        "{}\n"
        "# Flux signals this process, so it becomes nlaunch.\n"
        "exec {}\n",
        text::printable(plan_.name), text::printable(plan_.site), text::printable(plan_.experiment),
        text::printable(text::shell_quote(job.plan_file)), directives_, text::shell_join(command));
  }

 private:
  [[nodiscard]] bool given(std::string_view name) const {
    const auto& all = plan_.flux.directives;
    return std::ranges::find(all, name, &plan::Directive::name) != all.end();
  }

  void add_default(const std::string& name, const std::string& value) {
    if (!given(name)) add(name, value);
  }

  void add(const std::string& name, const std::string& value) {
    const auto word = value.empty() ? "--" + name : fmt::format("--{}={}", name, value);
    // Three quotes in a row begin a text of several lines there.
    if (text::printable(word) != word || word.find_first_of("'\"\\") != std::string::npos)
      return refuse(word,
                    "quotes, backslashes, line breaks and other control characters are not allowed there");
    directives_ += fmt::format("#flux: {}\n", text::shell_quote(word));
  }

  void refuse(const std::string& word, std::string hint) {
    diagnostics_.error("scheduler.flux-value", {}, fmt::format("'{}' cannot stand in a #flux: line", word))
        .hint = std::move(hint);
  }

  const plan::Plan& plan_;
  std::string directives_;
  Diagnostics diagnostics_;
};

/// A job of the instance that we are in: flux run starts an agent on each node.
class FluxStep : public StepLauncher {
 public:
  FluxStep(const plan::Plan& plan, const session::Caller& caller) : StepLauncher(plan), caller_(caller) {}

  /// Flux chooses them.
  [[nodiscard]] std::vector<std::string> nodes() const override {
    return std::vector<std::string>(plan().node.count);
  }
  [[nodiscard]] std::string log() const override { return "flux-run.log"; }
  /// From the SIGTERM of flux cancel to its SIGKILL (flux-cancel(1)).
  [[nodiscard]] Duration kill_wait() const override { return std::chrono::seconds(5); }
  [[nodiscard]] std::string look_at(const std::string& host) const override {
    return "look at the node: `flux resource status`, for " + host + ", and at flux-run.log of the attempt";
  }

 private:
  [[nodiscard]] Start start_agents(const launch::RunPaths& /*paths*/,
                                   const std::vector<std::string>& /*hosts*/,
                                   const std::vector<std::string>& agent) const override {
    const auto count = plan().node.count;
    std::vector<std::string> words{"flux",
                                   "run",
                                   fmt::format("--nodes={}", count),
                                   fmt::format("--ntasks={}", count),
                                   "--exclusive",
                                   "--input=/dev/null",
                                   "--setopt=cpu-affinity=off",
                                   "--setopt=gpu-affinity=off",
                                   "--setopt=pmi=off",
                                   "--setopt=exit-timeout=none",
                                   "--setopt=exit-on-error"};
    words.insert(words.end(), agent.begin(), agent.end());
    return {std::move(words), caller_.environment};
  }

  const session::Caller& caller_;
};

class FluxTarget : public session::RunTarget {
 public:
  FluxTarget(const plan::Plan& plan, bool share, const session::Caller& caller)
      : plan_(plan), share_(share), caller_(caller) {}

  std::unique_ptr<session::AttemptHost> next(const supervise::GuardianLink& guardian) override {
    return std::make_unique<fleet::Leader>(plan_, share_, std::make_unique<FluxStep>(plan_, caller_), caller_,
                                           guardian);
  }
  void record(const std::vector<preflight::Suspect>& /*suspects*/) override {}
  bool leave_out(const std::vector<preflight::Suspect>& /*suspects*/) override { return false; }

 private:
  const plan::Plan& plan_;
  bool share_;
  const session::Caller& caller_;
};

/// The instance that flux batch or flux alloc has made for us.
class FluxInstance : public CurrentJob {
 public:
  FluxInstance(std::string job_id, std::uint32_t nodes) : job_id_(std::move(job_id)), nodes_(nodes) {}

  [[nodiscard]] std::uint32_t nodes() const override { return nodes_; }
  [[nodiscard]] std::string misfit(const plan::Plan& plan) const override {
    if (nodes_ >= plan.node.count) return "";
    return fmt::format("job {} has {}, and the plan uses {}", job_id_, text::count(nodes_, "node"),
                       plan.node.count);
  }
  [[nodiscard]] std::unique_ptr<session::RunTarget> target(const plan::Plan& plan, bool share,
                                                           const session::Caller& caller) const override {
    return std::make_unique<FluxTarget>(plan, share, caller);
  }

 private:
  std::string job_id_;
  std::uint32_t nodes_;
};

/// A line of `flux jobs` in the format below.
constexpr std::string_view kFormat = "{status}\t{nodelist}\t{exception.note}";
JobState state_of(std::string_view line) {
  constexpr std::array<std::string_view, 3> kPending{"DEPEND", "PRIORITY", "SCHED"};
  constexpr std::array<std::string_view, 2> kRunning{"RUN", "CLEANUP"};
  auto fields = text::split(line, '\t');
  fields.resize(3);
  JobState job;
  job.state = fields[0];
  job.nodes = fields[1];
  job.reason = text::trim(fields[2]);
  const auto is = [&](const auto& all) { return std::ranges::find(all, job.state) != all.end(); };
  job.phase = is(kPending)   ? JobState::Phase::pending
              : is(kRunning) ? JobState::Phase::running
                             : JobState::Phase::over;
  return job;
}

class Flux : public FollowedScheduler {
 public:
  /// In the script of flux batch or the shell of flux alloc, which are no task of a job
  /// (flux-environment(7)).
  [[nodiscard]] Result<std::unique_ptr<CurrentJob>> detect(
      const std::vector<std::string>& environment) const override {
    const auto job = sys::env_value(environment, "FLUX_ENCLOSING_ID");
    if (job.empty() || !sys::env_value(environment, "FLUX_JOB_ID").empty()) return nullptr;
    const auto list = ask({"flux", "getattr", "hostlist"}, environment);
    if (!list) return std::unexpected(list.error());
    const auto nodes = launch::expand_nodelist(*list);
    if (!nodes) {
      return failure("scheduler.flux", "the hostlist of job {} is '{}', which is no list of nodes", job,
                     text::printable(*list));
    }
    return std::make_unique<FluxInstance>(std::string(job), static_cast<std::uint32_t>(nodes->size()));
  }

  [[nodiscard]] Result<Rendered> render(const plan::Plan& plan, const JobRequest& request,
                                        const std::vector<std::string>& /*environment*/) const override {
    const auto frozen = launch::freeze_plan(plan, request.runs_dir);
    if (!frozen) return std::unexpected(frozen.error());
    const auto all = std::filesystem::absolute(request.runs_dir).lexically_normal();
    const auto log = request.run_dir.empty() ? (all / plan.name).string() + "/flux-{{id}}.log"
                                             : request.run_dir + "/flux.log";
    FluxJob job{request.program, frozen->file, log, {"--runs-dir", all, "--here"}};
    job.arguments.insert(job.arguments.end(), request.arguments.begin(), request.arguments.end());
    auto script = Script(plan).write(job);
    if (!script) return std::unexpected(script.error());
    if (const auto saved = launch::save(*frozen); !saved) return std::unexpected(saved.error());
    const auto own = std::ranges::find(plan.flux.directives, "output", &plan::Directive::name);
    return Rendered{std::move(*script),
                    {plan.flux.submit.front(), "batch", request.output},
                    {},
                    own == plan.flux.directives.end() ? log : own->value};
  }

  [[nodiscard]] Result<std::optional<JobState>> state(
      const std::string& job, const std::vector<std::string>& environment) const override {
    const auto line =
        ask({"flux", "jobs", "--no-header", "--format=" + std::string(kFormat), job}, environment);
    if (line) return line->empty() ? std::nullopt : std::optional(state_of(*line));
    if (line.error().first_message().ends_with(" unknown")) return std::nullopt;
    return std::unexpected(line.error());
  }

  /// A job that runs has nlaunch as its initial program, which hears of the end of its instance.
  [[nodiscard]] Result<void> cancel(const std::string& job, Cancel how,
                                    const std::vector<std::string>& environment) const override {
    // The id comes from a file of the run directory, which may be somebody else's. ƒ and base 58, or a
    // number.
    static const re2::RE2 kJob("(?:ƒ|f)?[0-9A-Za-z]+");
    if (!re2::RE2::FullMatch(job, kJob))
      return failure("scheduler.job", "'{}' is no job id of Flux", text::printable(job));
    const auto told = how == Cancel::politely
                          ? ask({"flux", "job", "kill", "--signal=SIGTERM", job}, environment)
                          : ask({"flux", "cancel", job}, environment);
    if (!told) return std::unexpected(told.error());
    return {};
  }

 protected:
  [[nodiscard]] Result<std::string> find_program(const plan::Plan& plan,
                                                 const std::vector<std::string>& environment) const override {
    for (const auto& program : plan.flux.submit) {
      if (auto found = sys::find_program(program, sys::env_value(environment, "PATH"), ""))
        return std::move(*found);
    }
    Diagnostics diagnostics;
    diagnostics
        .error("scheduler.no-flux", {},
               fmt::format("site '{}' submits with {}, which is not on PATH here", plan.site,
                           text::join(plan.flux.submit, " or ")))
        .hint = "go to a login node of the site; `nlaunch render` writes the script without it";
    return std::unexpected(std::move(diagnostics));
  }
  [[nodiscard]] std::string file_name() const override { return "job.flux"; }
  /// The paths that the plan names. Flux itself refuses what its queues do not take.
  [[nodiscard]] Result<std::vector<std::string>> check(
      const plan::Plan& plan, const std::vector<std::string>& /*environment*/) const override {
    auto checked = launch::check_paths(plan);
    if (checked.errors.has_errors()) return std::unexpected(std::move(checked.errors));
    return std::move(checked.notes);
  }
  [[nodiscard]] Result<std::string> hand_over(const plan::Plan& /*plan*/,
                                              const std::vector<std::string>& words,
                                              const std::vector<std::string>& environment) const override {
    const auto said = ask(words, environment);
    if (!said) return said;
    return std::string(text::trim(said->substr(said->rfind('\n') + 1)));
  }
};

const Scheduler& the_flux() {
  static const Flux flux;
  return flux;
}

const Registered<SchedulerEntry> flux_scheduler{{"flux", 0, the_flux}};

}  // namespace
}  // namespace nlaunch::scheduler
