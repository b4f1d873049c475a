#include "launch/job/slurm_job.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "base/text.h"
#include "launch/job/allocation.h"
#include "sys/command.h"
#include "sys/spawn.h"

namespace nlaunch::launch {
namespace {

constexpr Duration kPatienceWithSlurm = std::chrono::seconds(60);

/// SBATCH_* would override the script.
std::vector<std::string> without_sbatch(std::vector<std::string> environment) {
  std::erase_if(environment, [](const std::string& entry) { return entry.starts_with("SBATCH_"); });
  return environment;
}

/// sbatch's message names a directive sometimes by its name, sometimes by its value.
void name_culprits(const plan::Slurm& slurm, std::string_view said, Diagnostic& error) {
  std::vector<plan::Directive> all = slurm.directives;
  for (const auto& component : slurm.components) {
    for (const auto& option : component.directives) {
      const bool known = std::ranges::any_of(
          all, [&](const auto& one) { return one.name == option.name && one.value == option.value; });
      if (!known) all.push_back(option);
    }
  }
  for (const auto& option : all) {
    const auto name = option.name.substr(0, option.name.find('-'));
    const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
    if (std::ranges::search(said, name, same).empty()) continue;
    const auto value = option.value.empty() ? std::string() : "=" + option.value;
    error.notes.push_back({fmt::format("--{}{} is from {}", option.name, value, option.origin), {}});
  }
}

/// What to do about a refusal: for each text in sbatch's message (Slurm's src/common/slurm_errno.c), what to
/// type.
struct Remedy {
  std::string_view said;  ///< in lower case
  std::string_view what;
};
constexpr std::array<Remedy, 4> kRemedies{
    {{"account",
      "write `slurm: {account: PROJECT}` in the experiment, or --set slurm.account=PROJECT; `sacctmgr "
      "show associations user=$USER format=account%30,partition` lists yours"},
     {"partition",
      "write `slurm: {partition: NAME}`, or --set slurm.partition=NAME; `sinfo -s` lists the partitions"},
     {"qos",
      "write `slurm: {qos: NAME}`, or --set slurm.qos=NAME; `sacctmgr show associations user=$USER "
      "format=account%30,qos%60` lists yours"},
     {"time limit",
      "write a shorter `slurm: {time: \"HH:MM:SS\"}`; `sinfo -s` shows the limit of each partition"}}};

std::string remedy_for(std::string_view said) {
  const auto lower = text::lower(said);
  const auto found =
      std::ranges::find_if(kRemedies, [&](const Remedy& one) { return lower.contains(one.said); });
  return found == kRemedies.end() ? "" : fmt::format("{}; ", found->what);
}

/// The leading digits of a text.
std::string_view leading_number(std::string_view text) {
  return text.substr(0, text.find_first_not_of("0123456789"));
}

/// The last number in the last line that has one.
std::string last_number(std::string_view said) {
  const auto end = said.find_last_of("0123456789");
  if (end == std::string_view::npos) return "";
  auto begin = end;
  while (begin > 0 && said[begin - 1] >= '0' && said[begin - 1] <= '9') --begin;
  return std::string(said.substr(begin, end - begin + 1));
}

/// All output lines of a command, joined into one.
std::string in_one_line(std::string_view said) {
  std::vector<std::string> lines;
  for (const auto& line : text::split(said, '\n')) {
    if (const auto words = text::trim(line); !words.empty()) lines.push_back(text::printable(words));
  }
  return text::join(lines, " / ");
}

}  // namespace

std::string submitted_id(std::string_view said) {
  constexpr std::string_view kSubmitted = "Submitted batch job ";
  std::string id;
  const auto lines = text::split(said, '\n');
  for (const auto& line : lines) {
    const auto at = line.find(kSubmitted);
    if (at == std::string::npos) continue;
    if (const auto number = leading_number(std::string_view(line).substr(at + kSubmitted.size()));
        !number.empty())
      id = number;
  }
  if (!id.empty()) return id;
  for (const auto& line : lines) {
    const auto words = text::trim(line);
    const auto number = leading_number(words);
    // With --parsable: "17", or "17;cluster".
    if (!number.empty() && (number.size() == words.size() || words[number.size()] == ';')) id = number;
  }
  return id.empty() ? last_number(said) : id;
}

Result<std::string> find_submit_command(const plan::Plan& plan, const std::vector<std::string>& environment) {
  const auto path = sys::env_value(environment, "PATH");
  for (const auto& program : plan.slurm.submit) {
    if (auto found = sys::find_program(program, path, "")) return std::move(*found);
  }
  Diagnostics diagnostics;
  diagnostics
      .error("launch.no-slurm", {},
             fmt::format("site '{}' submits with {}, which is not on PATH here", plan.site,
                         text::join(plan.slurm.submit, " or ")))
      .hint =
      "go to a login node of the site, or load its Slurm module; `nlaunch render` writes the script without "
      "it";
  return std::unexpected(std::move(diagnostics));
}

Result<std::string> submit_job(const plan::Plan& plan, const std::string& command,
                               const std::filesystem::path& script,
                               const std::vector<std::string>& environment,
                               const std::vector<std::string>& options) {
  sys::SpawnRequest request;
  request.argv = {command};
  request.argv.insert(request.argv.end(), options.begin(), options.end());
  request.argv.push_back(script.string());
  request.env = without_sbatch(environment);
  const auto said = sys::run_command(std::move(request), kPatienceWithSlurm);
  if (!said) return std::unexpected(said.error());
  const auto words = in_one_line(said->err.empty() ? said->out : said->err);
  if (said->timed_out) {
    return failure("launch.submit", "{} did not answer within {}", command,
                   format_duration(kPatienceWithSlurm));
  }
  const auto id = submitted_id(said->out);
  if (said->status.ok() && !id.empty()) return id;
  Diagnostics diagnostics;
  auto& error =
      diagnostics.error("launch.submit", {}, fmt::format("{} {}: {}", command, said->status.str(), words));
  name_culprits(plan.slurm, words, error);
  error.hint = fmt::format("{}the script: {}", remedy_for(words), script.string());
  return std::unexpected(std::move(diagnostics));
}

Result<void> tell_slurm(std::vector<std::string> command, const std::vector<std::string>& environment) {
  sys::SpawnRequest request;
  request.argv = std::move(command);
  request.env = environment;
  const auto what = text::join(request.argv, " ");
  const auto said = sys::run_command(std::move(request), kPatienceWithSlurm);
  if (!said) return std::unexpected(said.error());
  if (said->status.ok()) return {};
  return failure("launch.slurm", "{} {}: {}", what, said->status.str(), in_one_line(said->err));
}

Duration kill_wait(const std::vector<std::string>& environment) {
  constexpr Duration kDefault = std::chrono::seconds(30);  // slurm.conf(5)
  constexpr Duration kToAnswer = std::chrono::seconds(5);
  sys::SpawnRequest request;
  request.argv = {"scontrol", "show", "config"};
  request.env = environment;
  const auto said = sys::run_command(std::move(request), kToAnswer);
  return said ? parse_kill_wait(said->out).value_or(kDefault) : kDefault;
}

std::optional<Duration> parse_kill_wait(std::string_view config) {
  for (const auto& line : text::split(config, '\n')) {
    if (!line.starts_with("KillWait ")) continue;
    const auto number = line.find_first_of("0123456789");
    if (number == std::string::npos) return std::nullopt;
    return std::chrono::seconds(std::atoi(line.c_str() + number));
  }
  return std::nullopt;
}

bool JobState::pending() const {
  constexpr std::array<std::string_view, 4> kPending{"PENDING", "CONFIGURING", "REQUEUED", "SUSPENDED"};
  return std::ranges::find(kPending, state) != kPending.end();
}

bool JobState::over() const {
  return !pending() && state != "RUNNING" && state != "COMPLETING" && state != "STAGE_OUT" &&
         state != "SIGNALING";
}

namespace {

/// The value of " NAME=VALUE " in a line of scontrol; empty if it is not there.
std::string field_of(std::string_view line, std::string_view name) {
  const auto key = fmt::format(" {}=", name);
  const auto at = line.find(key);
  if (at == std::string_view::npos) return "";
  const auto begin = at + key.size();
  return std::string(line.substr(begin, line.find_first_of(" \n", begin) - begin));
}

/// One line for the job, or for each of its components.
auto show_job(const std::string& job_id, const std::vector<std::string>& environment) {
  sys::SpawnRequest request;
  request.argv = {"scontrol", "-o", "show", "job", job_id};
  request.env = environment;
  return sys::run_command(std::move(request), kPatienceWithSlurm);
}

}  // namespace

std::optional<std::uint32_t> parse_component(std::string_view lines, std::string_view node) {
  for (const auto& line : text::split(lines, '\n')) {
    const auto offset = text::whole_number<std::uint32_t>(field_of(line, "HetJobOffset"));
    const auto nodes = offset ? expand_nodelist(field_of(line, "NodeList")) : std::nullopt;
    if (nodes && std::ranges::find(*nodes, node) != nodes->end()) return offset;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> component_of(const std::string& job_id, const std::string& node,
                                          const std::vector<std::string>& environment) {
  const auto said = show_job(job_id, environment);
  return said && said->status.ok() ? parse_component(said->out, node) : std::nullopt;
}

std::optional<JobState> parse_job_state(std::string_view line) {
  JobState job;
  const auto field = [&](std::string_view name) { return field_of(line, name); };
  job.state = field("JobState");
  if (job.state.empty()) return std::nullopt;
  job.reason = field("Reason");
  job.start = field("StartTime");
  if (job.start == "Unknown") job.start.clear();
  job.nodes = field("NodeList");
  if (job.nodes == "(null)") job.nodes.clear();
  // A path may contain blanks; the field after it does not.
  if (const auto at = line.find(" StdOut="); at != std::string_view::npos) {
    const auto rest = line.substr(at + 8);
    job.log = text::trim(rest.substr(0, std::min(rest.find(" Power="), rest.find('\n'))));
  }
  return job;
}

Result<std::optional<JobState>> job_state(const std::string& job_id,
                                          const std::vector<std::string>& environment) {
  const auto said = show_job(job_id, environment);
  if (!said) return std::unexpected(said.error());
  if (said->status.ok()) return parse_job_state(" " + said->out);
  if (said->err.find("Invalid job id") != std::string::npos) return std::nullopt;
  return failure("launch.scontrol", "scontrol {}: {}", said->status.str(), in_one_line(said->err));
}

}  // namespace nlaunch::launch
