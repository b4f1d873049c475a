#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/secrets.h"
#include "base/text.h"
#include "import/refusals/refusal.h"
#include "shell/answers.h"

/// What is not known here: output, contents of files, names and the machine.
namespace nlaunch::import {
namespace {

namespace fs = std::filesystem;

/// "`nvidia-smi topo -m` (line 18) says"
std::string who_says(const shell::Recording& recording) {
  std::vector<std::string> asked;
  for (const auto& one : recording.made_up)
    if (shell::describes_machine(one.name.substr(0, one.name.find(' '))))
      asked.push_back(fmt::format("`{}` (line {})", text::printable(one.name), one.line));
  return fmt::format("{} {}", text::join(asked, ", "), asked.size() == 1 ? "says" : "say");
}

Sentences reads_unknown_output(const Examined& script) {
  return of_each(script.recording.commands, [&](const auto& command) {
    if (!command.output_is_read) return std::string();
    return fmt::format(
        "line {} reads the output of `{}`, which is not known because it did not run. Give the output with "
        "--prints 'PART OF THE COMMAND=TEXT'",
        command.line, text::printable(text::shell_join(command.argv)));
  });
}

Sentences depends_on_the_machine(const Examined& script) {
  return of_each(script.recording.by_machine, [&](const auto& one) {
    return fmt::format(
        "line {}: '{}' depends on what {} about the machine, which is made up. Give its output from the "
        "cluster with --prints 'PART OF THE COMMAND=TEXT'{}",
        one.line, text::printable(one.name), who_says(script.recording),
        script.allocation.gpus_per_node == 0 ? ", and the number of GPUs per node with --gpus" : "");
  });
}

/// A name of the simulated job: of a node, the cluster or the partition.
bool is_made_up_name(const std::string& word) {
  // `${HOSTNAME%%-*}`
  const bool is_part = word.size() > 2 && shell::Allocation::host(0).starts_with(word);
  return word == shell::Allocation::kCluster || word == "rec-partition" || is_part ||
         shell::node_of(word).has_value();
}

/// `case NAME in nid*) ...`, unless a pattern comes from the job itself: `$first)`.
bool has_fixed_patterns(const std::vector<std::string>& lines, std::uint32_t line) {
  static const RE2 kEnd(R"(\besac\b)");
  static const RE2 kOfJob(R"(^[^()]*\$[^()]*\))");
  for (auto i = line; i < lines.size() && !RE2::PartialMatch(lines[i], kEnd); ++i)
    if (RE2::PartialMatch(lines[i], kOfJob)) return false;
  return true;
}

/// The made-up name in a comparison: `[[ $(hostname) == nid* ]]`, `[ "$SLURM_CLUSTER_NAME" = juwels ]`. A
/// test for a login node does not count: no node of the job is one.
std::optional<std::string> name_compared(const shell::Words& words) {
  constexpr std::array<std::string_view, 4> kOperators{"==", "=", "!=", "=~"};
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (std::ranges::find(kOperators, words[i]) == kOperators.end()) continue;
    const auto& left = words[i - 1];
    const auto& right = words[i + 1];
    static const RE2 kNoNode(
        R"((?i)^["']?(?:[\w-]*log-?in[\w.-]*|localhost|front-?end\w*|head(?:-?node)?)?["']?$)");
    const bool is_pattern = words[i] == "=~" || right.find_first_of("*?[") != std::string::npos;
    const bool may_be_node = !RE2::PartialMatch(right, kNoNode);
    // `== *" "*`: whether it is a list.
    const bool is_of_blanks = right.find_first_not_of("*? \t'\"\\") == std::string::npos;
    if (is_made_up_name(left) && right.find("rec-") == std::string::npos && !is_of_blanks &&
        (is_pattern || may_be_node || !shell::node_of(left)))
      return left;
  }
  return std::nullopt;
}

/// The name that `case WORD in` looks at: bash traces the word as it is written.
std::optional<std::string> name_of_case(const shell::Recording& recording, const std::string& word) {
  if (word.find("$(hostname") != std::string::npos || word.find("`hostname") != std::string::npos)
    return shell::Allocation::host(0);
  static const RE2 kVariable(R"(\$\{?(\w+))");
  std::string variable;
  if (!RE2::PartialMatch(word, kVariable, &variable)) return std::nullopt;
  std::string value;
  for (const auto& entry : recording.environment)
    if (entry.starts_with(variable + "=")) value = entry.substr(variable.size() + 1);
  for (const auto& set : recording.assignments)
    if (set.name == variable) value = set.value;
  return is_made_up_name(value) ? std::optional(value) : std::nullopt;
}

Sentences decides_by_a_name(const Examined& script) {
  return of_each(script.recording.traced, [&](const auto& one) -> std::string {
    const bool own = one.script.empty() || one.script.ends_with("/" + script.out.script);
    const auto words = shell::words_of(one.text);
    std::optional<std::string> name;
    if (own && words.size() > 2 && words[0] == "case" && has_fixed_patterns(script.lines, one.line))
      name = name_of_case(script.recording, one.text);
    const auto& printed = script.recording.printed;
    if (std::ranges::find(printed, one.line, &shell::Absent::line) != printed.end())
      return {};
    else if (!words.empty() && (words[0] == "[[" || words[0] == "["))
      name = name_compared(words);
    if (!name) return {};
    const auto* const how = *name == shell::Allocation::kCluster ? "--env SLURM_CLUSTER_NAME=NAME"
                            : *name == "rec-partition"           ? "--env SLURM_JOB_PARTITION=NAME"
                                                                 : "--prints hostname=NAME";
    return fmt::format(
        "line {}{}: the script decides by '{}', which is a made-up name: give that of the cluster with {}",
        one.line, own ? "" : " of " + text::printable(shell::program_name(one.script)), *name, how);
  });
}

/// `awk '{print gensub(...)}'` where awk is mawk: the text that it should print becomes empty.
Sentences needs_another_tool(const Examined& script) {
  return of_each(script.recording.broken, [](const auto& one) {
    return fmt::format(
        "line {}: `{}` fails with the awk of this machine, so what it would print is missing: give its "
        "output "
        "with --prints 'PART OF THE COMMAND=TEXT'",
        one.line, text::printable(one.name));
  });
}

Sentences passes_output_on(const Examined& script) {
  return of_each(script.recording.passed_on, [&](const auto& one) {
    return fmt::format(
        "line {}: a program uses {}, which contains the redirected output of another program; the output of "
        "a role goes to its log: let the program write the file itself",
        one.line, text::printable(one.name));
  });
}

/// A program that is given the file in which Slurm collects the output of the job.
Sentences uses_the_jobs_output(const Examined& script) {
  auto outputs = script.directives.outputs;
  for (auto& name : outputs) {
    RE2::GlobalReplace(&name, "%[jA]", script.allocation.job_id);
    RE2::GlobalReplace(&name, "%x", script.allocation.job_name);
    RE2::GlobalReplace(&name, "%u", shell::Allocation::kUser);
    RE2::GlobalReplace(&name, "%a", std::to_string(script.allocation.array_task.value_or(0)));
  }
  std::erase(outputs, "/dev/null");
  const auto is_output = [&](const std::string& word, const std::string& folder) {
    const auto path = [&](const std::string& name) { return (fs::path(folder) / name).lexically_normal(); };
    return std::ranges::any_of(outputs, [&](const auto& name) { return path(name) == path(word); });
  };
  return of_each(script.recording.commands, [&](const auto& command) -> std::string {
    const bool uses = command.fate == shell::Fate::recorded &&
                      std::any_of(command.argv.begin() + 1, command.argv.end(),
                                  [&](const auto& word) { return is_output(word, command.folder); });
    if (!uses) return {};
    return fmt::format(
        "line {}: `{}` uses the output of the job itself (#SBATCH --output), which is in the logs of the "
        "roles: "
        "leave it out",
        command.line, text::printable(shell::program_name(command.argv[0])));
  });
}

Sentences lacks_a_folder(const Examined& script) {
  return of_each(script.recording.no_folder, [&](const auto& one) {
    const auto folder = one.name.substr(0, one.name.rfind('/') + 1);
    return fmt::format(
        "line {} writes to {}, but {} does not exist: bash does not start the program, here or on the "
        "cluster. Create the directory or, if the cluster has it, pass --exists {}",
        one.line, text::printable(one.name), text::printable(folder), text::shell_quote(folder));
  });
}

/// A secret is read when the process starts.
bool sets_a_secret(const shell::Recording& recording, std::uint32_t line) {
  return std::ranges::any_of(recording.assignments, [&](const auto& set) {
    return set.line == line && looks_like_secret(set.name);
  });
}

Sentences reads_unknown_contents(const Examined& script) {
  return of_each(script.recording.contents, [&](const auto& one) {
    if (sets_a_secret(script.recording, one.line)) return std::string();
    return fmt::format(
        "line {} reads {}, which is known to exist, but not its contents. Import on a machine that has it, "
        "or give the output of the command (--prints 'PART OF THE COMMAND=TEXT')",
        one.line, text::printable(one.name));
  });
}

/// `<FILE>` on the line that reads FILE.
const shell::Absent* placeholder_of(const shell::Recording& recording, const shell::Absent& unread) {
  const auto found = std::ranges::find_if(recording.placeholders, [&](const auto& one) {
    return one.line == unread.line && one.name == "<" + unread.name + ">";
  });
  return found == recording.placeholders.end() ? nullptr : &*found;
}

/// The files that are missing here, each once, with a placeholder or without one.
std::vector<shell::Absent> unread_files(const Examined& script, bool with_placeholder) {
  std::set<std::string> names;
  std::vector<shell::Absent> files;
  for (const auto& one : script.recording.unread)
    if (!sets_a_secret(script.recording, one.line) && names.insert(one.name).second &&
        (placeholder_of(script.recording, one) != nullptr) == with_placeholder)
      files.push_back(one);
  return files;
}

Sentences has_a_placeholder(const Examined& script) {
  return of_each(unread_files(script, true), [&](const auto& one) {
    return fmt::format(
        "line {} has a placeholder, {}, which bash treats as a redirection: replace it with its value, then "
        "import the script",
        one.line, text::printable(placeholder_of(script.recording, one)->name));
  });
}

Sentences lacks_a_file(const Examined& script) {
  Sentences texts;
  for (const auto& one : unread_files(script, false)) {
    const auto line = fmt::format("line {} reads {}, ", one.line, text::printable(one.name));
    if (!one.found_in.empty())
      texts.push_back(
          line +
          fmt::format(
              "which does not exist here but does in the script's directory: call `nlaunch import` in {}",
              text::printable(one.found_in)));
    else
      texts.push_back(
          line + fmt::format("which is not on this machine. Import on a machine that has it, or {}",
                             one.is_sourced
                                 ? fmt::format("treat it as empty (--exists {})", text::shell_quote(one.name))
                                 : "give the output of the command (--prints 'PART OF THE COMMAND=TEXT')"));
  }
  return texts;
}

}  // namespace

std::span<const Refusal> refusals_of_files() {
  static constexpr std::array kRefusals{
      Refusal{"import.unknown-output", reads_unknown_output},
      Refusal{"import.made-up", depends_on_the_machine},
      Refusal{"import.name", decides_by_a_name},
      Refusal{"import.tool", needs_another_tool},
      Refusal{"import.output-file", passes_output_on},
      Refusal{"import.output-file", uses_the_jobs_output},
      Refusal{"import.no-folder", lacks_a_folder},
      Refusal{"import.unknown-contents", reads_unknown_contents},
      Refusal{"import.placeholder", has_a_placeholder},
      Refusal{"import.unknown-file", lacks_a_file},
  };
  return kRefusals;
}

}  // namespace nlaunch::import
