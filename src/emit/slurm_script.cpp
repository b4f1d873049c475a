#include "emit/slurm_script.h"

#include <algorithm>
#include <chrono>

#include "base/text.h"

namespace nlaunch::emit {
namespace {

/// One word of a directive, quoted for sbatch's own parser: quotes hold words together, a backslash takes the
/// next character as it is, also within quotes, and a # outside of them ends the line.
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
    add_default("job-name", plan_.name);
    add("nodes", std::to_string(plan_.node.count + plan_.slurm.spares));
    add("ntasks-per-node", "1");
    add_output(job.output);
    add("open-mode", "append");
    // Else Slurm ends the whole job when a node dies, and there is nothing left for the spares to take over.
    if (plan_.slurm.spares > 0 && plan_.restart.on_failure) add_default("no-kill", "");
    add_walltime();
    for (const auto& option : plan_.slurm.directives) add(option.name, option.value);
    if (diagnostics_.has_errors()) return std::unexpected(std::move(diagnostics_));
    return text::join(lines_, "\n");
  }

 private:
  [[nodiscard]] bool given(std::string_view name) const {
    const auto& all = plan_.slurm.directives;
    return std::ranges::find(all, name, &plan::Directive::name) != all.end();
  }

  void add_default(const std::string& name, const std::string& value) {
    if (!given(name)) add(name, value);
  }

  void add_output(const std::string& path) {
    if (given("output")) return;
    if (path.contains('\\')) {
      refuse(fmt::format("Slurm cannot write its log to '{}'", path),
             "it takes a backslash in the path for a sign of its own: give another --runs-dir");
      return;
    }
    add("output", path);
  }

  void add_walltime() {
    const auto& rule = plan_.walltime;
    add(rule && rule->then == Walltime::Then::requeue ? "requeue" : "no-requeue", "");
    if (!rule) return;
    constexpr std::chrono::seconds kMost{65535};  // Slurm keeps it in 16 bits
    const auto before =
        std::max(std::chrono::seconds(1), std::chrono::ceil<std::chrono::seconds>(rule->before));
    if (before > kMost) {
      refuse(fmt::format("`walltime: {{before: {}}}` is more than Slurm's {}", format_duration(rule->before),
                         format_duration(kMost)),
             "");
      return;
    }
    // To nlaunch alone, which hands the rule's own signal to the learners.
    add("signal", fmt::format("B:USR2@{}", before.count()));
  }

  void add(const std::string& name, const std::string& value) {
    const auto word = value.empty() ? "--" + name : fmt::format("--{}={}", name, value);
    if (text::printable(word) != word) {
      refuse(fmt::format("'{}' cannot stand in an #SBATCH line", word),
             "line breaks and other control characters, and what is not UTF-8, are not allowed there");
      return;
    }
    lines_.push_back("#SBATCH " + sbatch_word(word));
  }

  void refuse(std::string message, std::string hint) {
    diagnostics_.error("emit.slurm-value", {}, std::move(message)).hint = std::move(hint);
  }

  const plan::Plan& plan_;
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

Result<std::string> slurm_script(const plan::Plan& plan, const SlurmJob& job, const Template& from) {
  auto directives = DirectivesWriter(plan).write(job);
  if (!directives) return std::unexpected(directives.error());
  return from.fill({{"DIRECTIVES", std::move(*directives)},
                    {"COMMAND", command_of(job)},
                    {"NAME", text::shell_quote(plan.name)},
                    {"SITE", text::shell_quote(plan.site)},
                    {"EXPERIMENT", text::shell_quote(plan.experiment)},
                    {"PLAN", text::shell_quote(job.plan_file)},
                    {"NLAUNCH", text::shell_quote(job.nlaunch)}});
}

}  // namespace nlaunch::emit
