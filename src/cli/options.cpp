#include "cli/options.h"

#include <CLI/CLI.hpp>

#include "base/text.h"

namespace nlaunch::cli {

Option Option::required() {
  option_->required();
  return *this;
}
Option Option::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}
Option Option::in_range(long least, long most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
Option Option::existing_folder() {
  option_->check(CLI::ExistingDirectory);
  return *this;
}
Option Option::checked(const std::function<std::string(const std::string&)>& check) {
  option_->check(check, "");
  return *this;
}
Option Option::each(const std::function<void(const std::string&)>& take) {
  option_->each(take);
  return *this;
}
Option Option::value_name(const std::string& name) {
  option_->option_text(name);
  return *this;
}
Option Option::words(int exactly) {
  option_->expected(exactly);
  return *this;
}
Option Option::value_optional(const std::string& fallback) {
  option_->expected(0, 1);
  if (!fallback.empty()) option_->default_str(fallback);
  return *this;
}
Option Option::one_word_each() {
  option_->allow_extra_args(false);
  return *this;
}
Option Option::split_at(char separator) {
  option_->delimiter(separator);
  return *this;
}
Option Option::needs(Option other) {
  option_->needs(other.option_);
  return *this;
}
Option Option::excludes(Option other) {
  option_->excludes(other.option_);
  return *this;
}
Option Option::excludes(const std::string& name) {
  option_->excludes(name);
  return *this;
}
Option Option::hidden() {
  option_->group("");
  return *this;
}
bool Option::given() const {
  return option_->count() > 0;
}

Command Command::subcommand(const std::string& name, const std::string& help) {
  return Command(app_->add_subcommand(name, help));
}
Command Command::examples(const std::vector<std::string>& lines) {
  app_->footer(text::join(lines, "\n"));
  return *this;
}
Command Command::section(const std::string& heading) const {
  auto same = *this;
  same.heading_ = heading;
  return same;
}
Command Command::group(const std::string& name, const std::string& help, std::size_t least,
                       std::size_t most) {
  auto* group = app_->add_option_group(name, help);
  group->require_option(least, most);
  return Command(group).section(heading_);
}
Option Command::listed(CLI::Option* option) const {
  if (!heading_.empty()) option->group(heading_);
  return Option(option);
}
Option Command::option(const std::string& name, std::string& value, const std::string& help) {
  return listed(app_->add_option(name, value, help));
}
Option Command::option(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  return listed(app_->add_option(name, values, help));
}
Option Command::option(const std::string& name, unsigned& value, const std::string& help) {
  return listed(app_->add_option(name, value, help));
}
Option Command::option(const std::string& name, std::optional<unsigned>& value, const std::string& help) {
  return listed(app_->add_option(name, value, help));
}
Option Command::option(const std::string& name, std::optional<std::uint64_t>& value,
                       const std::string& help) {
  return listed(app_->add_option(name, value, help));
}
Option Command::flag(const std::string& name, bool& value, const std::string& help) {
  return listed(app_->add_flag(name, value, help));
}
void Command::after_parsing(std::function<void()> act) {
  app_->parse_complete_callback(std::move(act));
}
void Command::when_called(std::function<void()> act) {
  app_->callback(std::move(act));
}
bool Command::has_called_subcommand() const {
  return !app_->get_subcommands().empty();
}

void wrong_usage(const std::string& sentence) {
  throw CLI::ValidationError(sentence);
}
void missing(const std::string& name) {
  throw CLI::RequiredError(name);
}
void excluded(const std::string& name, const std::string& by) {
  throw CLI::ExcludesError(name, by);
}

}  // namespace nlaunch::cli
