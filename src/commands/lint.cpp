#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/load.h"
#include "config/yaml.h"
#include "launch/lint_facts.h"
#include "lint/catalogue.h"
#include "lint/file_input.h"
#include "report/lint_text.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
namespace {

constexpr std::uint64_t kLargestInput = 64U << 20U;

struct LintArgs {
  PlanArgs plan;
  std::vector<std::string> files;
  std::vector<std::string> allow;
  std::vector<std::string> releases;
  lint::ScriptJob job;  ///< how scripts are called
  ClusterArgs cluster;
  std::string explain;
  bool strict = false;
  bool json = false;
};

constexpr const char* kAllRules = "all";

int explain(const std::string& name, const Context& context) {
  if (name == kAllRules) {
    report::Table table({"rule", "what it finds"});
    for (const auto* rule : lint::rules())
      table.add({context.console.result_paint.bold(rule->name), std::string(rule->title)});
    context.console.result(table.str(context.console.result_paint));
    return 0;
  }
  const auto* rule = lint::find_rule(name);
  if (rule == nullptr) {
    std::vector<std::string> names;
    for (const auto* known : lint::rules()) names.emplace_back(known->name);
    const auto near = text::nearest(name, names);
    context.console.say(
        fmt::format("nlaunch lint: rule '{}' not found{}; list the rules with nlaunch lint --explain\n", name,
                    near ? fmt::format(" (did you mean '{}'?)", *near) : ""));
    return exit_code::usage;
  }
  context.console.result(report::rule_text(*rule, context.console.result_paint));
  return 0;
}

/// "2.9.1" from "2.9.1+cu128", as pip prints it: the part after the plus identifies a build.
std::string release_of(const std::string& version) {
  return version.substr(0, version.find('+'));
}

/// "NCCL=2.27.5"; case does not matter.
Result<std::pair<std::string, Version>> parse_release(const std::string& text) {
  const auto equals = text.find('=');
  std::vector<std::string> names;
  for (const auto& owner : lint::owners()) {
    names.emplace_back(owner.name);
    if (text::lower(owner.name) != text::lower(text.substr(0, equals))) continue;
    const auto version =
        parse_version(equals == std::string::npos ? "" : release_of(text.substr(equals + 1)));
    if (!version) return failure("cli.release", "--release {}: {}", text, version.error());
    return std::pair(std::string(owner.name), *version);
  }
  return failure("cli.release", "--release {}: expected OWNER=VERSION, such as NCCL=2.27.5; owners: {}", text,
                 text::join(names, ", "));
}

class Lint {
 public:
  Lint(const LintArgs& args, const Context& context)
      : args_(args), context_(context), machine_(launch::find_install()) {}

  int run() {
    for (const auto& text : args_.releases) {
      auto release = parse_release(text);
      if (!release) return context_.console.error(release.error());
      releases_.insert(std::move(*release));
    }
    for (const auto& rule : args_.allow) {
      if (lint::find_rule(rule) == nullptr) return explain(rule, context_);
    }
    Diagnostics unread;
    if (!args_.plan.plan_file.empty()) add(look_at_plan(""), unread);
    for (const auto& file : args_.files) add_script(file, args_.job, unread);
    while (!submitted_.empty()) {  // what the user names himself is called as he says
      auto [path, job] = std::move(submitted_.front());
      submitted_.erase(submitted_.begin());
      add_script(path, job, unread);
    }
    if (!unread.empty()) context_.console.error(unread);
    show(!unread.has_errors());
    const auto is = [&](Severity severity) {
      return std::ranges::find(findings_, severity, &lint::Finding::severity) != findings_.end();
    };
    const bool wrong = is(Severity::error) || (args_.strict && is(Severity::warning));
    return wrong || unread.has_errors() ? exit_code::bad_input : 0;
  }

 private:
  /// A file that begins with #!/bin/bash, #!/usr/bin/env sh.
  static bool is_for_shell(const std::string& path) {
    const auto text = sys::read_regular_file(path, kLargestInput);
    const auto first = text ? text->substr(0, text->find('\n')) : "";
    return first.starts_with("#!") && first.contains("sh");
  }

  /// The scripts that it submits are read later, as it calls them.
  void add_script(const std::string& path, const lint::ScriptJob& job, Diagnostics& unread) {
    std::error_code error;
    const auto key = std::filesystem::weakly_canonical(path, error).native();
    if (!read_.insert(key).second) return;
    auto input = look_at(path, job);
    const auto submitted = input ? std::move(input->submitted) : std::vector<lint::SubmittedScript>();
    add(std::move(input), unread);
    for (const auto& one : submitted) {
      if (!is_for_shell(one.path)) continue;
      const auto beside = std::filesystem::proximate(one.path, error).native();
      auto called = args_.job;
      called.nodes.reset();
      called.arguments = one.arguments;
      called.variables.insert(called.variables.end(), one.variables.begin(), one.variables.end());
      called.options = {one.options, one.span};
      submitted_.emplace_back(beside.starts_with("..") ? one.path : beside, std::move(called));
    }
  }

  void add(Result<lint::LintInput> input, Diagnostics& unread) {
    if (!input) return unread.append(input.error());
    launch::add_machine(*input);
    for (auto& environment : input->environments) {
      for (const auto& [owner, version] : releases_) environment.releases[owner] = version;
      settings_ += environment.settings.size();
    }
    for (auto& finding : lint::lint(*input)) {
      if (std::ranges::find(args_.allow, finding.rule) == args_.allow.end())
        findings_.push_back(std::move(finding));
    }
  }

  Result<lint::LintInput> look_at_plan(const std::string& experiment) {
    auto args = args_.plan;
    args.experiment = experiment;
    const auto plan = load_plan(args, context_, machine_);
    if (!plan) return std::unexpected(plan.error());
    return launch::lint_input(*plan, machine_.install(), context_.environment, true, releases_);
  }

  Result<lint::LintInput> look_at(const std::string& path, const lint::ScriptJob& job) {
    auto text = sys::read_regular_file(path, kLargestInput);
    if (!text) return std::unexpected(text.error());
    const auto file = std::make_shared<const SourceFile>(SourceFile{path, std::move(*text)});
    const auto kind = lint::kind_of(file);
    if (kind == lint::FileKind::experiment) return look_at_plan(path);
    if (kind == lint::FileKind::profile) {
      return failure("cli.lint", "{} is a site profile: lint an experiment with --site {}", path, path);
    }
    auto input = lint::file_input(file, job);
    if (input && !args_.plan.site.empty()) {
      const auto site = load_site(args_.plan, context_, machine_);
      if (!site) return std::unexpected(site.error());
      if (site->gpu) input->gpu = site->gpu->value;
      if (!site->nics.kind.empty()) input->nics = site->nics.kind;
    }
    return input;
  }

  void show(bool all_read) {
    if (args_.json) {
      context_.console.result(json_text(report::lint_json(findings_), 2) + "\n");
    } else if (!findings_.empty()) {
      context_.console.result(report::lint_text(findings_, context_.console.result_paint));
    } else if (all_read && !context_.console.quiet) {
      context_.console.result(fmt::format("no findings in {}\n", text::count(settings_, "setting")));
    }
  }

  const LintArgs& args_;
  const Context& context_;
  launch::MachineSource machine_;
  std::map<std::string, Version> releases_;
  std::vector<lint::Finding> findings_;
  std::set<std::string> read_;                                      ///< files
  std::vector<std::pair<std::string, lint::ScriptJob>> submitted_;  ///< scripts that are still to be read
  std::size_t settings_ = 0;
};

int run_lint(LintArgs& args, const Context& context) {
  // The parser gives all words to the first argument that accepts several.
  auto& words = args.files;
  words.insert(words.end(), args.job.arguments.begin(), args.job.arguments.end());
  const auto files = words.end() - static_cast<std::ptrdiff_t>(std::min(context.behind_dashes, words.size()));
  args.job.arguments.assign(files, words.end());
  words.erase(files, words.end());
  args.job.nodes = args.plan.nodes;
  args.job.variables = args.plan.env;
  args.job.existing = args.cluster.existing;
  args.job.prints = args.cluster.parted_prints();
  if (!args.explain.empty()) return explain(args.explain, context);
  if (args.files.empty() && args.plan.plan_file.empty()) {
    context.console.say(
        "nlaunch lint: missing FILE: an experiment, a script, a .env file, a Beaker spec or an nccl.conf; "
        "see nlaunch lint --help\n");
    return exit_code::usage;
  }
  return Lint(args, context).run();
}

void add_lint(Command program, Context& context) {
  auto args = std::make_shared<LintArgs>();
  constexpr long kMostGpus = 1024;
  auto command = program.subcommand("lint", "Find problems in the environment of a plan or of any script")
                     .examples({"nlaunch lint grpo.yaml --site isambard", "nlaunch lint job.sbatch --nodes 4",
                                "nlaunch lint --explain"});
  command.option("FILE", args->files,
                 "Experiments, sbatch and shell scripts, .env files, Beaker specs, nccl.conf; arguments of "
                 "scripts go after --");
  // The parser does not support a second argument with any number of words, but it needs one to read options
  // after -- as words.
  command.option("ARGUMENT", args->job.arguments, "Arguments of the scripts, after --").words(1).hidden();
  command.section(kPlanOptions)
      .option("--plan", args->plan.plan_file, "A frozen plan (plan.json)")
      .value_name("FILE");
  add_site_options(command, args->plan);  // --nodes and --env also apply to a script
  command.option("--gpus", args->job.gpus, "GPUs per node, for a script whose directives do not set it")
      .in_range(0, kMostGpus);
  add_cluster_options(command, args->cluster);
  command.option("--allow", args->allow, "Ignore this rule; may be repeated")
      .value_name("RULE")
      .one_word_each();
  command
      .option("--release", args->releases,
              "Version that will be loaded, such as NCCL=2.27.5; may be repeated")
      .value_name("OWNER=VERSION")
      .one_word_each();
  command.option("--explain", args->explain, "Explain a rule, or list all rules")
      .value_name("[RULE]")
      .value_optional(kAllRules);
  command.flag("--strict", args->strict, "Treat warnings as errors");
  command.flag("--json", args->json, "Print JSON");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_lint(*args, context); }; });
}

const Registered<cli::CommandEntry> lint_command{{"lint", 25, add_lint, CommandGroup::check}};

}  // namespace
}  // namespace nlaunch::commands
