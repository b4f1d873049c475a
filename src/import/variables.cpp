#include "import/variables.h"

#include <fmt/format.h>

#include <algorithm>

#include "import/secrets.h"
#include "import/wrappers.h"

namespace nlaunch::import {

void ScriptVariables::assign(const lint::Command& command, Context& context) {
  const auto name = command.name();
  bool exports = name == "export" || all_exported_;
  for (const auto& word : command.words) {
    const auto text = word.constant().value_or("");
    if (&word == &command.words.front()) continue;
    if (text.starts_with('-')) exports = exports || (name != "export" && text.find('x') != std::string::npos);
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
void ScriptVariables::hand_on(Launch::Variable variable, const lint::Command& command, Context& context) {
  variable.value.word = nullptr;
  if (command.conditional)
    return remark(out_, Destination::environment, variable.line,
                  fmt::format("only under a condition: {}", kThatLine));
  std::erase_if(context.around.variables, [&](const auto& one) { return one.name == variable.name; });
  context.around.variables.push_back(std::move(variable));
}

void ScriptVariables::set(Exported made) {
  const auto before = variables_.find(made.name);
  if (before == variables_.end() || made.sure || !before->second.sure) {
    made.exported = made.exported || (before != variables_.end() && before->second.exported);
    variables_[made.name] = std::move(made);
  } else if (made.exported) {
    remark(out_, Destination::environment, made.line, fmt::format("only under a condition: {}", kThatLine));
  }
}

void ScriptVariables::unset(const Launch& launch, const lint::Command& command, const Context& context) {
  if (context.own_shell || !command.sure)
    return remark(out_, Destination::environment, launch.line,
                  fmt::format("for a part of the script alone: {}", kThatLine));
  for (std::size_t i = 1; i < launch.words.size(); ++i) {
    const auto variable = launch.words[i].known();
    out_.values.forget(variable);
    variables_.erase(variable);
    if (is_variable_name(variable)) out_.unset.emplace_back(variable, launch.line);
  }
}

void ScriptVariables::read(const Launch& launch, const lint::Command& command) {
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

void ScriptVariables::set_option(const lint::Command& command) {
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    const auto text = command.words[i].constant().value_or("");
    if (text == "-a" || text == "+a") all_exported_ = text[0] == '-';
    if (text == "allexport") all_exported_ = command.words[i - 1].constant().value_or("").starts_with('-');
  }
  out_.left_out.insert("set");
}

NumberIn ScriptVariables::number() const {
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

void ScriptVariables::finish() {
  for (auto& [name, one] : variables_) {
    if (!one.exported && exported_.contains(name)) {
      one.exported = true;
      for (const auto& doubt : out_.values.of_variable(name).doubts) one.value.doubt(doubt);
    }
    out_.variables.push_back(std::move(one));
  }
  std::ranges::stable_sort(out_.variables, {}, &Exported::line);
}

}  // namespace nlaunch::import
