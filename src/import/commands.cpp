#include "import/commands.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "import/functions.h"
#include "import/inner_scripts.h"
#include "import/loop_values.h"
#include "import/loops.h"
#include "import/programs.h"
#include "import/ray.h"
#include "import/redirections.h"
#include "import/requeue.h"
#include "import/secrets.h"
#include "import/single_commands.h"
#include "import/variables.h"
#include "import/wrappers.h"

namespace nlaunch::import {
namespace {

constexpr unsigned kDeepestScripts = 6;    // scripts within scripts
constexpr unsigned kMostInCalls = 20'000;  // commands: functions can call each other without end

class Walker {
 public:
  Walker(const lint::LintInput& input, const std::vector<std::pair<std::string, std::uint32_t>>& numbers)
      : input_(input) {
    for (const auto& [name, number] : numbers) out_.values.set_number(name, number);
    out_.lines = text::split(input_.script->file->text, '\n');
    loops_ = LoopValues(out_.lines, *input_.script);
    find_functions();
  }

  Doings walk() {
    script(*input_.script, {});
    variables_.finish();
    return std::move(out_);
  }

 private:
  void script(const lint::Script& script, Context context) {
    const auto* last = context.around.background ? last_program(script) : nullptr;
    const auto background = std::exchange(context.around.background, false);
    for (const auto& command : script.commands) {
      // What a substitution runs is part of a value; a job that it submits is one all the same.
      const bool here = &script != &*input_.script || !is_read_at_calls(command);
      context.around.background = background && &command == last;
      if (here && (!command.nested || command.name() == "sbatch")) read(command, context);
    }
  }

  void inner(const InnerScript& inside, const Launch& launch, const Context& context) {
    if (context.depth >= kDeepestScripts) return;
    const auto file = std::make_shared<const SourceFile>(SourceFile{"", inside.text});
    auto around = launch;
    around.words.clear();
    const bool own = around.program != "eval";
    const auto begun = own ? out_.values.begin_shell() : 0;
    script(lint::read_shell(file), {inside.offset, context.depth + 1, context.calls, context.call_line,
                                    own || context.own_shell, std::move(around)});
    if (own) out_.values.end_shell(begun);
  }

  /// Functions that are called with arguments are read where they are called, the others where they stand.
  void find_functions() {
    functions_ = functions_of(out_.lines);
    for (const auto& command : input_.script->commands) {
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
    if (called_.contains(launch.program) && context.calls < kDeepestScripts && ++in_calls_ < kMostInCalls) {
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
      for (const auto& command : input_.script->commands) {
        const bool inside_it = !command.nested && function.holds(command.span);
        if (inside_it && ++in_calls_ < kMostInCalls) read(command, inside);
      }
      out_.values.give(std::move(given));
    }
    if (out_.launches.size() == before && names_program(launch))
      remark(out_, Destination::roles, launch.line, std::string(kThatLine));
  }

  // ------------------------------------------------------------------- what a command is
  void read(const lint::Command& command, Context& context) {
    const auto line = command.span.line + context.offset;
    const auto name = command.name();
    if (context.depth == 0) loops_.enter(line, command.span.column, out_.values, variables_.number());
    const bool declares =
        name == "export" || name == "declare" || name == "typeset" || name == "readonly" || name == "local";
    if (declares || command.words.empty()) return variables_.assign(command, context);
    if (name == "sbatch")
      return read_resubmission(command, line, input_.script->file->name, variables_.number(), out_);
    Launch launch = context.around;
    launch.line = line;
    launch.background = launch.background || command.background;
    if (context.depth == 0) launch.output = output_file(out_.lines, command.span.line, command.span.column);
    if (const auto* loop = loops_.innermost())
      launch.loop = loop_remark(*loop, variables_.number(), launch.background);
    for (const auto& one : command.assignments)
      launch.variables.push_back({one.name, out_.values.of(one.value), one.span.line + context.offset});
    for (const auto& word : command.words) {
      launch.passes_arguments =
          launch.passes_arguments || (Values::is_arguments(word) && !out_.values.given());
      for (auto& value : out_.values.split(word)) launch.words.push_back(std::move(value));
    }
    unwrap(std::move(launch), command, context);
  }

  /// Takes off what stands in front of the program, then looks at that.
  void unwrap(Launch launch, const lint::Command& command, Context& context) {
    take_off_wrappers(launch, out_);
    keep_secrets(launch, out_.secrets);
    if (launch.words.empty()) return;
    launch.program = base_name(launch.words.front().text().value_or(""));
    if (const auto inside = inner_script(launch, command, context.offset, out_.values)) {
      if (launch.program != "eval" || !evaluates_output(*inside)) return inner(*inside, launch, context);
      if (inside->text.find("conda") == std::string::npos)
        remark(out_, Destination::roles, launch.line, std::string(kThatLine));
      return;
    }
    if (take_off_container(launch, out_)) return unwrap(std::move(launch), command, context);
    find_started_program(launch);
    dispatch(std::move(launch), command, context);
  }

  /// Commands that print leave no role, but a file that one of them writes may be one that others read.
  void remark_written_file(const lint::Command& command, const Context& context) {
    if (context.depth > 0) return;
    const auto file = output_file(out_.lines, command.span.line, command.span.column);
    const bool log = file.find("log") != std::string::npos || file.ends_with(".out") ||
                     file.ends_with(".err") || file.starts_with("/dev/");
    if (!file.empty() && !log)
      remark(out_, Destination::roles, command.span.line,
             fmt::format("{}; it writes {}, and nobody here does", kThatLine, file));
  }

  void dispatch(Launch launch, const lint::Command& command, Context& context) {
    const auto& name = launch.program;
    const auto line = launch.line;
    const auto second = launch.words.size() > 1 ? launch.words[1].known() : "";
    if (name == "set") return variables_.set_option(command);
    if (name == "module" || name == "ml") return read_module(launch, out_);
    if (name == "source" || name == ".") return read_source(launch, out_);
    if (name == "cd" || name == "pushd") return read_cd(launch, command, out_);
    if (name == "unset") return variables_.unset(launch, command, context);
    if (name == "curl" || name == "wget" || name == "nc")
      return read_poll(launch, command, variables_.number(), out_);
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
      return variables_.read(launch, command);
    if (is_syntax(name)) return;
    if (name == "trap") read_trap(launch, input_.script->file->name, variables_.number(), out_);
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
      return remark(out_, Destination::roles, line,
                    fmt::format("{}; what it does is not taken over", kThatLine));
    if (name == "ray" && second == "job") ray_job(launch, !command.conditional);
    if (is_program(launch, command)) {
      if (context.calls > 0) launch.line = context.call_line;
      remark_step_options(launch, out_);
      for (auto& word : launch.words)
        word.word = nullptr;  // its script may be gone before the launch is used
      out_.launches.push_back(std::move(launch));
    } else {
      remark(out_, Destination::roles, line, std::string(kThatLine));
    }
  }

  void ray_job(const Launch& launch, bool sure) {
    auto options = ray_job_options(launch);
    for (auto& [name, text] : options.variables) {
      Exported made{std::move(name), Value::just(std::move(text)), launch.line, true, sure};
      keep_secret(made.name, made.value, out_.secrets);
      variables_.set(std::move(made));
    }
    for (auto& one : options.remarks) remark(out_, Destination::environment, launch.line, std::move(one));
  }

  const lint::LintInput& input_;
  Doings out_;
  ScriptVariables variables_{out_};
  ShellFunctions functions_;
  std::set<std::string, std::less<>> called_;  ///< functions, with arguments
  unsigned in_calls_ = 0;
  LoopValues loops_;
};

}  // namespace

void remark(Doings& doings, Destination destination, std::uint32_t line, std::string text) {
  doings.remarks.push_back({destination, {line, std::move(text)}});
}

Doings read_doings(const lint::LintInput& input,
                   const std::vector<std::pair<std::string, std::uint32_t>>& numbers) {
  return Walker(input, numbers).walk();
}

}  // namespace nlaunch::import
