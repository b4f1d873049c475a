#include "cli/man.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "base/exit_code.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/console.h"
#include "cli/tables.h"

namespace nlaunch::cli {
namespace {

std::string bold(std::string_view text) {
  return text.empty() ? "" : "\\fB" + roff(text) + "\\fR";
}

std::string paragraph(const std::string& term, std::string_view text) {
  return fmt::format(".TP\n{}\n{}\n", term, roff(text));
}

/// "nlaunch-sites-check" of "nlaunch sites check".
std::string page_name(std::string called) {
  std::ranges::replace(called, ' ', '-');
  return called;
}

/// "nlaunch(1)", with a comma behind it unless it is the last.
std::string references(const std::vector<std::string>& called) {
  std::string out;
  for (std::size_t i = 0; i < called.size(); ++i)
    out += bold(page_name(called[i])) + "(1)" + (i + 1 < called.size() ? ",\n" : "\n");
  return out;
}

std::string options_of_section(const Section& section) {
  auto out = ".SS " + roff(section.heading) + "\n";
  for (const auto* option : section.options) {
    std::vector<std::string> names;
    for (const auto& name : names_of(*option)) names.push_back(bold(name));
    const auto value = value_of(*option);
    out += paragraph(text::join(names, ", ") + (value.empty() ? "" : " \\fI" + roff(value) + "\\fR"),
                     option->get_description());
  }
  return out;
}

std::string meanings(std::span<const exit_code::Meaning> codes) {
  std::string out;
  for (const auto& one : codes) out += paragraph(bold(std::to_string(one.code)), one.when);
  return out;
}

/// All exit codes for the program, and for a command its own.
std::string exit_status(const CLI::App& app) {
  const auto* parent = app.get_parent();
  if (parent == nullptr) {
    return roff(
               "A run that nobody stops exits with the code of the process that failed first, or with 128 + "
               "the "
               "signal if a signal killed it.") +
           "\n" + meanings(exit_code::kMeanings);
  }
  std::string out;
  for (const auto* entry : Registered<CommandEntry>::all()) {
    if (entry->name == app.get_name() && parent->get_parent() == nullptr) out = meanings(entry->exit_codes);
  }
  return out.empty() ? "See\n" + bold("nlaunch") + "(1).\n"
                     : out + ".PP\nThe others are those of\n" + bold("nlaunch") + "(1).\n";
}

/// The other pages: of the command above and of those below it, and of its group.
std::string see_also(const CLI::App& app, const std::string& called) {
  std::vector<std::string> others;
  const auto* parent = app.get_parent();
  const auto above = called.substr(0, called.rfind(' '));
  if (parent != nullptr) others.push_back(above);
  for (const auto& name : commands_of(app)) others.push_back(called + " " + name);
  if (parent != nullptr) {
    for (const auto& name : commands_of(*parent)) {
      const auto* other = parent->get_subcommand(name);
      if (other != &app && other->get_group() == app.get_group()) others.push_back(above + " " + name);
    }
  }
  return references(others);
}

std::string page(const CLI::App& app, const std::string& called) {
  const auto name = page_name(called);
  auto title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  const auto usage = usage_of(app, called);
  auto out = fmt::format(".TH {} 1 \"\" \"nlaunch {}\" nlaunch\n", roff(title), version());
  out += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(app.get_description()));
  out += fmt::format(".SH SYNOPSIS\n{}{}\n", bold(called), roff(usage.substr(called.size())));
  out += ".SH EXAMPLES\n.nf\n";
  for (const auto& line : examples_of(app)) out += roff(line) + "\n";
  out += ".fi\n";
  if (const auto sections = command_sections_of(app); !sections.empty()) {
    out += ".SH COMMANDS\n";
    for (const auto& section : sections) {
      out += ".SS " + roff(section.heading) + "\n";
      for (const auto* command : section.commands)
        out += paragraph(bold(command->get_name()), command->get_description());
    }
  }
  out += ".SH OPTIONS\n";
  for (const auto* argument : positionals_of(app))
    out += paragraph("\\fI" + roff(argument->get_name(true)) + "\\fR", argument->get_description());
  for (const auto& section : sections_of(app)) out += options_of_section(section);
  out += ".SH EXIT STATUS\n" + exit_status(app);
  return out + ".SH SEE ALSO\n" + see_also(app, called);
}

void add_pages(const CLI::App& app, const std::string& called, std::vector<ManPage>& pages) {
  pages.push_back({page_name(called) + ".1", page(app, called)});
  for (const auto& name : commands_of(app)) add_pages(*app.get_subcommand(name), called + " " + name, pages);
}

}  // namespace

std::string roff(std::string_view text) {
  std::string out;
  bool in_code = false;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '"':
        out += "\\(dq";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '`':
        in_code = !in_code;
        out += in_code ? "\\fB" : "\\fR";
        break;
      case '\n':
        out += ' ';
        break;
      default:
        out += c;
    }
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

std::vector<ManPage> man_pages(const CLI::App& program) {
  std::vector<ManPage> pages;
  add_pages(program, program.get_name(), pages);
  return pages;
}

}  // namespace nlaunch::cli
