#include <algorithm>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/load.h"
#include "config/yaml.h"
#include "launch/lint_facts.h"
#include "lint/catalogue.h"
#include "lint/file_scene.h"
#include "report/lint_text.h"
#include "sys/files.h"

namespace nlaunch::cli {
namespace {

constexpr std::uint64_t kLargestScript = 64U << 20U;

struct Args {
  PlanArgs plan;
  std::vector<std::string> files;
  std::vector<std::string> allow;
  std::vector<std::string> releases;
  std::string explain;
  bool strict = false;
  bool json = false;
};

constexpr const char* kAllRules = "all";

int explain(const std::string& name, const Context& context) {
  if (name == kAllRules) {
    report::Table table({"rule", "what it finds"});
    for (const auto& rule : lint::rules()) table.add({context.out().bold(rule.id), std::string(rule.title)});
    print(table.str(context.out()));
    return 0;
  }
  const auto* rule = lint::find_rule(name);
  if (rule == nullptr) {
    std::vector<std::string> names;
    for (const auto& known : lint::rules()) names.emplace_back(known.id);
    const auto near = text::nearest(name, names);
    say(fmt::format("nlaunch lint: no rule is called '{}'{}; nlaunch lint --explain lists them\n", name,
                    near ? fmt::format(" (did you mean '{}'?)", *near) : ""));
    return exit_code::usage;
  }
  print(report::rule_text(*rule, context.out()));
  return 0;
}

/// "2.9.1" of "2.9.1+cu128", as pip says it: what stands behind the plus names a build.
std::string release_of(const std::string& version) {
  return version.substr(0, version.find('+'));
}

/// "NCCL=2.27.5", in any case.
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
  return failure("cli.release", "--release {}: it takes OWNER=VERSION, as NCCL=2.27.5; the owners are {}",
                 text, text::join(names, ", "));
}

class Lint {
 public:
  Lint(const Args& args, const Context& context)
      : args_(args), context_(context), machine_(launch::find_install()) {}

  int run() {
    for (const auto& text : args_.releases) {
      auto release = parse_release(text);
      if (!release) return complain(context_, release.error());
      releases_.insert(std::move(*release));
    }
    for (const auto& rule : args_.allow) {
      if (lint::find_rule(rule) == nullptr) return explain(rule, context_);
    }
    Diagnostics unread;
    if (!args_.plan.plan_file.empty()) add(look_at_plan(""), unread);
    for (const auto& file : args_.files) add(look_at(file), unread);
    if (!unread.empty()) complain(context_, unread);
    show(!unread.has_errors());
    const auto is = [&](Severity severity) {
      return std::ranges::find(findings_, severity, &lint::Finding::severity) != findings_.end();
    };
    const bool wrong = is(Severity::error) || (args_.strict && is(Severity::warning));
    return wrong || unread.has_errors() ? exit_code::bad_input : 0;
  }

 private:
  void add(Result<lint::Scene> scene, Diagnostics& unread) {
    if (!scene) return unread.append(scene.error());
    launch::add_machine(*scene);
    for (auto& environment : scene->environments) {
      for (const auto& [owner, version] : releases_) environment.releases[owner] = version;
      settings_ += environment.settings.size();
    }
    for (auto& finding : lint::lint(*scene)) {
      if (std::ranges::find(args_.allow, finding.rule) == args_.allow.end())
        findings_.push_back(std::move(finding));
    }
  }

  Result<lint::Scene> look_at_plan(const std::string& experiment) {
    auto args = args_.plan;
    args.experiment = experiment;
    const auto plan = load_plan(args, context_, machine_);
    if (!plan) return std::unexpected(plan.error());
    return launch::lint_scene(*plan, machine_.install(), context_.environment, true, releases_);
  }

  Result<lint::Scene> look_at(const std::string& path) {
    auto text = sys::read_regular_file(path, kLargestScript);
    if (!text) return std::unexpected(text.error());
    const auto file = std::make_shared<const SourceFile>(SourceFile{path, std::move(*text)});
    const auto kind = lint::kind_of(file);
    if (kind == lint::FileKind::experiment) return look_at_plan(path);
    if (kind == lint::FileKind::profile) {
      return failure("cli.lint", "{} is a site profile: lint an experiment with --site {}", path, path);
    }
    auto scene = lint::file_scene(file);
    if (scene && !args_.plan.site.empty()) {
      const auto site = load_site(args_.plan, context_, machine_);
      if (!site) return std::unexpected(site.error());
      if (site->gpu) scene->gpu = site->gpu->value;
      if (!site->nics.kind.empty()) scene->nics = site->nics.kind;
    }
    return scene;
  }

  void show(bool all_read) {
    if (args_.json) {
      print(json_text(report::lint_json(findings_), 2) + "\n");
    } else if (!findings_.empty()) {
      print(report::lint_text(findings_, context_.out()));
    } else if (all_read && !context_.quiet) {
      print(fmt::format("nothing found in {}\n", text::count(settings_, "setting")));
    }
  }

  const Args& args_;
  const Context& context_;
  MachineSource machine_;
  std::map<std::string, Version> releases_;
  std::vector<lint::Finding> findings_;
  std::size_t settings_ = 0;
};

int run(const Args& args, const Context& context) {
  if (!args.explain.empty()) return explain(args.explain, context);
  if (args.files.empty() && args.plan.plan_file.empty()) {
    say("nlaunch lint: what? An experiment, a script, a .env file, a Beaker spec or an nccl.conf; nlaunch "
        "lint --help "
        "says more\n");
    return exit_code::usage;
  }
  return Lint(args, context).run();
}

}  // namespace

void add_lint(CLI::App& app, Context& context) {
  auto args = std::make_shared<Args>();
  auto* command =
      app.add_subcommand("lint", "What is wrong with an environment: of a plan, or of any script");
  command->add_option("FILE", args->files,
                      "Experiments, sbatch and shell scripts, .env files, Beaker specs, nccl.conf");
  command->add_option("--plan", args->plan.plan_file, "A frozen plan (plan.json)");
  add_site_options(*command, args->plan);
  command->add_option("--allow", args->allow, "Leave a rule out; may be repeated")->allow_extra_args(false);
  command
      ->add_option("--release", args->releases,
                   "OWNER=VERSION that will be loaded: NCCL=2.27.5; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--explain", args->explain, "A rule, or all of them in a list")
      ->expected(0, 1)
      ->default_str(kAllRules);
  command->add_flag("--strict", args->strict, "Warnings count as errors");
  command->add_flag("--json", args->json, "As JSON");
  command->callback([args, &context] { context.run = [args, &context] { return run(*args, context); }; });
}

}  // namespace nlaunch::cli
