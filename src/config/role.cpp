#include "config/role.h"

#include <re2/re2.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/text.h"
#include "config/env_block.h"
#include "sys/wait_status.h"

namespace nlaunch::config {
namespace {

constexpr std::uint32_t kMostProcesses = 1'000'000;
constexpr std::uint32_t kMostRestarts = 1000;

/// [a-z][a-z0-9_-]*: it becomes part of file names, host lists and references.
bool is_role_name(std::string_view name) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto other = [](char c) { return (c >= '0' && c <= '9') || c == '_' || c == '-'; };
  return !name.empty() && lower(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return lower(c) || other(c); });
}

void read_counts(Keys& keys, Role& role) {
  keys.number("per_node", role.per_node, 1, kMostGpus);
  keys.number("count", role.count, 1, kMostProcesses);
  keys.read("per", role.per);
  keys.read("except", role.except);
  const Entry* first = nullptr;
  for (const auto& entry : keys.value().node().entries) {
    const auto& key = entry.key.value;
    if (key != "per_node" && key != "count" && key != "per") continue;
    if (first == nullptr) {
      first = &entry;
      continue;
    }
    auto& problem = keys.value().problems().error(
        "config.exclusive", entry.key.span,
        fmt::format("'{}' has both '{}' and '{}'", keys.value().path(), first->key.value, key));
    problem.notes.push_back({fmt::format("'{}' is here", first->key.value), first->key.span});
    problem.hint = "keep one: count: N for the whole job, per_node: N, or per: job | node";
  }
  if (role.except && (!role.per || role.per->value != Role::Per::node)) {
    keys.value().problems().error("config.except", role.except->span, "'except' needs 'per: node'").hint =
        "write per: node, or remove 'except'";
  }
}

/// The unit that `count` counts: some processes on some nodes.
void read_replica(Keys& keys, Role& role) {
  const auto value = keys.get("replica");
  if (!value) return;
  Replica replica;
  replica.span = value->key_span();
  Keys inner(*value);
  inner.number("nodes", replica.nodes, 1, kMostNodesOfARun);
  inner.number("per_node", replica.per_node, 1, kMostGpus);
  if (value->is(Node::Kind::map) && !inner.get("nodes") && !inner.get("per_node")) {
    value->error("config.replica", fmt::format("'{}' does not specify the size of a replica", value->path()))
        .hint = "write replica: {nodes: 2} for one process on each of two nodes, or {nodes: N, per_node: M}";
  }
  inner.finish();
  role.replica = replica;
  const auto processes = std::uint64_t{replica.size()} * (role.count ? role.count->value : 1);
  if (replica.nodes.value > kMostProcesses / replica.per_node.value || processes > kMostProcesses) {
    value->error("config.number",
                 fmt::format("'{}' gives the role more than {} processes", value->path(), kMostProcesses));
  }
  const auto refuse = [&](std::string_view key, std::string_view hint) {
    const auto other = keys.get(key);
    if (!other) return;
    auto& problem =
        value->problems().error("config.exclusive", other->key_span(),
                                fmt::format("'{}' has both 'replica' and '{}'", keys.value().path(), key));
    problem.notes.push_back({"'replica' is here", value->key_span()});
    problem.hint = hint;
  };
  constexpr std::string_view kCount = "count: N is the number of replicas";
  refuse("per_node", kCount);
  refuse("per", kCount);
  constexpr std::string_view kOwn =
      "the processes of a replica use their program's own rendezvous: pass it ${self.replica.rank}, "
      "${self.replica.size} and ${self.replica.host}";
  refuse("launcher", kOwn);
  if (role.rendezvous != Rendezvous::none) refuse("rendezvous", kOwn);
  refuse("spawned_by", "the role that starts the processes decides how they are grouped");
}

/// `keep_together: domain`, or {within: domain, nodes: 16}.
void read_keep_together(Keys& keys, Role& role) {
  const auto value = keys.get("keep_together");
  if (!value) return;
  KeepTogether keep;
  keep.span = value->key_span();
  if (value->is(Node::Kind::map)) {
    Keys inner(*value);
    if (inner.require("within", "within: domain")) inner.read("within", keep.within);
    inner.number("nodes", keep.nodes, 2, kMostNodesOfARun);
    inner.finish();
  } else {
    keys.read("keep_together", keep.within);
  }
  role.keep_together = keep;
  const auto refuse = [&](const SourceSpan& span, const std::string& what, std::string_view hint) {
    value->problems().error("config.keep-together", span, what).hint = hint;
  };
  if (!keep.within.span) return;
  if (keep.nodes && role.replica) {
    refuse(keep.nodes->span, "each replica is kept together as a whole, whatever its number of nodes",
           "remove 'nodes' from 'keep_together'");
  } else if (keep.nodes && keep.within.value == Closeness::node) {
    refuse(keep.nodes->span, fmt::format("{} nodes cannot be within one node", keep.nodes->value),
           "write within: domain or within: switch, or remove 'nodes'");
  }
  if (keep.within.value != Closeness::node) return;
  if (role.replica && role.replica->nodes.value > 1) {
    refuse(keep.within.span,
           fmt::format("a replica of '{}' spans {} nodes", role.name.value, role.replica->nodes.value),
           "write keep_together: domain or switch, or make the replica smaller");
  } else if (role.per && role.per->value == Role::Per::node) {
    refuse(keep.within.span, fmt::format("'{}' has a process on every node", role.name.value),
           "write count: N, or remove 'keep_together'");
  }
}

void read_gpus(Keys& keys, Role& role) {
  keys.number("gpus", role.gpus, 0, kMostGpus);
  if (const auto binding = keys.get("cpu_binding")) {
    constexpr std::array<std::string_view, 2> kWords{"near", "none"};
    role.any_cpu = binding->choice(kWords) == 1;
  }
  keys.list("share_gpus_with", role.share_gpus_with);
  const auto memory = keys.get("gpu_memory");
  if (!memory) return;
  if (const auto share = memory->parsed(parse_fraction)) role.gpu_memory = {*share, memory->span()};
}

/// A program and its arguments.
std::vector<Text> read_words(const Value& command) {
  if (command.is(Node::Kind::scalar)) {
    command.wrong_type("a list").hint =
        "write [PROGRAM, ARGUMENT, ...], or [bash, -c, '...'] for a shell command";
    return {};
  }
  if (command.is(Node::Kind::sequence) && command.node().items.empty()) {
    command.error("config.empty-value", fmt::format("'{}' is an empty list", command.path())).hint =
        "write [PROGRAM, ARGUMENT, ...]";
  }
  return texts(command.items());
}

void read_command(Keys& keys, Role& role) {
  const bool spawned = keys.value().node().find("spawned_by") != nullptr;
  keys.list("spawned_by", role.spawned_by);
  keys.read("classify", role.classify);
  const auto command = spawned ? keys.get("command") : keys.require("command", "command: [python, train.py]");
  if (command && spawned) {
    keys.value()
        .problems()
        .error("config.exclusive", command->key_span(),
               fmt::format("'{}' has both 'spawned_by' and 'command'", keys.value().path()))
        .hint = "a role that is started by another role has no command of its own";
  } else if (command) {
    role.command = read_words(*command);
  }
  const auto wrapper = keys.get("wrapper");
  if (wrapper && spawned) {
    keys.value()
        .problems()
        .error("config.exclusive", wrapper->key_span(),
               fmt::format("'{}' has both 'spawned_by' and 'wrapper'", keys.value().path()))
        .hint = "set the wrapper on the role that starts it";
  } else if (wrapper) {
    role.wrapper = read_words(*wrapper);
  }
}

/// A launcher starts a Python script or a module: it accepts neither Python's own options nor another
/// program.
void check_script(const Role& role, Problems& problems) {
  if (role.command.empty()) return;
  const bool python = is_python(role.command.front().value);
  if (python && role.command.size() == 1) return;
  const auto& script = role.command[python ? 1 : 0];
  const bool other = std::ranges::any_of(role.launcher_options, [](const Text& option) {
    return option.value == "--no-python" || option.value == "--no_python";
  });
  if (other || script.value == "-m" || script.value.ends_with(".py") || script.value.contains("${")) return;
  problems
      .error("config.launcher", script.span,
             fmt::format("'{}' is not a Python script that {} can start", script.value,
                         name_of(role.launcher->value)))
      .hint =
      "write [train.py, ...] or [-m, MODULE, ...]; to start any other program, add --no-python to the "
      "launcher's options";
}

/// `launcher: torchrun`, or a list: its name and its own options.
void read_launcher(Keys& keys, Role& role) {
  const auto value = keys.get("launcher");
  if (!value) return;
  const auto words = value->one_or_more();
  if (words.empty()) return;
  if (words.front().text() == "deepspeed") {
    value
        ->error("config.launcher",
                "'deepspeed' overrides the CUDA_VISIBLE_DEVICES that nlaunch sets for a process")
        .hint = "write launcher: torchrun, which also starts DeepSpeed programs";
    return;
  }
  const auto index = words.front().choice(kWords<Launcher>);
  if (!index) return;
  role.launcher = {kValues<Launcher>[*index], value -> span()};
  role.launcher_options = texts(std::vector<Value>(words.begin() + 1, words.end()));
  role.rendezvous = Rendezvous::torch;
  for (const auto* key : {"rendezvous", "spawned_by"}) {
    const auto other = keys.get(key);
    if (other && (key == std::string_view("spawned_by") || other->text() == "none"))
      value->problems()
          .error("config.exclusive", other->key_span(),
                 fmt::format("'{}' has both 'launcher' and '{}'", keys.value().path(), key))
          .hint = "a launcher starts the ranks of a command, which use torch's rendezvous";
  }
}

void read_ports(Keys& keys, Role& role) {
  keys.list("ports", role.ports);
  std::set<std::string> seen;
  for (const auto& port : role.ports) {
    check_simple_name(port, "a port", keys.value().problems());
    if (seen.insert(port.value).second) continue;
    keys.value().problems().error("config.name", port.span, fmt::format("duplicate port '{}'", port.value));
  }
  keys.read("metrics", role.metrics);
  if (!role.metrics || seen.contains(role.metrics->value)) return;
  keys.value()
      .problems()
      .error("config.metrics", role.metrics->span,
             fmt::format("'{}.metrics' is the port '{}', which the role does not have", keys.value().path(),
                         role.metrics->value))
      .hint = fmt::format("add it to `ports`, or name one of them{}{}", seen.empty() ? "" : ": ",
                          text::join(std::vector(seen.begin(), seen.end()), ", "));
}

Ready read_ready(const Value& value) {
  Ready ready;
  ready.span = value.span();
  if (value.is(Node::Kind::scalar)) {
    const auto word = value.text();
    const auto server = word ? value_of<ReadyServer>(*word) : std::nullopt;
    if (server) {
      ready.server = {*server, value.span()};
    } else if (word == "exited") {
      ready.exited = true;
    } else if (word) {
      value
          .error("config.ready",
                 fmt::format("'{}' must be vllm, sglang, exited or a map, found '{}'", value.path(), *word))
          .hint = "write vllm, sglang, exited, {http: URL}, {tcp: HOST:PORT}, ...";
    }
    return ready;
  }
  Keys keys(value);
  keys.read("server", ready.server);
  keys.read("http", ready.http);
  keys.read("tcp", ready.tcp);
  keys.read("log", ready.log);
  keys.read("file", ready.file);
  if (const auto exec = keys.get("exec")) ready.exec = read_words(*exec);
  keys.read("delay", ready.delay);
  keys.read("timeout", ready.timeout);
  if (ready.log) check_regex(*ready.log, value.problems());
  std::vector<std::string> ways;
  for (const auto& entry : value.node().entries) {
    const std::set<std::string_view> known{"server", "http", "tcp", "log", "file", "exec", "delay"};
    if (known.contains(entry.key.value)) ways.push_back(entry.key.value);
  }
  if (value.is(Node::Kind::map) && ways.size() != 1) {
    value
        .error("config.ready", ways.empty()
                                   ? fmt::format("'{}' does not specify when the role is ready", value.path())
                                   : fmt::format("'{}' has {}", value.path(), text::join(ways, " and ")))
        .hint = "write exactly one of server, http, tcp, log, file, exec, delay";
  }
  keys.finish();
  return ready;
}

Stop read_stop(const Value& value) {
  Stop stop;
  Keys keys(value);
  read_signal(keys, stop.signal);
  keys.read("grace", stop.grace);
  keys.finish();
  return stop;
}

/// Rejects keys that belong to a role of another kind.
void refuse_key(Keys& keys, const Role& role, std::string_view key, std::string_view hint) {
  const auto value = keys.get(key);
  if (!value) return;
  const auto message =
      role.kind == RoleKind::task
          ? fmt::format("role '{}' is a task: '{}' does not apply to it", role.name.value, key)
          : fmt::format("'{}' is for tasks, but role '{}' is of kind {}", key, role.name.value,
                        name_of(role.kind));
  value->problems().error("config.task", value->key_span(), message).hint = hint;
}

/// Checks that exactly one of `ways` is in the map.
void check_one_way(const Value& value, std::string_view id, std::string_view what,
                   std::initializer_list<std::string_view> ways) {
  if (!value.is(Node::Kind::map)) return;
  const auto given = std::ranges::count_if(value.node().entries, [&](const auto& entry) {
    return std::ranges::find(ways, entry.key.value) != ways.end();
  });
  if (given == 1) return;
  value
      .error(std::string(id), given == 0
                                  ? fmt::format("'{}' does not specify {}", value.path(), what)
                                  : fmt::format("'{}' specifies more than once {}", value.path(), what))
      .hint = fmt::format("write exactly one of {}", fmt::join(ways, ", "));
}

/// Rejects a period of checks that is too short to be intended.
void check_period(const Value& value, std::string_view id, std::string_view key,
                  const std::optional<Duration>& time) {
  constexpr Duration kShortest = std::chrono::milliseconds(100);
  if (time && *time < kShortest)
    value.error(std::string(id), fmt::format("'{}.{}' must be {} or more, found {}", value.path(), key,
                                             format_duration(kShortest), format_duration(*time)));
}

Alive read_alive(const Value& value) {
  Alive alive;
  alive.span = value.span();
  Keys keys(value);
  keys.read("http", alive.http);
  keys.read("tcp", alive.tcp);
  if (const auto exec = keys.get("exec")) alive.exec = read_words(*exec);
  keys.read("every", alive.every);
  keys.read("timeout", alive.timeout);
  keys.number("failures", alive.failures, 1, kMostRestarts);
  keys.read("after", alive.after);
  check_period(value, "config.alive", "every", alive.every);
  check_one_way(value, "config.alive", "what to check", {"http", "tcp", "exec"});
  keys.finish();
  return alive;
}

Throughput read_throughput(const Value& value) {
  Throughput made;
  made.span = value.span();
  constexpr std::string_view kHint =
      "write vllm, sglang, or {metrics: URL, counter: NAME, while: NAME, within: 60s}";
  if (value.is(Node::Kind::scalar)) {
    const auto word = value.text();
    const auto server = word ? value_of<ReadyServer>(*word) : std::nullopt;
    if (server) made.server = {*server, value.span()};
    if (word && !server)
      value
          .error("config.throughput",
                 fmt::format("'{}' must be vllm, sglang or a map, found '{}'", value.path(), *word))
          .hint = kHint;
    return made;
  }
  Keys keys(value);
  keys.read("server", made.server);
  keys.read("metrics", made.metrics);
  keys.read("counter", made.counter);
  keys.read("while", made.busy);
  keys.read("every", made.every);
  keys.read("within", made.within);
  check_period(value, "config.throughput", "every", made.every);
  check_period(value, "config.throughput", "within", made.within);
  const bool named = made.metrics && made.counter && made.busy;
  const bool any = made.metrics || made.counter || made.busy;
  if (value.is(Node::Kind::map) && (made.server ? any : !named))
    value
        .error("config.throughput",
               made.server ? fmt::format("'{}' has both a server and its own metrics", value.path())
                           : fmt::format("'{}' does not specify which metrics to read", value.path()))
        .hint = kHint;
  keys.finish();
  return made;
}

Fresh read_fresh(const Value& value) {
  Fresh fresh;
  fresh.span = value.span();
  Keys keys(value);
  keys.read("http", fresh.http);
  keys.read("log", fresh.log);
  if (fresh.log) check_regex(*fresh.log, value.problems());
  check_one_way(value, "config.fresh", "how a process shows that it has the current weights",
                {"http", "log"});
  keys.finish();
  return fresh;
}

OnChange read_on_change(const Value& value) {
  OnChange change;
  change.span = value.span();
  Keys keys(value);
  if (keys.require("of", "of: ROLE, whose addresses change")) keys.list("of", change.of);
  read_signal(keys, change.signal);
  keys.read("post", change.post);
  if (const auto exec = keys.get("exec")) change.exec = read_words(*exec);
  check_one_way(value, "config.on-change", "how to notify a process", {"signal", "post", "exec"});
  keys.finish();
  return change;
}

/// `{min: 2}`
void read_tolerate(const Value& value, Role& role) {
  Keys keys(value);
  std::optional<Located<std::uint32_t>> min;
  if (keys.require("min", "min: N, how many must remain"))
    keys.number("min", min, 0, std::numeric_limits<std::uint32_t>::max());
  keys.finish();
  if (min) role.tolerate = min->value;
  role.tolerate_span = value.span();
}

/// A task is ready when it has exited with code 0; any other exit fails the run.
void read_task(Keys& keys, Role& role) {
  constexpr std::string_view kEnd = "remove it: the next stage starts when a task has exited with code 0";
  for (const auto* key :
       {"ready", "alive", "throughput", "fresh", "on_change", "standby", "tolerate", "ends_run", "exit"})
    refuse_key(keys, role, key, kEnd);
  refuse_key(keys, role, "restart", "write retries: N, the number of restarts after a failure");
  refuse_key(keys, role, "spawned_by", "a task is a command that nlaunch starts");
  role.ready.emplace();
  role.ready->span = role.name.span;
  role.ready->exited = true;
  keys.read("timeout", role.ready->timeout);
  std::optional<Located<std::uint32_t>> retries;
  keys.number("retries", retries, 0, kMostRestarts);
  if (!retries) return;
  role.restart.on_failure = retries->value > 0;
  role.restart.max = retries->value;
}

void read_ends(Keys& keys, Role& role) {
  if (const auto stop = keys.get("stop")) role.stop = read_stop(*stop);
  keys.read("leave", role.leave);
  if (role.kind == RoleKind::task) return read_task(keys, role);
  refuse_key(keys, role, "timeout",
             "write kind: task, or ready: {..., timeout: 10m} to limit the time until it is ready");
  refuse_key(keys, role, "retries", "write kind: task, or restart: {policy: on-failure, max: N}");
  if (const auto ready = keys.get("ready")) role.ready = read_ready(*ready);
  if (const auto alive = keys.get("alive")) role.alive = read_alive(*alive);
  if (const auto throughput = keys.get("throughput")) role.throughput = read_throughput(*throughput);
  if (const auto fresh = keys.get("fresh")) role.fresh = read_fresh(*fresh);
  if (const auto change = keys.get("on_change")) role.on_change = read_on_change(*change);
  if (const auto restart = keys.get("restart")) role.restart = read_restart(*restart);
  std::optional<Located<std::uint32_t>> standby;
  keys.number("standby", standby, 1, std::numeric_limits<std::uint32_t>::max());
  if (standby) {
    role.standby = standby->value;
    role.standby_span = standby->span;
  }
  if (const auto tolerate = keys.get("tolerate")) read_tolerate(*tolerate, role);
  keys.read("ends_run", role.ends_run);
  if (const auto exit = keys.get("exit")) {
    constexpr std::array<std::string_view, 1> kWords{"ok"};
    role.exit_ok = exit->choice(kWords).has_value();
  }
}

Role read_role(const Text& name, const Value& value) {
  const auto before = value.problems().count();
  Role role;
  role.name = name;
  check_simple_name(name, "a role", value.problems());
  Keys keys(value);
  if (keys.require("kind", "kind: learner, engine, service or task")) keys.read("kind", role.kind);
  read_counts(keys, role);
  keys.list("pool", role.pools);
  read_gpus(keys, role);
  read_command(keys, role);
  keys.read("workdir", role.workdir);
  keys.read("venv", role.venv);
  keys.read("rendezvous", role.rendezvous);
  read_replica(keys, role);
  read_keep_together(keys, role);
  read_launcher(keys, role);
  if (role.launcher) check_script(role, keys.value().problems());
  read_ports(keys, role);
  keys.list("preload", role.preload);
  keys.read("scope", role.scope);
  const ProcessTraits traits{.rendezvous = role.rendezvous != Rendezvous::none,
                             .is_rank = role.gpus.value <= 1};
  if (const auto env = keys.get("env")) role.env = read_env(*env, EnvForm::plain_or_block, nullptr, traits);
  read_ends(keys, role);
  keys.finish();
  role.whole = value.problems().count() == before;
  return role;
}

void check_spawner(const std::vector<Role>& roles, const Role& role, const Text& name, Problems& problems) {
  if (!check_role(roles, name, problems)) return;
  if (name.value == role.name.value) {
    problems.error("config.spawned-by", name.span,
                   fmt::format("the role '{}' cannot start itself", name.value));
  } else if (const auto* spawner = find_role(roles, name.value); !spawner->spawned_by.empty()) {
    auto& problem = problems.error("config.spawned-by", name.span,
                                   fmt::format("'{}' is itself started by another role", name.value));
    problem.notes.push_back({"it is set here", spawner->spawned_by.front().span});
    problem.hint = "name the role that nlaunch starts";
  }
}

/// Only roles with GPUs can share them.
void check_has_gpus(const Role& role, const SourceSpan& span, std::string_view key, Problems& problems) {
  if (!role.whole || role.gpus.value > 0) return;
  auto& problem =
      problems.error("config.share-gpus", span,
                     fmt::format("'{}' needs GPUs, but role '{}' has none", key, role.name.value));
  problem.notes.push_back({"the role is defined here", role.name.span});
  problem.hint = "add `gpus: N`, the number for each process";
}

void check_partner(const std::vector<Role>& roles, const Role& role, const Text& name, Problems& problems) {
  if (!check_role(roles, name, problems)) return;
  const auto error = [&](std::string message) -> Diagnostic& {
    return problems.error("config.share-gpus", name.span, std::move(message));
  };
  const auto& partner = *find_role(roles, name.value);
  const auto has = [](const std::vector<Text>& names, const Text& one) {
    return std::ranges::find(names, one.value, &Text::value) != names.end();
  };
  if (&partner == &role) {
    error(fmt::format("the role '{}' cannot share GPUs with itself", role.name.value)).hint =
        "name the role that has the GPUs, or remove the key: processes of one role do not share GPUs";
  } else if (!partner.share_gpus_with.empty()) {
    auto& problem = error(fmt::format("'{}' has no GPUs of its own: it shares those of '{}'", name.value,
                                      partner.share_gpus_with.front().value));
    problem.notes.push_back({"it is set here", partner.share_gpus_with.front().span});
    problem.hint = has(partner.share_gpus_with, role.name)
                       ? "keep the key in one of the two roles"
                       : fmt::format("write share_gpus_with: {}", partner.share_gpus_with.front().value);
  } else if (has(partner.spawned_by, role.name)) {
    error(fmt::format("'{}' starts '{}', so it is placed before it", role.name.value, name.value)).hint =
        fmt::format("set it on '{}': share_gpus_with: {}", name.value, role.name.value);
  } else if (role.except && role.except->value == name.value) {
    auto& problem = error(fmt::format("'{}' cannot avoid the node of '{}' and also share its GPUs",
                                      role.name.value, name.value));
    problem.notes.push_back({"it avoids the node here", role.except->span});
    problem.hint = "remove 'except' or 'share_gpus_with'";
  } else {
    check_has_gpus(partner, name.span, "share_gpus_with", problems);
  }
}

void check_sharing(const std::vector<Role>& roles, const Role& role, Problems& problems) {
  for (const auto& name : role.share_gpus_with) check_partner(roles, role, name, problems);
  if (!role.share_gpus_with.empty())
    check_has_gpus(role, role.share_gpus_with.front().span, "share_gpus_with", problems);
  else if (role.gpu_memory)
    check_has_gpus(role, role.gpu_memory->span, "gpu_memory", problems);
}

}  // namespace

void check_simple_name(const Text& name, std::string_view what, Problems& problems) {
  if (is_role_name(name.value)) return;
  problems.error("config.name", name.span, fmt::format("'{}' is not a valid name for {}", name.value, what))
      .hint = "use lower-case letters, digits, - and _, starting with a letter";
}

std::vector<Role> read_roles(const Value& value) {
  std::vector<Role> roles;
  if (value.node().entries.size() > kMostRoles) {
    value.error("config.number", fmt::format("'roles' has {} roles; at most {} are allowed",
                                             value.node().entries.size(), kMostRoles));
    return roles;
  }
  for (const auto& [name, item] : value.entries()) roles.push_back(read_role(name, item));
  if (value.is(Node::Kind::map) && roles.empty()) {
    value.error("config.empty-value", "'roles' has no roles").hint =
        "write roles: {learner: {kind: learner, ...}}";
  }
  return roles;
}

void check_role_names(const std::vector<Role>& roles, Problems& problems) {
  for (const auto& role : roles) {
    for (const auto& name : role.spawned_by) check_spawner(roles, role, name, problems);
    check_sharing(roles, role, problems);
    if (!role.except || !check_role(roles, *role.except, problems)) continue;
    if (role.except->value == role.name.value) {
      problems.error("config.except", role.except->span, "'except' cannot name the role itself");
    }
  }
}

std::vector<std::string> names_of(const std::vector<Role>& roles) {
  std::vector<std::string> names;
  for (const auto& role : roles) names.push_back(role.name.value);
  return names;
}

const Role* find_role(const std::vector<Role>& roles, std::string_view name) {
  const auto found =
      std::ranges::find(roles, name, [](const Role& role) { return std::string_view(role.name.value); });
  return found == roles.end() ? nullptr : &*found;
}

bool check_role(const std::vector<Role>& roles, const Text& name, Problems& problems) {
  if (find_role(roles, name.value) != nullptr) return true;
  report_unknown(problems, "config.unknown-role", name, fmt::format("unknown role '{}'", name.value),
                 names_of(roles));
  return false;
}

void read_signal(Keys& keys, int& target) {
  const auto value = keys.get("signal");
  const auto name = value ? value->text() : std::nullopt;
  if (!name) return;
  if (const int number = sys::signal_number(*name); number > 0) {
    target = number;
  } else {
    value->error("config.signal", fmt::format("'{}' is not a signal", *name)).hint =
        "write TERM, INT, USR1 ...";
  }
}

namespace {

/// `5s`, or `{from: 5s, to: 5m}`
void read_backoff(const Value& value, Restart& restart) {
  if (!value.is(Node::Kind::map)) {
    if (const auto time = detail::read_as<Duration>(value)) restart.backoff = *time;
    return;
  }
  Keys keys(value);
  keys.read("from", restart.backoff);
  if (keys.require("to", "to: 5m, the longest backoff")) keys.read("to", restart.most_backoff);
  if (restart.most_backoff && *restart.most_backoff < restart.backoff)
    value
        .error("config.backoff",
               fmt::format("'{}' must increase, found {} to {}", value.path(),
                           format_duration(restart.backoff), format_duration(*restart.most_backoff)))
        .hint = "'to' is the longest backoff: it doubles with each restart until it reaches that";
  keys.finish();
}

}  // namespace

Restart read_restart(const Value& value) {
  Restart restart;
  Keys keys(value);
  if (const auto policy = keys.require("policy", "policy: never, or policy: on-failure")) {
    constexpr std::array<std::string_view, 2> kPolicies{"never", "on-failure"};
    restart.on_failure = policy->choice(kPolicies) == 1;
  }
  keys.number("max", restart.max, 1, kMostRestarts);
  keys.read("within", restart.within);
  if (const auto backoff = keys.get("backoff")) read_backoff(*backoff, restart);
  keys.finish();
  return restart;
}

bool is_python(std::string_view program) {
  return program.substr(program.rfind('/') + 1).starts_with("python");
}

bool check_regex(const Text& pattern, Problems& problems) {
  constexpr std::size_t kLongest = 1000;  // a longer string was not intended as a regular expression
  if (pattern.value.size() > kLongest) {
    problems
        .error("config.regex", pattern.span,
               fmt::format("a regular expression of {} bytes is too long", pattern.value.size()))
        .hint = fmt::format("at most {} bytes are allowed", kLongest);
    return false;
  }
  const RE2 compiled(pattern.value, RE2::Quiet);
  if (compiled.ok()) return true;
  problems
      .error("config.regex", pattern.span,
             fmt::format("'{}' is not a regular expression: {}", pattern.value, compiled.error()))
      .hint = "put \\ before a literal special character, and use single quotes in YAML";
  return false;
}

namespace {

void check_group(const Text& pattern, std::string_view what, std::string_view example, Problems& problems) {
  if (!check_regex(pattern, problems) || RE2(pattern.value, RE2::Quiet).NumberOfCapturingGroups() > 0) return;
  problems
      .error("config.regex", pattern.span,
             fmt::format("'{}' has no capture group for the {}", pattern.value, what))
      .hint = fmt::format("put the {} in parentheses: {}", what, example);
}

}  // namespace

void check_number_regex(const Text& pattern, Problems& problems, std::string_view example) {
  check_group(pattern, "number", example, problems);
}

void check_path_regex(const Text& pattern, Problems& problems) {
  check_group(pattern, "path", "'saved checkpoint (\\S+)'", problems);
}

}  // namespace nlaunch::config
