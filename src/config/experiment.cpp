#include "config/experiment.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "config/document.h"
#include "config/env_block.h"
#include "config/extends.h"
#include "config/names.h"
#include "config/pools.h"
#include "config/role.h"
#include "config/setting.h"
#include "sys/http_server.h"

namespace nlaunch::config {
namespace {

using Kind = Node::Kind;

void check_name(const Text& name, Problems& problems) {
  if (is_experiment_name(name.value)) return;
  problems.error("config.name", name.span, fmt::format("'{}' is not a valid experiment name", name.value))
      .hint = "use at most 100 letters, digits, . - and _, starting with a letter or a digit";
}

Secret read_secret(const Text& name, const Value& value) {
  Secret secret{name, Secret::Source::env, {name.value, value.span()}};
  check_variable_name(name, value.problems());
  constexpr std::string_view kHint = "write env, {env: NAME}, {file: PATH} or {netrc: HOST}";
  if (value.is(Kind::scalar)) {
    if (value.node().text != "env") {
      value
          .error("config.secret",
                 fmt::format("'{}' does not specify where the secret comes from", value.path()))
          .hint = kHint;
    }
    return secret;
  }
  Keys keys(value);
  std::size_t sources = 0;
  for (const auto& [key, source] : {std::pair{"env", Secret::Source::env},
                                    {"file", Secret::Source::file},
                                    {"netrc", Secret::Source::netrc}}) {
    if (!keys.get(key)) continue;
    keys.read(key, secret.from);
    secret.source = source;
    ++sources;
  }
  if (value.is(Kind::map) && sources != 1) {
    value.error("config.secret", fmt::format("'{}' must have exactly one source", value.path())).hint = kHint;
  }
  keys.finish();
  return secret;
}

/// The place of a value that nobody should read, in a copy of its file that does not show it.
SourceSpan without_value(const Value& value) {
  auto span = value.span();
  const auto& text = value.node().text;
  if (!span.file || text.empty()) return span;
  auto hidden = std::make_shared<SourceFile>(*span.file);
  for (auto at = hidden->text.find(text); at != std::string::npos;
       at = hidden->text.find(text, at + text.size()))
    hidden->text.replace(at, text.size(), text.size(), '*');
  span.file = std::move(hidden);
  return span;
}

Notify read_notify(const Value& value) {
  Notify notify;
  Keys keys(value);
  if (const auto on = keys.get("on")) {
    for (const auto& item : on->one_or_more())
      if (const auto index = item.choice(kWords<NotifyOn>)) notify.on.push_back(kValues<NotifyOn>[*index]);
  }
  keys.list("exec", notify.exec);
  if (const auto webhook = keys.get("webhook")) {
    if (webhook->is(Kind::map)) {
      notify.webhook = read_secret({"webhook", webhook->span()}, *webhook);
    } else {
      value.problems()
          .error("config.notify", without_value(*webhook),
                 "'notify.webhook' must say where the URL is: who has the URL can write to the channel")
          .hint = "write {env: NAME} or {file: PATH}";
    }
  }
  if (value.is(Kind::map) && notify.exec.empty() && !keys.get("webhook")) {
    value.problems().error("config.notify", value.key_span(), "'notify' does not say whom to notify").hint =
        "write exec: [PROGRAM, ...], or webhook: {env: NAME}";
  }
  keys.finish();
  return notify;
}

MetricsExport read_metrics(const Value& value) {
  MetricsExport out;
  Keys keys(value);
  keys.read("file", out.file);
  if (const auto port = keys.get("port")) {
    if (const auto listen = port->parsed(sys::parse_listen)) out.listen = sys::text_of(*listen);
  }
  if (value.is(Kind::map) && !keys.get("file") && !keys.get("port")) {
    value.problems().error("config.metrics", value.key_span(), "'metrics' does not say where they go").hint =
        "write file: FILE, port: PORT or both";
  }
  keys.finish();
  return out;
}

Walltime read_walltime(const Value& value) {
  Walltime walltime;
  Keys keys(value);
  read_signal(keys, walltime.signal);
  keys.read("before", walltime.before);
  keys.read("then", walltime.then);
  keys.number("max", walltime.max, 1, 1000);
  keys.read("min_runtime", walltime.min_runtime);
  keys.finish();
  return walltime;
}

std::optional<double> read_slow(const Value& value) {
  const auto factor = value.parsed(parse_factor);
  if (factor && *factor <= 1) {
    value.error("config.number", fmt::format("'{}' must be more than 1x", value.path())).hint =
        "2x is a step that takes twice as long as the others";
  }
  return factor;
}

Watch read_watch(const Value& value) {
  Watch watch;
  Keys keys(value);
  keys.read("progress", watch.progress);
  keys.read("heartbeat", watch.heartbeat);
  keys.read("start", watch.start);
  keys.read("stall", watch.stall);
  if (const auto slow = keys.get("slow")) watch.slow = read_slow(*slow);
  keys.read("on_stall", watch.on_stall);
  keys.pairs("metrics", watch.metrics);
  if (watch.progress) check_regex(*watch.progress, value.problems());
  for (const auto& [name, pattern] : watch.metrics) check_number_regex(pattern, value.problems());
  keys.finish();
  return watch;
}

void read_preflight(const Value& value, Experiment& out) {
  Keys keys(value);
  keys.read("level", out.preflight_level);
  keys.read("strict", out.preflight_strict);
  keys.finish();
}

SignalRule read_signal_rule(const Value& value, const std::vector<Role>& roles) {
  const auto names = texts(value.one_or_more());
  if (value.is(Kind::scalar) && !names.empty()) {
    if (names[0].value == "stop") return {SignalRule::Action::stop, {}};
    if (names[0].value == "ignore") return {SignalRule::Action::ignore, {}};
    if (names[0].value == "all") return {SignalRule::Action::forward, {}};
  }
  SignalRule rule{SignalRule::Action::forward, {}};
  if (value.is(Kind::sequence) && names.empty()) {
    value.error("config.signal", fmt::format("'{}' does not name a role", value.path())).hint =
        "write stop, ignore, all, or the roles that get the signal";
  }
  for (const auto& name : names) {
    if (find_role(roles, name.value) != nullptr) {
      rule.roles.push_back(name.value);
      continue;
    }
    auto allowed = names_of(roles);
    if (value.is(Kind::scalar)) allowed.insert(allowed.end(), {"stop", "ignore", "all"});
    report_unknown(value.problems(), "config.unknown-role", name,
                   fmt::format("unknown role '{}'", name.value), allowed);
  }
  return rule;
}

std::map<int, SignalRule> read_signals(const std::optional<Value>& value, const std::vector<Role>& roles) {
  SignalRule to_learners{SignalRule::Action::ignore, {}};
  for (const auto& role : roles) {
    if (role.kind != RoleKind::learner) continue;
    to_learners.action = SignalRule::Action::forward;
    to_learners.roles.push_back(role.name.value);
  }
  std::map<int, SignalRule> rules{
      {SIGTERM, {}}, {SIGHUP, {}}, {SIGUSR1, to_learners}, {SIGUSR2, to_learners}};
  if (!value) return rules;
  Keys keys(*value);
  for (const auto& [name, signal] :
       {std::pair{"TERM", SIGTERM}, {"HUP", SIGHUP}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}}) {
    if (const auto rule = keys.get(name)) rules[signal] = read_signal_rule(*rule, roles);
  }
  keys.finish();
  return rules;
}

/// Every role that nlaunch starts must be in exactly one stage.
void check_stages(const Experiment& experiment, const Value& value) {
  auto& problems = value.problems();
  std::map<std::string, SourceSpan> seen;
  for (const auto& stage : experiment.start) {
    for (const auto& name : stage) {
      if (!check_role(experiment.roles, name, problems)) continue;
      const auto [first, fresh] = seen.emplace(name.value, name.span);
      if (!fresh) {
        auto& problem =
            problems.error("config.start", name.span, fmt::format("'{}' is in two stages", name.value));
        problem.notes.push_back({"it is first listed here", first->second});
      } else if (!find_role(experiment.roles, name.value)->spawned_by.empty()) {
        problems.error("config.start", name.span, fmt::format("'{}' is started by another role", name.value))
            .hint = "remove it from 'start'";
      }
    }
  }
  for (const auto& role : experiment.roles) {
    if (seen.contains(role.name.value) || !role.spawned_by.empty()) continue;
    auto& problem =
        value.error("config.start", fmt::format("role '{}' is not in any stage", role.name.value));
    problem.notes.push_back({"it is defined here", role.name.span});
    problem.hint = "add it to a stage, or remove 'start' to start all roles at the same time";
  }
}

/// Without `start`, tasks come first, one after the other in file order.
void start_with_tasks(Experiment& out) {
  std::vector<Text> others;
  for (const auto& role : out.roles) {
    if (role.kind == RoleKind::task)
      out.start.push_back({role.name});
    else if (role.spawned_by.empty())
      others.push_back(role.name);
  }
  if (!out.start.empty() && !others.empty()) out.start.push_back(std::move(others));
}

void read_start(const Value& value, Experiment& out) {
  for (const auto& stage : value.items()) out.start.push_back(texts(stage.one_or_more()));
  if (value.is(Kind::sequence)) check_stages(out, value);
}

/// "engine" means all of its processes, "engine.0" one of them; with replicas, "engine.0" means one replica,
/// and "engine.0.1" one of its processes.
void check_member(const std::vector<Role>& roles, const Text& name, Problems& problems) {
  const auto parts = text::split(name.value, '.');
  const Text role{parts.front(), part_of(name.span, name.value, 0, parts.front().size())};
  if (!check_role(roles, role, problems)) return;
  const bool replicas = find_role(roles, role.value)->replica.has_value();
  const bool numbers = std::all_of(parts.begin() + 1, parts.end(), [](const std::string& part) {
    return text::whole_number<std::uint32_t>(part).has_value();
  });
  if (numbers && parts.size() <= (replicas ? 3 : 2)) return;
  problems.error("config.weight-sync", name.span, fmt::format("'{}' is not a process of a role", name.value))
      .hint = replicas ? fmt::format(
                             "write {0} for all processes, {0}.0 for the first replica, or {0}.0.1 for one "
                             "of its processes",
                             role.value)
                       : fmt::format("write {0} for all processes, or {0}.0 for the first", role.value);
}

/// `order`, `master` and `path` apply to some backends only.
void check_sync_keys(const Value& value, const WeightSync& sync) {
  const auto backend = sync.backend.value;
  const bool group = communicator_of(backend) || backend == SyncBackend::nixl;
  const auto refuse = [&](const char* key, bool allowed, const char* hint) {
    const auto* entry = value.node().entry(key);
    if (entry == nullptr || allowed) return;
    value.problems()
        .error("config.weight-sync", entry->key.span,
               fmt::format("'{}' does not apply to backend {}", key, name_of(backend)))
        .hint = hint;
  };
  refuse("order", group, "only groups have an order: nccl, gloo, nixl");
  refuse("master", group, "only groups have a master: nccl, gloo, nixl");
  refuse("path", backend == SyncBackend::disk, "only backend: disk has a path");
  if (backend == SyncBackend::disk && !sync.path)
    value
        .error("config.weight-sync", "backend disk needs 'path', a directory that learners and engines share")
        .hint = "write {backend: disk, path: \"${run.dir}/weights\"}";
}

WeightSync read_weight_sync(const Value& value, bool named, const std::vector<Role>& roles) {
  WeightSync sync;
  Keys keys(value);
  if (named && keys.require("name", "name: stage0")) {
    keys.read("name", sync.name);
    check_simple_name(sync.name, "a weight-sync group", value.problems());
  }
  keys.read("backend", sync.backend);
  keys.list("order", sync.order);
  keys.read("master", sync.master);
  keys.read("path", sync.path);
  for (const auto& name : sync.order) check_member(roles, name, value.problems());
  if (sync.master) check_member(roles, *sync.master, value.problems());
  if (value.is(Kind::map)) check_sync_keys(value, sync);
  if (named && value.is(Kind::map) && sync.order.empty() && communicator_of(sync.backend.value))
    value
        .error("config.weight-sync",
               fmt::format("'{}' does not specify the members of the group", value.path()))
        .hint = "write order: [learner.0, engine]";
  keys.finish();
  return sync;
}

/// One method, or a list of named ones.
void read_weight_syncs(const Value& value, Experiment& out) {
  out.weight_syncs.clear();
  if (!value.is(Kind::sequence)) {
    out.weight_syncs.push_back(read_weight_sync(value, false, out.roles));
    return;
  }
  for (const auto& item : value.items()) out.weight_syncs.push_back(read_weight_sync(item, true, out.roles));
  std::map<std::string, SourceSpan> seen;
  for (const auto& sync : out.weight_syncs) {
    const auto [first, is_new] = seen.emplace(sync.name.value, sync.name.span);
    if (is_new || sync.name.value.empty()) continue;
    auto& problem = value.problems().error("config.weight-sync", sync.name.span,
                                           fmt::format("duplicate weight-sync group '{}'", sync.name.value));
    problem.notes.push_back({"it is first defined here", first->second});
  }
  if (out.weight_syncs.empty()) out.weight_syncs.emplace_back();
}

void read_pools_of(Keys& keys, Experiment& out) {
  const auto pools = keys.get("pools");
  if (!pools) return;
  out.pools = read_pools(*pools, false);
  const auto nodes = keys.get("nodes");
  if (!nodes) return;
  auto& problem = pools->problems().error("config.exclusive", nodes->key_span(),
                                          "'nodes' and 'pools' cannot both be set");
  problem.notes.push_back({"'pools' is here", pools->key_span()});
  problem.hint = "remove 'nodes': each pool sets its own number of nodes";
}

void read_head(Keys& keys, Experiment& out) {
  check_version(keys);
  std::ignore = keys.get("extends");
  if (const auto name = keys.require("name", "name: my-run")) {
    keys.read("name", out.name);
    if (name->is(Kind::scalar)) check_name(out.name, name->problems());
  }
  keys.number("nodes", out.nodes, 1, kMostNodesOfARun);
  read_pools_of(keys, out);
  keys.read("cpu_slots", out.cpu_slots);
  keys.read("workdir", out.workdir);
  keys.read("venv", out.venv);
  const auto before = keys.value().problems().count();
  keys.pairs("vars", out.vars);
  out.vars_whole = keys.value().problems().count() == before;
  if (const auto env = keys.get("env")) out.env = read_env(*env, EnvForm::plain_or_block, nullptr);
}

void read_roles_and_order(Keys& keys, Experiment& out) {
  if (const auto roles =
          keys.require("roles", "roles: {learner: {kind: learner, command: [python, train.py]}}")) {
    out.roles = read_roles(*roles);
    out.roles_whole = roles->node().entries.size() == out.roles.size() && !out.roles.empty();
  } else {
    out.roles_whole = false;
  }
  check_role_names(out.roles, keys.value().problems());
  check_pool_names(out.roles, out.pools, keys.value().problems());
  if (const auto start = keys.get("start"))
    read_start(*start, out);
  else
    start_with_tasks(out);
  if (const auto sync = keys.get("weight_sync")) read_weight_syncs(*sync, out);
  out.signals = read_signals(keys.get("signals"), out.roles);
}

void read_policies(Keys& keys, Experiment& out) {
  if (const auto secrets = keys.get("secrets")) {
    for (const auto& [name, secret] : secrets->entries()) out.secrets.push_back(read_secret(name, secret));
  }
  if (const auto walltime = keys.get("walltime")) out.walltime = read_walltime(*walltime);
  if (const auto preflight = keys.get("preflight")) read_preflight(*preflight, out);
  if (const auto audit = keys.get("audit")) {
    Keys inner(*audit);
    inner.read("mode", out.audit);
    inner.finish();
  }
  if (const auto watch = keys.get("watch")) out.watch = read_watch(*watch);
  if (const auto bench = keys.get("bench")) out.bench = read_bench(*bench);
  if (const auto checkpoint = keys.get("checkpoint")) out.checkpoint = read_checkpoint(*checkpoint);
  if (const auto notify = keys.get("notify")) out.notify = read_notify(*notify);
  if (const auto metrics = keys.get("metrics")) out.metrics = read_metrics(*metrics);
  if (const auto restart = keys.get("restart")) out.restart = read_restart(*restart);
  keys.read("leader_grace", out.leader_grace);
  if (const auto overlays = keys.get("overlays")) out.overlays = read_overlays(*overlays, nullptr);
  keys.pairs("slurm", out.slurm);
  if (const auto beaker = keys.get("beaker")) out.beaker = read_beaker(*beaker);
}

/// A setting for a role, a pool or a var that the file does not define: it would create a new one, which is
/// never intended.
bool names_unknown(const Node& root, const Setting& setting, Problems& problems) {
  const auto parts = text::split(setting.path.value, '.');
  if (parts.size() < 2 || (parts[0] != "roles" && parts[0] != "vars" && parts[0] != "pools")) return false;
  const bool role = parts[0] == "roles";
  const bool pool = parts[0] == "pools";
  const auto* known = root.find(parts[0]);
  if (known == nullptr ? role : known->entry(parts[1]) != nullptr) return false;
  std::vector<std::string> names;
  if (known != nullptr) {
    for (const auto& entry : known->entries) names.push_back(entry.key.value);
  }
  const Text name{parts[1],
                  part_of(setting.path.span, setting.path.value, parts[0].size() + 1, parts[1].size())};
  const auto message = role   ? fmt::format("unknown role '{}'", name.value)
                       : pool ? fmt::format("unknown pool '{}'", name.value)
                              : fmt::format("unknown var '{}'", name.value);
  report_unknown(problems,
                 role   ? "config.unknown-role"
                 : pool ? "config.unknown-pool"
                        : "config.unknown-var",
                 name, message, names);
  return true;
}

void apply(Node& root, const Setting& setting, Problems& problems) {
  if (!names_unknown(root, setting, problems)) apply_setting(root, setting, problems);
}

/// The settings of the selected overlays of this file, in the order of --with. Errors in them are reported
/// when the overlays are read.
void apply_overlays(Node& root, const std::vector<std::string>& with, Problems& problems) {
  const auto* node = root.find("overlays");
  if (node == nullptr || node->kind != Kind::map) return;
  Problems unheard;
  const auto overlays = read_overlays(Value(*node, "overlays", unheard), nullptr);
  for (const auto& name : with) {
    for (const auto& overlay : overlays) {
      if (overlay.name.value != name) continue;
      for (const auto& [path, value] : overlay.set) apply(root, {path, value}, problems);
    }
  }
}

}  // namespace

Result<Experiment> read_experiment(const std::string& path, const std::vector<Setting>& settings,
                                   const std::vector<std::string>& with, Problems& problems) {
  Experiment experiment;
  auto root = read_extended(path, experiment.extends, problems);
  if (!root) return std::unexpected(root.error());
  apply_overlays(*root, with, problems);
  for (const auto& setting : settings) {
    if (setting.path.value == "extends")
      problems.error("config.setting", setting.path.span, "'extends' can only be set in the file").hint =
          "write a file that extends the other one";
    else if (!setting.path.value.starts_with("site."))
      apply(*root, setting, problems);
  }
  experiment.path = std::filesystem::absolute(path).lexically_normal();
  Keys keys(Value(*root, "", problems));
  read_head(keys, experiment);
  read_roles_and_order(keys, experiment);
  read_policies(keys, experiment);
  keys.finish();
  return experiment;
}

Result<Experiment> load_experiment(const std::string& path, const std::vector<Setting>& settings,
                                   const std::vector<std::string>& with) {
  Problems problems;
  auto experiment = read_experiment(path, settings, with, problems);
  if (experiment && problems.any()) return std::unexpected(problems.take());
  return experiment;
}

}  // namespace nlaunch::config
