#include "emit/import/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/text.h"
#include "emit/import/functions.h"
#include "emit/import/loop_values.h"
#include "emit/import/loops.h"
#include "emit/import/programs.h"
#include "emit/import/ray.h"
#include "emit/import/redirections.h"
#include "emit/import/secrets.h"
#include "emit/import/single_commands.h"
#include "emit/import/wrappers.h"

namespace nlaunch::emit {
namespace {

constexpr unsigned kDeepest = 6;           // scripts within scripts
constexpr unsigned kMostInCalls = 20'000;  // commands: functions can call each other without end

/// Where a command stands: within how much, and under what.
struct Context {
  std::uint32_t offset = 0;  ///< lines before its script
  unsigned depth = 0;
  unsigned calls = 0;           ///< of functions, around it
  std::uint32_t call_line = 0;  ///< of the outermost of these
  bool own_shell = false;       ///< bash -c: what it sets, the script does not have
  Launch around;                ///< srun and variables that stand in front of it
};

class Walker {
 public:
  Walker(const lint::Scene& scene, const std::vector<std::pair<std::string, std::uint32_t>>& numbers)
      : scene_(scene) {
    for (const auto& [name, number] : numbers) out_.values.set_number(name, number);
    out_.lines = text::split(scene_.script->file->text, '\n');
    loops_ = LoopValues(out_.lines, *scene_.script);
    find_functions();
  }

  Doings walk() {
    script(*scene_.script, {});
    for (auto& [name, one] : variables_) {
      if (!one.exported && exported_.contains(name)) {
        one.exported = true;
        for (const auto& doubt : out_.values.of_variable(name).doubts) one.value.doubt(doubt);
      }
      out_.variables.push_back(std::move(one));
    }
    std::ranges::stable_sort(out_.variables, {}, &Exported::line);
    return std::move(out_);
  }

 private:
  void script(const lint::Script& script, Context context) {
    const auto* last = context.around.background ? last_program(script) : nullptr;
    const auto background = std::exchange(context.around.background, false);
    for (const auto& command : script.commands) {
      // What a substitution runs is part of a value; a job that it submits is one all the same.
      const bool here = &script != &*scene_.script || !is_read_at_calls(command);
      context.around.background = background && &command == last;
      if (here && (!command.nested || command.name() == "sbatch")) read(command, context);
    }
  }

  /// Of a shell in the background, the one that stays.
  static const lint::Command* last_program(const lint::Script& script) {
    const lint::Command* last = nullptr;
    for (const auto& command : script.commands) {
      const auto name = command.name();
      const bool other = command.nested || command.words.empty() || is_syntax(name) || is_left_out(name) ||
                         name == "export" || name == "source" || name == "cd";
      if (!other) last = &command;
    }
    return last;
  }

  void inner(const std::string& text, std::uint32_t offset, const Context& context, const Launch& around) {
    if (context.depth >= kDeepest) return;
    const auto file = std::make_shared<const SourceFile>(SourceFile{"", text});
    const bool own = around.program != "eval";
    const auto begun = own ? out_.values.begin_shell() : 0;
    script(lint::read_shell(file),
           {offset, context.depth + 1, context.calls, context.call_line, own || context.own_shell, around});
    if (own) out_.values.end_shell(begun);
  }

  void remark(Place place, std::uint32_t line, std::string text) {
    out_.remarks.push_back({place, {line, std::move(text)}});
  }

  /// Functions that are called with arguments are read where they are called, the others where they stand.
  void find_functions() {
    functions_ = functions_of(out_.lines);
    for (const auto& command : scene_.script->commands) {
      const bool arguments = !command.nested && command.words.size() > 1;
      if (arguments && functions_.contains(command.name())) called_.insert(command.name());
    }
  }

  [[nodiscard]] bool is_read_at_calls(const lint::Command& command) const {
    return std::ranges::any_of(
        called_, [&](const auto& name) { return functions_.find(name)->second.holds(command.span); });
  }

  /// What a function of the script does with the arguments of this call.
  void call(const Launch& launch, const Context& context) {
    const auto before = out_.launches.size();
    if (called_.contains(launch.program) && context.calls < kDeepest && ++in_calls_ < kMostInCalls) {
      Context inside{0,
                     context.depth,
                     context.calls + 1,
                     context.calls > 0 ? context.call_line : launch.line,
                     context.own_shell,
                     launch};
      inside.around.words.clear();
      inside.around.passes_arguments = false;
      auto given = out_.values.given();
      const bool same = launch.passes_arguments && launch.words.size() == 1;  // main "$@"
      if (!same) out_.values.give(std::vector<Value>(std::next(launch.words.begin()), launch.words.end()));
      const auto& function = functions_.find(launch.program)->second;
      for (const auto& command : scene_.script->commands) {
        const bool inside_it = !command.nested && function.holds(command.span);
        if (inside_it && ++in_calls_ < kMostInCalls) read(command, inside);
      }
      out_.values.give(std::move(given));
    }
    if (out_.launches.size() == before && names_program(launch))
      remark(Place::roles, launch.line, std::string(kThatLine));
  }

  // ------------------------------------------------------------------- what a command is
  void read(const lint::Command& command, Context& context) {
    const auto line = command.span.line + context.offset;
    const auto name = command.name();
    if (context.depth == 0) loops_.enter(line, command.span.column, out_.values, number());
    const bool declares =
        name == "export" || name == "declare" || name == "typeset" || name == "readonly" || name == "local";
    if (declares || command.words.empty()) return assignments(command, name, context);
    if (name == "sbatch") return resubmission(command, line);
    Launch launch = context.around;
    launch.line = line;
    launch.background = launch.background || command.background;
    if (context.depth == 0) launch.output = output_file(out_.lines, command.span.line, command.span.column);
    if (const auto* loop = loops_.innermost()) launch.loop = loop_remark(*loop, number(), launch.background);
    for (const auto& one : command.assignments)
      launch.variables.push_back({one.name, out_.values.of(one.value), one.span.line + context.offset});
    for (const auto& word : command.words) {
      launch.passes_arguments =
          launch.passes_arguments || (Values::is_arguments(word) && !out_.values.given());
      for (auto& value : out_.values.split(word)) launch.words.push_back(std::move(value));
    }
    unwrap(std::move(launch), command, context);
  }

  void assignments(const lint::Command& command, const std::string& name, Context& context) {
    bool exports = name == "export" || all_exported_;
    for (const auto& word : command.words) {
      const auto text = word.constant().value_or("");
      if (&word == &command.words.front()) continue;
      if (text.starts_with('-'))
        exports = exports || (name != "export" && text.find('x') != std::string::npos);
      if (text.starts_with('-') || !exports) continue;
      if (context.own_shell && is_variable_name(text))
        hand_on({text, out_.values.of_variable(text), command.span.line + context.offset}, command, context);
      else if (!context.own_shell)
        exported_.insert(text);
    }
    for (const auto& one : command.assignments) {
      const auto line = one.span.line + context.offset;
      const bool local = name == "local";
      auto value = out_.values.of(one.value);  // before it is set: X=/a:$X
      const bool in_order = context.depth > 0 || context.calls > 0;
      const bool sure = (in_order && !command.conditional) || (command.sure && context.depth == 0) ||
                        (local && context.calls > 0);
      out_.values.assign(one, sure, line, command.conditional);
      keep_secret(one.name, value, out_.secrets);
      for (const auto& element : one.elements) keep_secret(one.name, out_.values.of(element), out_.secrets);
      if (local || one.array) continue;
      if (context.own_shell) {
        if (exports) hand_on({one.name, std::move(value), line}, command, context);
        continue;
      }
      Exported made{one.name, std::move(value), line, exports, command.sure};
      if (one.append) {
        made.value = out_.values.of_variable(one.name);
        made.value.word = nullptr;
      }
      set(std::move(made));
    }
  }

  /// What the shell of `bash -c` exports, for the programs behind it there.
  void hand_on(Launch::Variable variable, const lint::Command& command, Context& context) {
    variable.value.word = nullptr;
    if (command.conditional)
      return remark(Place::environment, variable.line, fmt::format("only under a condition: {}", kThatLine));
    std::erase_if(context.around.variables, [&](const auto& one) { return one.name == variable.name; });
    context.around.variables.push_back(std::move(variable));
  }

  void set(Exported made) {
    const auto before = variables_.find(made.name);
    if (before == variables_.end() || made.sure || !before->second.sure) {
      made.exported = made.exported || (before != variables_.end() && before->second.exported);
      variables_[made.name] = std::move(made);
    } else if (made.exported) {
      remark(Place::environment, made.line, fmt::format("only under a condition: {}", kThatLine));
    }
  }

  /// Takes off what stands in front of the program, then looks at that.
  void unwrap(Launch launch, const lint::Command& command, Context& context) {
    take_off_wrappers(launch, out_);
    keep_secrets(launch, out_.secrets);
    if (launch.words.empty()) return;
    launch.program = base_name(launch.words.front().text().value_or(""));
    if (launch.program == "bash" || launch.program == "sh" || launch.program == "eval") {
      if (shell(launch, command, context)) return;
    }
    if (take_off_container(launch, out_)) return unwrap(std::move(launch), command, context);
    find_started_program(launch);
    dispatch(std::move(launch), command, context);
  }

  /// A shell with a script in a word or behind <<: true where that was read in its place.
  bool shell(const Launch& launch, const lint::Command& command, const Context& context) {
    Launch around = launch;
    around.words.clear();
    if (launch.program == "eval") {
      std::string text;
      for (std::size_t i = 1; i < launch.words.size(); ++i) {
        const auto* word = launch.words[i].word;
        text +=
            fmt::format("{} ", word == nullptr ? launch.words[i].known() : out_.values.inner_script(*word));
      }
      if (text.find("$(") == std::string::npos)
        inner(text, launch.line - 1, context, around);
      else if (text.find("conda") == std::string::npos)
        remark(Place::roles, launch.line, std::string(kThatLine));
      return true;
    }
    for (std::size_t i = 1; i < launch.words.size(); ++i) {
      const auto text = launch.words[i].known();
      if (!text.starts_with('-') && !text.starts_with('+')) break;
      if (text.starts_with("--") || text.find('c') == std::string::npos) continue;
      if (i + 1 >= launch.words.size()) return false;
      const auto& script = launch.words[i + 1];
      const auto line = script.word == nullptr || !script.word->span
                            ? launch.line
                            : script.word->span.line + context.offset;
      const auto written = script.word == nullptr ? script.known() : out_.values.inner_script(*script.word);
      if (is_variable_alone(written)) return false;
      inner(written, line - 1, context, around);
      return true;
    }
    if (command.heredocs.empty()) return false;
    const auto& heredoc = command.heredocs.front();
    inner(heredoc.text, heredoc.span.line - 1 + context.offset, context, around);
    return true;
  }

  /// "${NAME}": a script that the caller has.
  static bool is_variable_alone(const std::string& text) {
    return text.starts_with("${") && text.find('}') == text.size() - 1 && text.find(' ') == std::string::npos;
  }

  /// `read NAME`, `mapfile NAME`: what it gets, as far as that stands in the script.
  void read_variables(const Launch& launch, const lint::Command& command) {
    const bool array = launch.program != "read";
    const bool nodes = array && out_.lines[std::min<std::size_t>(launch.line, out_.lines.size()) - 1].find(
                                    "scontrol show hostname") != std::string::npos;
    for (std::size_t i = 1; i < launch.words.size(); ++i) {
      const auto name = launch.words[i].text().value_or("");
      if (name == "-d" || name == "-n" || name == "-p" || name == "-u" || (!array && name == "-t")) {
        ++i;
        continue;
      }
      if (!is_variable_name(name)) continue;
      lint::Assignment one;
      one.name = name;
      if (nodes) {
        one.array = true;
        one.elements.push_back({{{lint::Part::Kind::unknown, "$(scontrol show hostnames)"}}, {}, false});
        out_.values.assign(one, true, launch.line);
      } else if (!array && !command.heredocs.empty()) {
        one.value = word_of(command.heredocs.front());
        out_.values.assign(one, true, launch.line);
        set({name, out_.values.of_variable(name), launch.line, false, true});
        return;
      } else {
        out_.values.doubt(name,
                          {launch.line, fmt::format("{} is read when the script runs: {}", name, kThatLine)});
      }
    }
  }

  /// A trap may hand the job back to Slurm.
  void read_trap(const Launch& launch) {
    if (launch.words.size() < 2) return;
    const auto* word = launch.words[1].word;
    const auto script =
        script_of(word == nullptr ? launch.words[1].known() : out_.values.inner_script(*word));
    for (const auto& command : script.commands) {
      const auto name = command.name();
      const auto second = command.words.size() > 1 ? command.words[1].constant().value_or("") : "";
      if (name == "scontrol" && second == "requeue") out_.requeues = true;
      if (name == "sbatch") resubmission(command, launch.line);
    }
  }

  /// Commands that print leave no role, but a file that one of them writes may be one that others read.
  void remark_written_file(const lint::Command& command, const Context& context) {
    if (context.depth > 0) return;
    const auto file = output_file(out_.lines, command.span.line, command.span.column);
    const bool log = file.find("log") != std::string::npos || file.ends_with(".out") ||
                     file.ends_with(".err") || file.starts_with("/dev/");
    if (!file.empty() && !log)
      remark(Place::roles, command.span.line,
             fmt::format("{}; it writes {}, and nobody here does", kThatLine, file));
  }

  void dispatch(Launch launch, const lint::Command& command, Context& context) {
    const auto& name = launch.program;
    const auto line = launch.line;
    const auto second = launch.words.size() > 1 ? launch.words[1].known() : "";
    if (name == "set") return set_option(command);
    if (name == "module" || name == "ml") return read_module(launch, out_);
    if (name == "source" || name == ".") return read_source(launch, out_);
    if (name == "cd" || name == "pushd") return read_cd(launch, command, out_);
    if (name == "unset") {
      if (context.own_shell || !command.sure)
        return remark(Place::environment, line, fmt::format("for a part of the script alone: {}", kThatLine));
      for (std::size_t i = 1; i < launch.words.size(); ++i) {
        const auto variable = launch.words[i].known();
        out_.values.forget(variable);
        variables_.erase(variable);
        if (is_variable_name(variable)) out_.unset.emplace_back(variable, line);
      }
      return;
    }
    if (name == "curl" || name == "wget" || name == "nc") return read_poll(launch, command, number(), out_);
    if (name == "scontrol" || name == "popd") {
      out_.requeues = out_.requeues || (name == "scontrol" && second == "requeue");
      remark_written_file(command, context);
      return;
    }
    if (name == "ray" && second != "start" && second != "job") {
      out_.left_out.insert(fmt::format("ray {}", second));
      return;
    }
    if (name == "conda" || name == "mamba" || name == "micromamba") return read_conda(launch, out_);
    if (read_login(launch, out_)) return;
    if (name == "shift") out_.values.shift(std::max(1U, number_at_start(second)));
    if (name == "read" || name == "mapfile" || name == "readarray" || name == "getopts")
      return read_variables(launch, command);
    if (is_syntax(name)) return;
    if (name == "trap") read_trap(launch);
    if (is_left_out(name)) {
      remark_written_file(command, context);
      out_.left_out.insert(name);
      return;
    }
    if ((name == "cat" || name == "tee") && command.heredocs.empty())
      return remark_written_file(command, context);
    if (name.empty() && launch.words.front().has(Piece::Kind::text))
      launch.program = base_name(launch.words.front().known());
    if (functions_.contains(launch.program)) return call(launch, context);
    if (is_inline_python(launch))
      return remark(Place::roles, line, fmt::format("{}; what it does is not taken over", kThatLine));
    if (name == "ray" && second == "job") ray_job(launch, !command.conditional);
    if (is_program(launch, command)) {
      if (context.calls > 0) launch.line = context.call_line;
      remark_step_options(launch, out_);
      for (auto& word : launch.words)
        word.word = nullptr;  // its script may be gone before the launch is used
      out_.launches.push_back(std::move(launch));
    } else {
      remark(Place::roles, line, std::string(kThatLine));
    }
  }

  void ray_job(const Launch& launch, bool sure) {
    auto options = ray_job_options(launch);
    for (auto& [name, text] : options.variables) {
      Exported made{std::move(name), Value::just(std::move(text)), launch.line, true, sure};
      keep_secret(made.name, made.value, out_.secrets);
      set(std::move(made));
    }
    for (auto& one : options.remarks) remark(Place::environment, launch.line, std::move(one));
  }

  // ------------------------------------------------------------------- the single commands
  void set_option(const lint::Command& command) {
    for (std::size_t i = 1; i < command.words.size(); ++i) {
      const auto text = command.words[i].constant().value_or("");
      if (text == "-a" || text == "+a") all_exported_ = text[0] == '-';
      if (text == "allexport") all_exported_ = command.words[i - 1].constant().value_or("").starts_with('-');
    }
    out_.left_out.insert("set");
  }

  void resubmission(const lint::Command& command, std::uint32_t line) {
    bool itself = false;
    for (const auto& word : command.words) {
      const auto written = out_.values.inner_script(word);
      itself = itself || written.find("${0}") != std::string::npos ||
               written.find("BASH_SOURCE") != std::string::npos ||
               base_name(written) == base_name(scene_.script->file->name);
    }
    if (!itself) return remark(Place::walltime, line, std::string(kThatLine));
    out_.resubmits = line;
    out_.most_resubmits = bound_before(out_.lines, line, number());
  }

  /// What a number or a variable in the text of a loop stands for; 0: no number.
  [[nodiscard]] NumberIn number() const {
    return [this](std::string text) {
      std::erase_if(text, [](char c) { return c == '"' || c == '$' || c == '{' || c == '}'; });
      if (const auto one = variables_.find(text); one != variables_.end()) {
        text = one->second.value.known();
        const auto fallback = text.rfind(":-");  // of ${env.NAME:-30}
        if (fallback != std::string::npos) text = text.substr(fallback + 2, text.size() - fallback - 3);
      }
      return number_at_start(text);
    };
  }

  const lint::Scene& scene_;
  Doings out_;
  std::map<std::string, Exported> variables_;
  ShellFunctions functions_;
  std::set<std::string, std::less<>> called_;  ///< functions, with arguments
  unsigned in_calls_ = 0;
  std::set<std::string> exported_;
  bool all_exported_ = false;
  LoopValues loops_;
};

}  // namespace

Doings read_doings(const lint::Scene& scene,
                   const std::vector<std::pair<std::string, std::uint32_t>>& numbers) {
  return Walker(scene, numbers).walk();
}

}  // namespace nlaunch::emit
