#include "emit/slurm_script.h"

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "plan/tolerance.h"

namespace nlaunch::emit {
namespace {

/// One word of a directive, quoted for sbatch's own parser: quotes group words, a backslash escapes the next
/// character, also within quotes, and a # outside quotes ends the line.
std::string sbatch_word(const std::string& word) {
  if (word.find_first_of(" \"'\\#") == std::string::npos) return word;
  std::string out = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

class DirectivesWriter {
 public:
  explicit DirectivesWriter(const plan::Plan& plan) : plan_(plan) {}

  Result<std::string> write(const SlurmJob& job) {
    const auto& components = plan_.slurm.components;
    add_part({plan_.node.count, plan_.slurm.spares, &plan_.slurm.directives}, components, 0, job);
    for (std::size_t i = 1; i < components.size(); ++i) {
      lines_.emplace_back("#SBATCH hetjob");
      add_part({}, components, i, job);
    }
    if (diagnostics_.has_errors()) return std::unexpected(std::move(diagnostics_));
    return text::join(lines_, "\n");
  }

  /// For one borrowed node. It is not requeued: the run's leader requests the next one.
  Result<std::string> write(const plan::SlurmComponent& pool, const std::string& output) {
    given_ = &pool.directives;
    add_default("job-name", fmt::format("{}-{}", plan_.name, pool.pools.front()));
    add("nodes", "1");
    add("ntasks-per-node", "1");
    add_output(output);
    add("open-mode", "append");
    add("no-requeue", "");
    for (const auto& option : pool.directives) add(option.name, option.value);
    if (diagnostics_.has_errors()) return std::unexpected(std::move(diagnostics_));
    return text::join(lines_, "\n");
  }

 private:
  struct Part {
    std::uint32_t nodes = 0;
    std::uint32_t spares = 0;
    const std::vector<plan::Directive>* directives = nullptr;
  };

  /// The job, or one component of it; the first component runs the script and receives its signals.
  void add_part(Part part, const std::vector<plan::SlurmComponent>& components, std::size_t index,
                const SlurmJob& job) {
    if (!components.empty()) {
      const auto& one = components[index];
      part = {one.nodes, one.spares, &one.directives};
      lines_.push_back(
          fmt::format("# {} {}", one.pools.size() == 1 ? "pool" : "pools", text::join(one.pools, ", ")));
    }
    given_ = part.directives;
    add_default("job-name", plan_.name);
    add("nodes", std::to_string(part.nodes + part.spares));
    add("ntasks-per-node", "1");
    if (index == 0) add_output(job.output);
    if (index == 0) add("open-mode", "append");
    // Otherwise Slurm ends the whole job when a node dies: spares could not take over, and nothing could
    // continue without it.
    if ((part.spares > 0 && plan_.restart.on_failure) || plan::outlives_nodes(plan_))
      add_default("no-kill", "");
    add_walltime(index == 0);
    for (const auto& option : *part.directives) add(option.name, option.value);
  }

  [[nodiscard]] bool given(std::string_view name) const {
    return std::ranges::find(*given_, name, &plan::Directive::name) != given_->end();
  }

  void add_default(const std::string& name, const std::string& value) {
    if (!given(name)) add(name, value);
  }

  void add_output(const std::string& path) {
    if (given("output")) return;
    if (path.contains('\\')) {
      refuse(fmt::format("Slurm cannot write its log to '{}'", path),
             "Slurm treats a backslash in the path as an escape character: use another --runs-dir");
      return;
    }
    add("output", path);
  }

  void add_walltime(bool first) {
    const auto& rule = plan_.walltime;
    add(rule && rule->then == Walltime::Then::requeue ? "requeue" : "no-requeue", "");
    if (!rule || !first) return;
    constexpr std::chrono::seconds kMost{65535};  // Slurm stores it in 16 bits
    const auto before =
        std::max(std::chrono::seconds(1), std::chrono::ceil<std::chrono::seconds>(rule->before));
    if (before > kMost) {
      refuse(fmt::format("`walltime: {{before: {}}}` exceeds Slurm's limit of {}",
                         format_duration(rule->before), format_duration(kMost)),
             "");
      return;
    }
    // To nlaunch only, which sends the rule's own signal to the learners.
    add("signal", fmt::format("B:USR2@{}", before.count()));
  }

  void add(const std::string& name, const std::string& value) {
    const auto word = value.empty() ? "--" + name : fmt::format("--{}={}", name, value);
    if (text::printable(word) != word) {
      refuse(fmt::format("'{}' cannot be used in an #SBATCH line", word),
             "line breaks, other control characters and invalid UTF-8 are not allowed there");
      return;
    }
    lines_.push_back("#SBATCH " + sbatch_word(word));
  }

  void refuse(std::string message, std::string hint) {
    diagnostics_.error("emit.slurm-value", {}, std::move(message)).hint = std::move(hint);
  }

  const plan::Plan& plan_;
  const std::vector<plan::Directive>* given_ = nullptr;  ///< of the part being written
  std::vector<std::string> lines_;
  Diagnostics diagnostics_;
};

std::string command_of(const SlurmJob& job) {
  std::vector<std::string> command{job.nlaunch, "run", "--plan", job.plan_file};
  command.insert(command.end(), job.arguments.begin(), job.arguments.end());
  return text::shell_join(command);
}

}  // namespace

std::string slurm_path(std::string_view path) {
  std::string out;
  for (const char c : path) out.append(c == '%' ? 2 : 1, c);
  return out;
}

namespace {

std::string fill(const Template& from, const plan::Plan& plan, std::string directives, std::string command,
                 const std::string& plan_file, const std::string& nlaunch) {
  return from.fill({{"DIRECTIVES", std::move(directives)},
                    {"COMMAND", std::move(command)},
                    {"NAME", text::shell_quote(plan.name)},
                    {"SITE", text::shell_quote(plan.site)},
                    {"EXPERIMENT", text::shell_quote(plan.experiment)},
                    {"PLAN", text::shell_quote(plan_file)},
                    {"NLAUNCH", text::shell_quote(nlaunch)}});
}

}  // namespace

Result<std::string> slurm_script(const plan::Plan& plan, const SlurmJob& job, const Template& from) {
  auto directives = DirectivesWriter(plan).write(job);
  if (!directives) return std::unexpected(directives.error());
  return fill(from, plan, std::move(*directives), command_of(job), job.plan_file, job.nlaunch);
}

Result<std::string> borrowing_script(const plan::Plan& plan, const plan::SlurmComponent& pool,
                                     const BorrowingJob& job, const Template& from) {
  auto directives = DirectivesWriter(plan).write(pool, job.output);
  if (!directives) return std::unexpected(directives.error());
  const std::vector<std::string> command{job.nlaunch,   "agent",     "--step",
                                         job.step_file, "--by-srun", "--node"};
  return fill(from, plan, std::move(*directives), text::shell_join(command) + " \"$1\"", job.plan_file,
              job.nlaunch);
}

}  // namespace nlaunch::emit
