#include "launch/job/precheck.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "launch/bind/venv.h"
#include "plan/container.h"
#include "sys/command.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

/// If Slurm does not answer in this time, the check is skipped: sbatch has its own messages.
constexpr Duration kPatienceBeforeSubmit = std::chrono::seconds(10);

std::string field(std::string_view line, std::string_view name) {
  for (const auto& word : text::split(line, ' ')) {
    if (word.starts_with(name) && word.substr(name.size()).starts_with('=')) {
      return word.substr(name.size() + 1);
    }
  }
  return "";
}

/// A job, a component of one, or the job of a borrowed node: each is requested separately.
struct Asked {
  const std::vector<plan::Directive>& directives;
  std::uint32_t nodes = 0;  ///< of the plan
  std::uint32_t spares = 0;
};

std::vector<Asked> parts_of(const plan::Plan& plan) {
  std::vector<Asked> parts;
  if (plan.slurm.components.empty())
    parts.push_back({plan.slurm.directives, plan.node.count, plan.slurm.spares});
  for (const auto* jobs : {&plan.slurm.components, &plan.slurm.borrowed})
    for (const auto& one : *jobs) parts.push_back({one.directives, one.nodes, one.spares});
  return parts;
}

const plan::Directive* find_directive(const Asked& part, std::string_view name) {
  const auto found = std::ranges::find(part.directives, name, &plan::Directive::name);
  return found == part.directives.end() ? nullptr : &*found;
}

Note origin_of(const plan::Directive& option) {
  return {fmt::format("--{}={} is from {}", option.name, option.value, option.origin), {}};
}

// --- the partition ---

std::string nodes_of_job(const Asked& part) {
  if (part.spares == 0) return std::to_string(part.nodes);
  return fmt::format("{} ({} of the plan and {})", part.nodes + part.spares, part.nodes,
                     text::count(part.spares, "spare"));
}

/// Why a job would never start there.
Diagnostics judge_partition(const Asked& part, const Partition& partition) {
  Diagnostics errors;
  const auto* asked = find_directive(part, "partition");
  const auto refuse = [&](const std::string& message) -> Diagnostic& {
    auto& error =
        errors.error("launch.partition", {}, fmt::format("partition '{}' {}", partition.name, message));
    error.notes.push_back(asked == nullptr ? Note{"it is the default partition of the cluster", {}}
                                           : origin_of(*asked));
    error.hint = "`sinfo -s` lists the partitions";
    return error;
  };
  if (partition.state == "INACTIVE" || partition.state == "DRAIN")
    refuse(fmt::format("accepts no jobs: its state is {}", partition.state));
  // A qos may allow more than its partition.
  if (find_directive(part, "qos") != nullptr) return errors;
  const auto nodes = part.nodes + part.spares;
  if (nodes > partition.max_nodes) {
    refuse(fmt::format("allows at most {} per job (MaxNodes), but this one asks for {}",
                       text::count(partition.max_nodes, "node"), nodes_of_job(part)));
  } else if (nodes < partition.min_nodes) {
    refuse(fmt::format("requires at least {} per job (MinNodes), but this one asks for {}",
                       text::count(partition.min_nodes, "node"), nodes_of_job(part)));
  }
  // Slurm may shorten a job that has `time-min` to that time.
  const auto* shortest = find_directive(part, "time-min");
  const auto* time = shortest == nullptr ? find_directive(part, "time") : shortest;
  const auto most = parse_time_limit(partition.max_time);
  const auto wanted = time == nullptr ? std::nullopt : parse_time_limit(time->value);
  if (most && wanted && *wanted > *most) {
    auto& error = refuse(fmt::format("lets a job run for at most {} (MaxTime), but this one asks for {}",
                                     partition.max_time, time->value));
    error.notes.insert(error.notes.begin(), origin_of(*time));
  }
  return errors;
}

/// A job can name several partitions, and starts in the first that can run it.
void judge_partitions(const Asked& part, const std::vector<Partition>& known, Precheck& out) {
  // Another cluster's partitions are not known here.
  if (find_directive(part, "clusters") != nullptr || find_directive(part, "cluster") != nullptr) return;
  const auto* asked = find_directive(part, "partition");
  const auto names = asked == nullptr ? std::vector<std::string>() : text::split(asked->value, ',');
  Diagnostics errors;
  std::vector<std::string> waits;
  for (const auto& partition : known) {
    const bool wanted =
        asked == nullptr ? partition.is_default : std::ranges::find(names, partition.name) != names.end();
    if (!wanted) continue;
    const auto wrong = judge_partition(part, partition);
    errors.append(wrong);
    if (!wrong.empty()) continue;
    if (partition.state != "DOWN") return;
    waits.push_back(
        fmt::format("partition '{}' is DOWN: the job waits until it is up again", partition.name));
  }
  if (waits.empty()) out.errors.append(errors);
  out.notes.insert(out.notes.end(), waits.begin(), waits.end());
}

// --- paths ---

bool is_known(std::string_view path) {
  return !path.empty() && !path.contains("${");
}

/// A file that a role needs.
struct Needed {
  std::string path;
  bool program = true;   ///< else an image, which can be a directory
  std::string asked_by;  ///< "wrapper: FILE:LINE:COLUMN"
};

/// Only known paths: a bare name is looked up in the node's PATH, and files in a container are not on this
/// machine.
std::vector<Needed> files_of(const plan::Role& role) {
  std::vector<Needed> files;
  const auto add = [&](const std::string& name, bool program, const std::string& asked_by) {
    const auto path = (fs::path(role.workdir) / name).lexically_normal().string();
    if (is_known(name) && is_known(path) && (!program || name.contains('/')))
      files.push_back({path, program, asked_by});
  };
  const auto wrapper = fmt::format("wrapper: {}", role.wrapper_origin);
  if (!role.wrapper.empty()) add(role.wrapper.front(), true, wrapper);
  add(plan::image_of(role.wrapper), false, wrapper);
  if (!role.command.empty() && !plan::is_container(role.wrapper))
    add(role.command.front(), true, fmt::format("command: {}", role.command_origin));
  return files;
}

bool is_below(const std::string& path, const std::string& folder) {
  return is_known(folder) && path.starts_with(fs::path(folder).lexically_normal().string() + "/");
}

PathKind kind_of(const LoginFacts& facts, const std::string& path) {
  const auto found = facts.paths.find(path);
  return found == facts.paths.end() ? PathKind::missing : found->second;
}

using Wrong = std::map<std::pair<std::string, std::string>, std::vector<std::string>>;  ///< of which roles

void judge_file(const plan::Role& role, const Needed& needed, const LoginFacts& facts, Wrong& wrong,
                std::vector<std::string>& notes) {
  const auto kind = kind_of(facts, needed.path);
  const bool missing = kind == PathKind::missing;
  if (needed.program ? kind == PathKind::program : !missing) return;
  const bool in_venv = is_below(needed.path, role.venv);
  // A missing venv is reported separately.
  if (in_venv && kind_of(facts, role.venv) != PathKind::folder) return;
  if (in_venv || is_below(needed.path, role.workdir)) {
    wrong[{needed.program ? "launch.program" : "launch.image",
           fmt::format("'{}' {} ({})", needed.path, missing ? "does not exist" : "is not executable",
                       needed.asked_by)}]
        .push_back(role.name);
  } else if (missing) {
    notes.push_back(fmt::format("{}: '{}' does not exist on this machine: check that it exists on the nodes",
                                role.name, needed.path));
  }
}

/// What is wrong with the paths of one role, without its name; a note if only the nodes can tell.
void judge_paths(const plan::Role& role, const LoginFacts& facts, Wrong& wrong,
                 std::vector<std::string>& notes) {
  if (role.command.empty()) return;
  if (is_known(role.workdir) && kind_of(facts, role.workdir) != PathKind::folder) {
    const auto& origin = role.workdir_origin;
    wrong[{"launch.workdir", fmt::format("the working directory '{}'{} does not exist", role.workdir,
                                         origin.empty() ? "" : " (" + origin + ")")}]
        .push_back(role.name);
    return;
  }
  for (const auto& needed : files_of(role)) judge_file(role, needed, facts, wrong, notes);
}

// --- the rim ---

PathKind look_at(const std::string& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (!fs::exists(status)) return PathKind::missing;
  if (fs::is_directory(status)) return PathKind::folder;
  return fs::is_regular_file(status) && ::access(path.c_str(), X_OK) == 0 ? PathKind::program
                                                                          : PathKind::other;
}

std::vector<Partition> ask_slurm(const std::vector<std::string>& environment) {
  sys::SpawnRequest request;
  request.argv = {"scontrol", "--all", "--oneliner", "show", "partition"};
  request.env = environment;
  const auto said = sys::run_command(std::move(request), kPatienceBeforeSubmit);
  if (!said || !said->status.ok()) return {};
  return parse_partitions(said->out);
}

}  // namespace

std::vector<Partition> parse_partitions(std::string_view lines) {
  std::vector<Partition> partitions;
  for (const auto& line : text::split(lines, '\n')) {
    Partition partition;
    partition.name = field(line, "PartitionName");
    if (partition.name.empty()) continue;
    partition.is_default = field(line, "Default") == "YES";
    partition.state = field(line, "State");
    partition.min_nodes =
        text::whole_number<std::uint32_t>(field(line, "MinNodes")).value_or(partition.min_nodes);
    partition.max_nodes =
        text::whole_number<std::uint32_t>(field(line, "MaxNodes")).value_or(partition.max_nodes);
    partition.max_time = field(line, "MaxTime");
    partitions.push_back(std::move(partition));
  }
  return partitions;
}

std::vector<std::string> named_paths(const plan::Plan& plan) {
  std::vector<std::string> paths;
  for (const auto& role : plan.roles) {
    for (const auto& path : {role.workdir, role.venv}) {
      if (is_known(path)) paths.push_back(path);
    }
    for (const auto& needed : files_of(role)) paths.push_back(needed.path);
  }
  return paths;
}

Precheck judge(const plan::Plan& plan, const LoginFacts& facts) {
  Precheck out;
  for (const auto& part : parts_of(plan)) judge_partitions(part, facts.partitions, out);
  Wrong wrong;
  for (const auto& role : plan.roles) judge_paths(role, facts, wrong, out.notes);
  for (const auto& [what, roles] : wrong)
    out.errors.error(what.first, {}, fmt::format("{}: {}", text::join(roles, ", "), what.second)).hint =
        what.second.contains("is not executable") ? "make it executable with chmod +x" : "";
  return out;
}

namespace {

Precheck look_and_judge(const plan::Plan& plan, LoginFacts facts) {
  for (const auto& path : named_paths(plan)) facts.paths.emplace(path, look_at(path));
  auto out = judge(plan, facts);
  out.errors.append(missing_venvs(plan));
  return out;
}

}  // namespace

Precheck check_paths(const plan::Plan& plan) {
  return look_and_judge(plan, {});
}

Precheck precheck(const plan::Plan& plan, const std::vector<std::string>& environment) {
  return look_and_judge(plan, {ask_slurm(environment), {}});
}

}  // namespace nlaunch::launch
