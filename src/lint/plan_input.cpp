#include "lint/plan_input.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/backend.h"
#include "base/scheduler_traits.h"
#include "base/text.h"
#include "lint/script_input.h"
#include "plan/container.h"
#include "plan/environment.h"
#include "plan/groups.h"

namespace nlaunch::lint {
namespace {

class PlanInputBuilder {
 public:
  PlanInputBuilder(const plan::Plan& plan, const PlanFacts& facts) : plan_(plan), facts_(facts) {}

  LintInput build() {
    input_.plan = true;
    input_.nodes = plan_.all_nodes();
    input_.gpu = plan_.node.gpu_model;
    input_.nics = plan_.node.nic_kind;
    input_.slurm = traits_of(plan_.scheduler).srun;
    for (const auto& role : plan_.roles) add_role(role);
    for (const auto& group : plan_.groups) add_group(group);
    Step step;
    for (const auto& option : plan_.slurm.srun) step.options.push_back({option, {}});
    if (input_.slurm) input_.steps.push_back(std::move(step));
    for (const auto& op : facts_.modules) input_.from_modules.push_back(setting_of(op, true));
    for (const auto& file : facts_.conf) {
      auto lines = lines_scene(file, Lines::nccl_conf);
      for (auto& setting : lines.environments.front().settings) {
        const bool known = std::ranges::find(input_.conf, setting.name, &Setting::name) != input_.conf.end();
        if (!known) input_.conf.push_back(std::move(setting));
      }
      input_.files.push_back(file);
    }
    input_.readings = facts_.readings;
    return std::move(input_);
  }

 private:
  /// "grpo.yaml:12:5" as a place; anything else is a name.
  SourceSpan span_of(const std::string& origin) {
    const auto second = origin.rfind(':');
    const auto first =
        second == std::string::npos || second == 0 ? std::string::npos : origin.rfind(':', second - 1);
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    if (first != std::string::npos) {
      std::from_chars(origin.data() + first + 1, origin.data() + second, line);
      std::from_chars(origin.data() + second + 1, origin.data() + origin.size(), column);
    }
    if (line == 0 || column == 0) return {named(origin), 0, 0, 1};
    return {source(origin.substr(0, first)), line, column, 1};
  }

  std::shared_ptr<const SourceFile> named(const std::string& name) {
    auto& file = files_[name];
    if (!file) file = std::make_shared<const SourceFile>(SourceFile{name, {}});
    return file;
  }

  std::shared_ptr<const SourceFile> source(const std::string& name) {
    auto& file = files_[name];
    if (file) return file;
    if (facts_.source) file = facts_.source(name);
    if (!file) file = std::make_shared<const SourceFile>(SourceFile{name, {}});
    input_.files.push_back(file);
    return file;
  }

  Setting setting_of(const plan::EnvOp& op, bool sure) {
    Setting setting;
    setting.name = op.name;
    setting.unset = op.kind == plan::EnvOp::Kind::unset;
    setting.sure = sure;
    setting.span = span_of(op.origin);
    if (setting.span.line > 0) setting.span.length = static_cast<std::uint32_t>(op.name.size());
    const bool whole = op.kind == plan::EnvOp::Kind::set || op.kind == plan::EnvOp::Kind::fallback;
    if (whole && !op.masked && op.value.find("${") == std::string::npos) setting.value = op.value;
    return setting;
  }

  void add_releases(const plan::Role& role, Environment& environment) {
    constexpr std::pair<std::string_view, std::string_view> kWheels[] = {
        {"nvidia_nccl", "NCCL"}, {"torch", "PyTorch"}, {"vllm", "vLLM"}, {"ray", "Ray"}};
    if (const auto venv = facts_.wheels.find(role.venv); venv != facts_.wheels.end()) {
      for (const auto& [name, version] : venv->second) {
        for (const auto& [wheel, owner] : kWheels) {
          if (name != wheel && !name.starts_with(std::string(wheel) + "_cu")) continue;
          // "2.9.1+cu128": the part after the plus names a build.
          if (const auto release = parse_version(version.substr(0, version.find('+')))) {
            environment.releases[std::string(owner)] = *release;
          }
        }
      }
    }
    for (const auto& name : role.preload) {
      const auto known = facts_.library_versions.find(name);
      if (name != "nccl" || known == facts_.library_versions.end()) continue;
      if (const auto release = parse_version(known->second)) environment.releases["NCCL"] = *release;
    }
  }

  void add_role(const plan::Role& role) {
    Environment environment;
    environment.name = role.name;
    environment.kind = role.kind;
    environment.command = role.command;
    environment.command_span = span_of(role.command_origin);
    std::vector<std::string> others;
    for (const auto& other : plan_.roles)
      if (&other != &role && plan::share_gpus(role, other)) others.push_back(other.name);
    environment.shares_gpus_with = text::join(others, " and ");
    environment.gpu_memory = role.gpu_memory;
    environment.preload = role.preload;
    const auto passage = plan::passage_of(role.wrapper);
    environment.cleaned_by = passage.by;
    environment.plan_passes = passage.of == plan::Passage::Of::plan;
    if (!role.wrapper.empty()) environment.wrapper_span = span_of(role.wrapper_origin);
    add_releases(role, environment);
    auto versions = facts_.library_versions;
    const plan::ConditionFacts facts{plan_.all_nodes(), plan_.node_of(role).gpu_model, plan_.node.arch,
                                     role.kind, versions};
    std::set<std::string> set;
    for (const auto& op : role.env) {
      if (op.layer == plan::Layer::nlaunch) continue;
      const auto verdict = plan::applies(op.when, facts).answer;
      if (verdict == plan::Applicability::Answer::no) continue;
      if (op.kind == plan::EnvOp::Kind::fallback && set.contains(op.name)) continue;
      set.insert(op.name);
      environment.settings.push_back(setting_of(op, verdict == plan::Applicability::Answer::yes));
    }
    for (const auto& [name, value] : plan::set_by(role.wrapper)) {
      Setting setting{.name = name, .value = std::nullopt, .span = environment.wrapper_span};
      if (!value.contains("${")) setting.value = value;
      environment.settings.push_back(std::move(setting));
    }
    input_.environments.push_back(std::move(environment));
  }

  void add_group(const plan::Group& group) {
    if (traits_of(group.backend).library.empty() || group.kind == plan::GroupKind::node) return;
    std::set<std::size_t> members;
    for (const auto& member : group.members) members.insert(plan_.processes[member.process].role);
    if (members.size() > 1) input_.groups.push_back({group.name, {members.begin(), members.end()}});
  }

  const plan::Plan& plan_;
  const PlanFacts& facts_;
  std::map<std::string, std::shared_ptr<const SourceFile>> files_;
  LintInput input_;
};

}  // namespace

LintInput plan_input(const plan::Plan& plan, const PlanFacts& facts) {
  return PlanInputBuilder(plan, facts).build();
}

}  // namespace nlaunch::lint
