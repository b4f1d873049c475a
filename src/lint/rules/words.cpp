#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/srun.h"
#include "shell/words.h"

/// Words of a script that the shell, or a program, takes for something else.
namespace nlaunch::lint {
namespace {

/// "$NAME" of a variable that the program has, in a word that no shell expands any more. ${NAME} is read by
/// programs, too.
std::string unexpanded_in(const Program& program, const std::string& word) {
  for (auto at = word.find('$'); at != std::string::npos; at = word.find('$', at + 1)) {
    const auto begin = at + 1;
    auto end = begin;
    while (end < word.size() && (word[end] == '_' || (word[end] >= 'A' && word[end] <= 'Z') ||
                                 (end > begin && word[end] >= '0' && word[end] <= '9')))
      ++end;
    const auto name = word.substr(begin, end - begin);
    constexpr std::size_t kShortest = 3;
    if (name.size() >= kShortest && program.environment.contains(name)) return name;
  }
  return {};
}

void check_unexpanded_word(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& program : input.script->programs) {
    if (!program.works) continue;
    const auto& words = program.words;
    const auto name = words[0].substr(words[0].rfind('/') + 1);
    if (name == "ray" || name == "nlaunch" || name == "ssh" || name == "awk")
      continue;  // they expand, or hand on
    for (std::size_t i = 1; i < words.size(); ++i) {
      const bool code = words[i - 1] == "-c" || words[i - 1] == "-e" ||
                        words[i].find('\n') != std::string::npos || words[i].find(' ') != std::string::npos;
      const auto variable = code ? std::string() : unexpanded_in(program, words[i]);
      if (variable.empty()) continue;
      return report.warning(program.span,
                            {fmt::format("{} gets the text ${} in place of its value", name, variable),
                             "within single quotes, or behind a backslash, nothing is expanded",
                             fmt::format("\"${}\" in double quotes", variable), ""});
    }
  }
}

const Registered<Rule> unexpanded_word_rule{{
    .order = 361,
    .name = "unexpanded-word",
    .title = "an argument with the name of a variable in place of its value",
    .explain =
        "The shell expands $NAME, not the program. Looked at is what names a variable that the program has.",
    .source = "bash(1), QUOTING",
    .check = check_unexpanded_word,
}};

void check_blanks_around_equals(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& command : input.script->commands) {
    const auto& words = command.words;
    if (words.size() < 2 || words[1] != "=" || !is_variable_name(words[0])) continue;
    report.error(command.span,
                 {fmt::format("bash takes {} for a program", words[0]),
                  "an assignment has no blanks around its =: the program is not found, and the variable is "
                  "not set",
                  fmt::format("{}=…", words[0]), ""});
  }
}

const Registered<Rule> blanks_around_equals_rule{{
    .order = 362,
    .name = "blanks-around-equals",
    .title = "an assignment with blanks around its =",
    .explain = "NAME = VALUE is the command NAME with two arguments.",
    .source = "bash(1), PARAMETERS",
    .check = check_blanks_around_equals,
}};

void check_step_without_program(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& program : input.script->programs) {
    if (shell::program_name(program.words[0]) != "srun" ||
        shell::words_of_srun(program.words) < program.words.size())
      continue;
    report.error(
        program.span,
        {"this srun starts no program",
         "it ends with an error; what is meant may stand in the next line, without a backslash at the "
         "end of this one",
         "a backslash at the end of the line, and no blank behind it", ""});
  }
}

const Registered<Rule> step_without_program_rule{{
    .order = 363,
    .name = "step-without-program",
    .title = "srun without a program",
    .explain =
        "A line that goes on in the next ends with a backslash. Without it srun has its options alone.",
    .source = "srun(1)",
    .check = check_step_without_program,
}};

/// Calls `look` for each line of the script that is no comment.
template <class Look>
void each_text(const Script& script, const Look& look) {
  const SourceLines lines(script.file);
  for (std::uint32_t number = 1; number <= lines.count(); ++number)
    if (const auto text = lines.line(number); !text::trim(text).starts_with('#'))
      look(text, lines.whole(number));
}

void check_own_path(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty()) return;
  const auto& text = input.script->file->text;
  if (text.find("SLURM_SUBMIT_DIR") != std::string::npos ||
      text.find("scontrol show job") != std::string::npos)
    return;
  static const RE2 kPath(
      R"re(\b(dirname|readlink -f|realpath)\s+(--\s+)?"?\$\{?(0|BASH_SOURCE(\[0\])?)\}?)re");
  bool told = false;
  each_text(*input.script, [&](std::string_view line, const SourceSpan& span) {
    if (told || !RE2::PartialMatch(line, kPath)) return;
    told = true;
    report.warning(
        span,
        {"the script looks for its own folder, and runs as a copy",
         "sbatch copies it: $0 is in a folder of slurmd's (/var/spool/…), where nothing else of yours is",
         "SLURM_SUBMIT_DIR, or a path that is written out", ""});
  });
}

const Registered<Rule> own_path_rule{{
    .order = 364,
    .name = "own-path",
    .title = "a batch script that looks for its own folder",
    .explain = "Slurm runs a copy of the script on the first node. Where it is called by bash it has its own "
               "folder.",
    .source = "sbatch(1), DESCRIPTION",
    .check = check_own_path,
}};

void check_all_addresses(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kAsks(R"re(=\s*"?(\$\(|`)[^)|`]*hostname\s+(-I|--all-ip-addresses)\s*(\)|`))re");
  bool told = false;
  each_text(*input.script, [&](std::string_view line, const SourceSpan& span) {
    if (told || !RE2::PartialMatch(line, kAsks)) return;
    const auto name = std::string(text::trim(line.substr(0, line.find('='))));
    const auto variable = name.substr(name.rfind(' ') + 1);
    // It is looked at later: `if [[ "$ip" == *" "* ]]`, read -ra, ${ip%% *}.
    const auto& text = input.script->file->text;
    const bool cut = text.find("${" + variable + "%") != std::string::npos ||
                     text.find("${" + variable + "[") != std::string::npos ||
                     text.find("\"$" + variable + "\" == *") != std::string::npos ||
                     text.find("<<< ") != std::string::npos;
    if (cut) return;
    told = true;
    report.note(span,
                {"hostname -I prints all addresses of the node",
                 "those of all interfaces, parted by blanks, in no order that says which one others reach",
                 "| awk '{print $1}', or the host's name", ""});
  });
}

const Registered<Rule> all_addresses_rule{{
    .order = 365,
    .name = "all-addresses",
    .title = "all addresses of a host, taken for one",
    .explain = "hostname -I prints the addresses of all interfaces.",
    .source = "hostname(1)",
    .check = check_all_addresses,
}};

void check_port_range(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kRange(R"re(shuf\s+-i\s*(\d+)-\d+)re");
  each_text(*input.script, [&](std::string_view line, const SourceSpan& span) {
    std::uint32_t first = 0;
    constexpr std::uint32_t kFirstFree = 1024;
    const auto lower = text::lower(std::string(line));
    if (lower.find("port") == std::string::npos || !RE2::PartialMatch(line, kRange, &first) ||
        first >= kFirstFree)
      return;
    report.warning(span, {fmt::format("a port from {} on is chosen", first),
                          "below 1024 nobody but root may listen: a run fails now and then",
                          "shuf -i 20000-30000 -n 1", ""});
  });
}

const Registered<Rule> port_range_rule{{
    .order = 366,
    .name = "port-range",
    .title = "a random port that nobody may have",
    .explain =
        "Ports below 1024 are root's, and those of 32768 to 60999 are given to any connection (Linux).",
    .source = "ip(7), ip_local_port_range",
    .check = check_port_range,
}};

void check_proxy_scheme(const LintInput& input, Report& report) {
  for (const auto* name : {"https_proxy", "HTTPS_PROXY"}) {
    each_value(input, report, name,
               [&](const Environment&, const Setting& setting, const std::string& value) {
                 if (!value.starts_with("https://")) return;
                 report.note(setting.span,
                             {fmt::format("{} asks for TLS to the proxy itself", setting.name),
                              "most proxies of clusters speak HTTP, and hand on HTTPS: the connection fails",
                              fmt::format("{}=http://…", setting.name), ""});
               });
  }
}

const Registered<Rule> proxy_scheme_rule{{
    .order = 367,
    .name = "proxy-scheme",
    .title = "a proxy that is to be spoken to over TLS",
    .explain = "The name says for which addresses the proxy is, the value how it is reached.",
    .source = "curl(1), ENVIRONMENT",
    .check = check_proxy_scheme,
}};

void check_library_path(const LintInput& input, Report& report) {
  if (!input.script || input.modules.empty()) return;
  bool told = false;
  static const RE2 kReplaces(
      R"re(^\s*export\s+LD_LIBRARY_PATH=["']?([^"'$\s]|\$[^L{]|\$\{[^L])*["']?\s*$)re");
  each_text(*input.script, [&](std::string_view line, const SourceSpan& span) {
    const bool behind = std::ranges::any_of(input.modules, [&](const Module& module) {
      return module.span.file == span.file && module.span.line < span.line;
    });
    if (told || !behind || line.find("LD_LIBRARY_PATH", line.find('=')) != std::string_view::npos ||
        !RE2::PartialMatch(line, kReplaces))
      return;
    told = true;
    report.warning(
        span, {"LD_LIBRARY_PATH is replaced, and modules were loaded before",
               "what they have put there is gone: their libraries are not found, or others of the system are",
               "export LD_LIBRARY_PATH=…:$LD_LIBRARY_PATH", ""});
  });
}

const Registered<Rule> library_path_rule{{
    .order = 368,
    .name = "library-path",
    .title = "LD_LIBRARY_PATH without what modules have put there",
    .explain = "Modules add their folders to the list. A new value drops them.",
    .source = "ld.so(8)",
    .check = check_library_path,
}};

}  // namespace
}  // namespace nlaunch::lint
