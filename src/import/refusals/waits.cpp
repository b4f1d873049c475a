#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "import/refusals/refusal.h"
#include "import/texts.h"

/// Loops and waits that stages cannot express.
namespace nlaunch::import {
namespace {

/// `wait -n` waits for any program, and `wait %2` for one by a number that bash gives.
Sentences waits_for_an_unknown_one(const Examined& script) {
  const auto programs = std::ranges::count_if(script.out.roles, [&](const ImportedRole& role) {
    return role.part && role.kind != RoleKind::engine && !role.ray && script.out.parts[*role.part].background;
  });
  if (programs < 2) return {};
  const auto is_counted = [&](const auto& one) {
    static const RE2 kCounts(R"(^(wc |grep .*-\w*c))");
    return std::ranges::any_of(script.recording.traced, [&](const auto& other) {
      return other.line == one.line && other.script == one.script && RE2::PartialMatch(other.text, kCounts);
    });
  };
  return of_each(script.recording.traced, [&](const auto& one) -> std::string {
    static const RE2 kRunning(R"(^(jobs .*-\w*r|pgrep .*-\w*c.*-P|pgrep .*-P.*-\w*c))");
    static const RE2 kOwn(R"(^(jobs\b|pgrep .*-P))");
    if (RE2::PartialMatch(one.text, kRunning) || (RE2::PartialMatch(one.text, kOwn) && is_counted(one)))
      return fmt::format(
          "line {}: the script starts a program when another one has exited (`{}`): a plan starts all of a "
          "stage at once",
          one.line, text::printable(one.text));
    if (!one.text.starts_with("wait -n") && !one.text.starts_with("wait %")) return {};
    return fmt::format(
        "line {}: `{}` does not say for which program it waits: wait for its process id (PID=$!, then wait "
        "\"$PID\")",
        one.line, text::printable(one.text));
  });
}

/// `while kill -0 $A && kill -0 $B; do sleep 5; done`: until the first of them has exited.
Sentences waits_for_the_first(const Examined& script) {
  static const RE2 kRedirects(R"re(\s*\d?&?>>?\s*(?:&\d|/dev/null))re");
  static const RE2 kWhile(R"re(^\s*while\b.*(?:kill -0|ps -p)[^&|;]*&&.*(?:kill -0|ps -p))re");
  static const RE2 kUntil(R"re(^\s*until\b.*!\s*(?:kill -0|ps -p).*\|\|.*!\s*(?:kill -0|ps -p))re");
  static const RE2 kBreaks(
      R"re(^[^#]*(?:kill -0|ps -p)[^&|;]*\|\|\s*break\b.*(?:kill -0|ps -p)[^&|;]*\|\|\s*break\b)re");
  static const RE2 kProc(R"re(^\s*(?:while|until)\b.*/proc/\$)re");
  Sentences texts;
  std::uint32_t number = 0;
  for (auto line : script.lines) {
    ++number;
    RE2::GlobalReplace(&line, kRedirects, "");
    if (RE2::PartialMatch(line, kWhile) || RE2::PartialMatch(line, kUntil) ||
        RE2::PartialMatch(line, kBreaks))
      texts.push_back(
          fmt::format("line {}: the script waits for the first of several programs to exit, and a plan waits "
                      "for all of a stage",
                      number));
    else if (RE2::PartialMatch(line, kProc))
      texts.push_back(fmt::format(
          "line {}: the script waits for a process by /proc, which is not recorded: use wait, or kill -0",
          number));
  }
  return texts;
}

/// `if PROGRAM; then … break`, or `if ! PROGRAM; then … else … break`: the lines behind an `if`, up to its
/// end.
bool breaks_on_success(const std::vector<std::string>& lines, std::uint32_t line) {
  static const RE2 kIf(R"re(^\s*if\s+(!\s+)?[^\s\[(])re");
  static const RE2 kLeaves(R"re(\b(?:break|return)\b)re");
  std::string negated;
  if (line == 0 || line > lines.size() || !RE2::PartialMatch(lines[line - 1], kIf, &negated)) return false;
  bool in_success = negated.empty();
  for (auto at = line - 1; at < lines.size(); ++at) {
    const auto text = text::trim(lines[at]);
    if (at >= line && (text == "else" || text.starts_with("elif "))) in_success = !in_success;
    if (in_success && RE2::PartialMatch(lines[at], kLeaves)) return true;
    if (text == "fi" || text.ends_with("; fi")) return false;
  }
  return false;
}

/// `wait $!` behind a loop of `srun ... &`, and another program after it: a plan waits for all of a role.
Sentences waits_for_some_of_a_role(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    if (!part.background || part.commands.size() < 2) return {};
    for (const auto& other : script.out.roles) {
      if (!other.part || *other.part == *role.part) continue;
      const auto& next = script.out.parts[*other.part];
      const auto& commands = script.recording.commands;
      const auto ended = std::ranges::count_if(part.commands, [&](auto first) {
        return std::ranges::any_of(next.commands, [&](auto then) {
          return shell::had_ended(commands[first].waited, commands[then].waited);
        });
      });
      if (ended > 0 && static_cast<std::size_t>(ended) < part.commands.size())
        return fmt::format(
            "line {}: before {}, the script waits for {} of the {} programs of line {}, and a plan waits for "
            "all "
            "of a role or for none: use `wait` without a process id",
            next.line, other.name, ended, part.commands.size(), part.line);
    }
    return {};
  });
}

/// `until python -c "connect()"; do sleep 1; done` behind a server: here it would be tried once.
Sentences polls_by_a_program(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    static const RE2 kUntil(R"re(^\s*(?:until|while\s+!)\s+[^\s\[(])re");
    static const RE2 kBreaks(R"re(&&\s*(?:break|return)\b)re");
    const bool own = part.script.substr(part.script.rfind('/') + 1) == script.out.script;
    if (part.background || !own || part.line == 0) return {};
    const auto text = whole_command(script.lines, part.line);
    const bool loops = !head_of_loop(script.lines, part.line).empty();
    const bool polls =
        RE2::PartialMatch(text, kUntil) ||
        (loops && (RE2::PartialMatch(text, kBreaks) || breaks_on_success(script.lines, part.line)));
    const bool beside = std::ranges::any_of(script.out.roles, [&](const ImportedRole& other) {
      if (!other.part) return false;
      const auto& server = script.out.parts[*other.part];
      return server.background && server.commands[0] < part.commands[0] &&
             !had_exited(script.recording, server, part);
    });
    if (!polls || !beside) return {};
    return fmt::format(
        "line {}: the script repeats `{}` until it succeeds, while another program runs: a plan would try "
        "once. Wait with curl or nc, which import knows",
        role.line, text::printable(text::shell_join(part.argv)));
  });
}

/// `while sleep 600; do python upload.py; done &`, of which the recording shows some rounds.
Sentences repeats_in_the_background(const Examined& script) {
  if (!script.recording.cut) return {};
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    constexpr std::ptrdiff_t kFew = 3;
    const auto times = std::ranges::count_if(script.recording.commands, [&](const auto& command) {
      return command.fate == shell::Fate::recorded && command.line == part.line && command.argv == part.argv;
    });
    if (!part.background || times < kFew) return {};
    return fmt::format("line {}: a loop in the background starts `{}` again and again, which no role does",
                       role.line, text::printable(text::shell_join(part.argv)));
  });
}

/// `while kill -0 $PID; do python eval.py; sleep 60; done`, of which the recording shows some rounds.
Sentences repeats_while_another_runs(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    static const RE2 kUntilEnd(R"(^\s*(while|until)\b.*(kill -0|ps -p|/proc/\$|squeue|scontrol))");
    static const RE2 kUntilFile(R"(^\s*(while|until)\b.*\[\[?\s+(?:!\s+)?-[efsd]\s)");
    const auto again = std::ranges::count_if(script.recording.commands, [&](const auto& command) {
      return command.fate == shell::Fate::recorded && command.line == part.line &&
             command.argv == part.argv && command.script == part.script;
    });
    const bool of_script = part.script.substr(part.script.rfind('/') + 1) == script.out.script;
    const auto head = head_of_loop(script.lines, part.line);
    const bool file = RE2::PartialMatch(head, kUntilFile);
    if (again < 2 || !of_script || !(file || RE2::PartialMatch(head, kUntilEnd))) return {};
    return fmt::format("line {}: the script starts `{}` again and again {}, which no role does", role.line,
                       text::printable(text::shell_join(part.argv)),
                       file ? "until a file is there" : "while another program runs");
  });
}

/// A loop over what a piece of a pattern stands for: `for f in data/*.jsonl`, also through an array or `set
/// --`.
bool loops_over(const std::vector<std::string>& lines, const std::string& piece) {
  const auto any = [&](const std::string& pattern) {
    const RE2 expression(pattern, RE2::Latin1);
    return std::ranges::any_of(lines, [&](const auto& line) { return RE2::PartialMatch(line, expression); });
  };
  const auto quoted = RE2::QuoteMeta(piece);
  if (any(R"(^[^#]*\bfor\s+\w+\s+in\s[^;]*)" + quoted)) return true;
  if (any(R"(^[^#]*\bset\s+--\s[^;]*)" + quoted) && any(R"(\bfor\s+\w+(?:\s+in\s+"?\$[@*]|\s*;|\s*$))"))
    return true;
  const RE2 array(R"(^[^#]*\b(\w+)\+?=\([^)]*)" + quoted, RE2::Latin1);
  return std::ranges::any_of(lines, [&](const auto& line) {
    std::string name;
    return RE2::PartialMatch(line, array, &name) &&
           any(R"(\bfor\s+\w+\s+in\s[^;]*\$\{!?)" + name + R"(\[[@*]\])");
  });
}

/// `for f in data/*.jsonl; do python prepare.py $f; done`, where the files are on the cluster.
Sentences loops_over_files(const Examined& script) {
  return of_roles(script, [&](const ImportedRole& role, const Part& part) -> std::string {
    for (const auto& word : script.recording.commands[part.commands[0]].argv) {
      const auto star = word.find_first_of("*");
      if (star == std::string::npos) continue;
      const auto slash = word.rfind('/', star);
      const auto piece = word.substr(slash == std::string::npos ? 0 : slash + 1);
      if (loops_over(script.lines, piece))
        return fmt::format(
            "line {}: the script starts `{}` once for each file that {} stands for, and which those are "
            "only the cluster knows: name them",
            role.line, text::printable(text::shell_join(part.argv)), text::printable(word));
    }
    return {};
  });
}

/// `python trainer.py --port 8000 &` and a wait for its port: what ends the run starts last in a plan.
Sentences waits_for_a_later_one(const Examined& script) {
  const auto stage_of = [&](const std::string& role) {
    const auto& stages = script.out.start;
    const auto found = std::ranges::find_if(
        stages, [&](const auto& stage) { return std::ranges::find(stage, role) != stage.end(); });
    return found - stages.begin();
  };
  Sentences texts;
  for (const auto& wait : script.out.roles) {
    if (!wait.asks) continue;
    const auto& query = script.recording.commands[*wait.asks].argv;
    const auto later = std::ranges::find_if(script.out.roles, [&](const ImportedRole& role) {
      if (!role.part || script.out.parts[*role.part].commands[0] > *wait.asks) return false;
      return stage_of(role.name) > stage_of(wait.name) &&
             shell::has_port_of(script.out.parts[*role.part].argv, query);
    });
    if (later != script.out.roles.end())
      texts.push_back(
          fmt::format("line {}: the script waits for an answer of {} (line {}), which a plan starts after "
                      "that wait, for the run "
                      "ends with it",
                      wait.line, later->name, later->line));
  }
  return texts;
}

/// `shopt -s nullglob`: a pattern that matches no file here is gone.
Sentences drops_patterns(const Examined& script) {
  const auto set = std::ranges::find_if(script.recording.traced, [](const auto& one) {
    return one.text.starts_with("shopt -s") &&
           (one.text.contains("nullglob") || one.text.contains("failglob"));
  });
  if (set == script.recording.traced.end()) return {};
  // In a loop, an array or an argument with a directory; not in `case`, [[ ]] or $(( )).
  static const RE2 kPattern(
      R"re(\bfor\s+\w+\s+in\s[^;#]*[*?]|=\([^)#]*[*?]|^[^#"'\[()]*\s[\w./${}~-]*/[\w.${}-]*\*[^\s)"']*(?:\s|$))re");
  static const RE2 kOff(R"re(\bshopt\s+-u\s+\w*glob)re");
  for (std::size_t number = set->line; number < script.lines.size(); ++number) {
    const auto& line = script.lines[number];
    if (RE2::PartialMatch(line, kOff)) break;
    if (RE2::PartialMatch(line, kPattern))
      return {fmt::format(
          "line {}: with nullglob, a pattern stands for the files on the cluster, and for nothing "
          "here: name the files",
          number + 1)};
  }
  return {};
}

}  // namespace

std::span<const Refusal> refusals_of_waits() {
  static constexpr std::array kRefusals{
      Refusal{"import.loop", repeats_in_the_background}, Refusal{"import.loop", repeats_while_another_runs},
      Refusal{"import.files", loops_over_files},         Refusal{"import.wait", waits_for_an_unknown_one},
      Refusal{"import.wait", waits_for_the_first},       Refusal{"import.poll", polls_by_a_program},
      Refusal{"import.wait", waits_for_some_of_a_role},  Refusal{"import.files", drops_patterns},
      Refusal{"import.wait", waits_for_a_later_one},
  };
  return kRefusals;
}

}  // namespace nlaunch::import
