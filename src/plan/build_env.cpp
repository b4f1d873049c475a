#include "plan/build_env.h"

#include <algorithm>

#include "base/text.h"
#include "config/names.h"
#include "plan/environment.h"
#include "plan/vllm.h"

namespace nlaunch::plan {
namespace {

// execve accepts at most 128 KiB per string (MAX_ARG_STRLEN, execve(2)).
constexpr std::size_t kLargestValue = 128U * 1024U - 1;

EnvOp::Kind kind_of(config::EnvEntry::Kind kind) {
  switch (kind) {
    case config::EnvEntry::Kind::set:
      return EnvOp::Kind::set;
    case config::EnvEntry::Kind::unset:
      return EnvOp::Kind::unset;
    case config::EnvEntry::Kind::prepend:
      return EnvOp::Kind::prepend;
    case config::EnvEntry::Kind::append:
      return EnvOp::Kind::append;
  }
  return EnvOp::Kind::set;
}

bool valid_name(const std::string& name) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || digit(c); });
}

}  // namespace

EnvBuilder::EnvBuilder(const config::Experiment& experiment, const config::Site& site, const PlanNames& names,
                       const PlanOptions& options, Diagnostics& diagnostics)
    : experiment_(experiment), site_(site), names_(names) {
  choose_overlays(options.with, diagnostics);
  parse_options(options.env, diagnostics);
}

void EnvBuilder::choose_overlays(const std::vector<std::string>& with, Diagnostics& diagnostics) {
  for (const auto& name : with) {
    const config::Overlay* found = nullptr;
    std::vector<std::string> known;
    for (const auto* overlays : {&site_.overlays, &experiment_.overlays}) {
      for (const auto& overlay : *overlays) {
        known.push_back(overlay.name.value);
        if (overlay.name.value == name) found = &overlay;
      }
    }
    if (found != nullptr) {
      overlays_.push_back(found);
      continue;
    }
    auto& diagnostic =
        diagnostics.error("plan.unknown-overlay", {},
                          fmt::format("--with {}: overlay not found in the experiment or in site '{}'", name,
                                      site_.name.value));
    const auto near = text::nearest(name, known);
    diagnostic.hint = near            ? fmt::format("did you mean '--with {}'?", *near)
                      : known.empty() ? "no overlays are defined"
                                      : fmt::format("available: {}", text::join(known, ", "));
  }
}

void EnvBuilder::parse_options(const std::vector<std::string>& options, Diagnostics& diagnostics) {
  for (const auto& option : options) {
    auto file = std::make_shared<SourceFile>(SourceFile{"--env", option});
    const auto equals = option.find('=');
    const auto colon = option.substr(0, equals).find(':');
    const auto start = colon == std::string::npos ? 0 : colon + 1;
    const auto span = [&](std::size_t at, std::size_t length) {
      return SourceSpan{file, 1, static_cast<std::uint32_t>(at + 1), static_cast<std::uint32_t>(length)};
    };
    const auto name = option.substr(start, equals == std::string::npos ? equals : equals - start);
    if (equals == std::string::npos || !valid_name(name)) {
      diagnostics.error(
          "plan.env-option", span(start, std::max<std::size_t>(1, name.size())),
          name.find_first_of(" \t") == std::string::npos
              ? "--env accepts NAME=VALUE or ROLE:NAME=VALUE"
              : fmt::format("the name '{}' contains a blank: --env accepts NAME=VALUE or ROLE:NAME=VALUE",
                            name));
      continue;
    }
    if (config::is_reserved_variable(name)) {
      diagnostics.error("plan.env-option", span(start, name.size()), config::reserved_reason(name));
      continue;
    }
    EnvOption parsed{colon == std::string::npos ? "" : option.substr(0, colon),
                     {name, span(start, name.size())},
                     {option.substr(equals + 1), span(equals + 1, option.size() - equals)},
                     fmt::format("--env {}", option.substr(0, equals))};
    const auto is_role = [&](const config::Role& role) { return role.name.value == parsed.role; };
    if (!parsed.role.empty() && std::ranges::none_of(experiment_.roles, is_role)) {
      std::vector<std::string> roles;
      for (const auto& role : experiment_.roles) roles.push_back(role.name.value);
      diagnostics
          .error("plan.env-option", span(0, parsed.role.size()),
                 fmt::format("unknown role '{}'", parsed.role))
          .hint = fmt::format("the roles are {}", text::join(roles, ", "));
      continue;
    }
    options_.push_back(std::move(parsed));
  }
}

void EnvBuilder::add(std::vector<EnvOp>& into, const config::EnvBlock& block, Layer layer,
                     const config::Role& role, Diagnostics& diagnostics) const {
  for (const auto& entry : block) {
    EnvOp op{kind_of(entry.kind), entry.name.value, {}, layer, entry.name.span.where(), entry.when};
    if (op.kind != EnvOp::Kind::unset) op.value = names_.resolve(entry.value, &role, diagnostics);
    if (op.value.size() > kLargestValue) {
      diagnostics
          .error("plan.value-too-long", entry.name.span,
                 fmt::format("the value of {} has {} bytes; a variable can hold at most {}", op.name,
                             op.value.size(), kLargestValue))
          .hint = "write it to a file and pass the path; for addresses of roles, use ${role.NAME.addrs_file}";
    }
    into.push_back(std::move(op));
  }
}

std::vector<EnvOp> EnvBuilder::operations(const config::Role& role, const std::string& venv,
                                          Diagnostics& diagnostics) const {
  std::vector<EnvOp> operations;
  add(operations, site_.env, Layer::site, role, diagnostics);
  if (!venv.empty()) {
    const auto& span = role.venv ? role.venv->span : experiment_.venv ? experiment_.venv->span : SourceSpan{};
    operations.push_back({EnvOp::Kind::set, "VIRTUAL_ENV", venv, Layer::venv, span.where(), {}});
    operations.push_back({EnvOp::Kind::prepend, "PATH", venv + "/bin", Layer::venv, span.where(), {}});
    operations.push_back({EnvOp::Kind::unset, "PYTHONHOME", {}, Layer::venv, span.where(), {}});
  }
  add(operations, experiment_.env, Layer::experiment, role, diagnostics);
  // Who has the URL of the webhook can write to the channel: processes have no use for it.
  if (const auto& notify = experiment_.notify;
      notify && notify->webhook && notify->webhook->source == config::Secret::Source::env)
    operations.push_back({EnvOp::Kind::unset,
                          notify->webhook->from.value,
                          {},
                          Layer::experiment,
                          notify->webhook->from.span.where(),
                          {}});
  add(operations, role.env, Layer::role, role, diagnostics);
  for (const auto* overlay : overlays_) add(operations, overlay->env, Layer::overlay, role, diagnostics);
  for (const auto& option : options_) {
    if (!option.role.empty() && option.role != role.name.value) continue;
    operations.push_back({EnvOp::Kind::set,
                          option.name.value,
                          names_.resolve(option.value, &role, diagnostics),
                          Layer::command_line,
                          option.origin,
                          {}});
  }
  // A delayed log hides the cause of a failure.
  operations.push_back(
      {EnvOp::Kind::fallback, "PYTHONUNBUFFERED", "1", Layer::nlaunch, "nlaunch's default", {}});
  add_vllm(operations, role);
  return operations;
}

void EnvBuilder::add_vllm(std::vector<EnvOp>& operations, const config::Role& role) const {
  const auto unless_set = [&](const char* name, const char* value, const char* why) {
    operations.push_back(
        {EnvOp::Kind::fallback, name, value, Layer::nlaunch, fmt::format("nlaunch's default: {}", why), {}});
  };
  if (runs_vllm(role))
    unless_set(kVllmSockets, "${node.scratch}",
               "the vLLM sockets that a killed server leaves are removed with the run");
  // A role that spawns another one passes a single environment to its processes on all nodes.
  if (!computes(role.kind) || !role.spawned_by.empty()) return;
  const bool with_vllm = std::ranges::any_of(experiment_.roles, [](const config::Role& other) {
    return other.kind == RoleKind::engine && runs_vllm(other);
  });
  if (with_vllm)
    unless_set("VLLM_HOST_IP", "${self.host}", "the node's address, at which the weight-sync group meets");
}

}  // namespace nlaunch::plan
