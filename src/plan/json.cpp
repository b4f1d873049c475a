#include "plan/json.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <iterator>
#include <ranges>

#include "base/format.h"
#include "base/json.h"
#include "base/scheduler_traits.h"
#include "base/secrets.h"
#include "config/names.h"
#include "plan/bench.h"
#include "plan/described_json.h"
#include "plan/scheduler_part.h"

namespace nlaunch::plan {
namespace {

/// The members of an object, in the order of the file: `out` is called with the name and the value of each.
void each_member(const Plan& plan, const Process& process, auto&& out) {
  out("role", plan.role_of(process).name);
  out("index", process.index);
  out("rank", process.rank);
  out("node", process.node);
  out("local_rank", process.local_rank);
  out("local_size", process.local_size);
  out("node_rank", process.node_rank);
  out("gpus", process.gpus);
  out("ports", process.ports);
}

Process read_process(const json& from, const std::map<std::string, std::uint32_t>& roles, const Plan& plan) {
  Process process{roles.at(from.at("role")), from.at("index"),      from.at("rank"),
                  from.at("node"),           from.at("local_rank"), from.at("local_size"),
                  from.at("node_rank"),      from.at("gpus"),       from.at("ports")};
  if (process.node >= plan.all_nodes()) throw std::domain_error(fmt::format("unknown node {}", process.node));
  for (const auto gpu : process.gpus) {
    if (gpu >= plan.node_of(process.node).gpus)
      throw std::domain_error(fmt::format("a node has no GPU {}", gpu));
  }
  return process;
}

ordered_json write_signals(const std::map<int, SignalRule>& signals) {
  auto out = ordered_json::object();
  for (const auto& [signal, rule] : signals) out[std::to_string(signal)] = to_value(rule);
  return out;
}

Role read_role(const json& from) {
  json whole{{"command_origin", "plan.json"}, {"heartbeat", ""}};  // an older plan does not have these
  whole.update(from);
  return value_from<Role>(whole);
}

Modules read_modules(const json& from) {
  json whole{{"use", json::array()}};  // an older plan does not have it
  whole.update(from);
  return value_from<Modules>(whole);
}

void each_member(const Plan& /*plan*/, const Group& group, auto&& out) {
  std::vector<std::array<std::int64_t, 2>> members;
  for (const auto& member : group.members) members.push_back({member.process, member.gpu});
  out("name", group.name);
  out("kind", std::string(name_of(group.kind)));
  out("backend", std::string(name_of(group.backend)));
  out("members", members);
}

ordered_json object_of(const Plan& plan, const auto& value) {
  auto object = ordered_json::object();
  each_member(plan, value, [&](const char* name, const auto& member) { object[name] = member; });
  return object;
}

void read_groups(const json& from, Plan& plan) {
  for (const auto& group : from) {
    Group read{group.at("name"),
               value_from<GroupKind>(group.at("kind")),
               value_from<Backend>(group.at("backend")),
               {}};
    for (const auto& member : group.at("members")) {
      read.members.push_back({member.at(0), member.at(1)});
      if (read.members.back().process >= plan.processes.size())
        throw std::domain_error("a group names no process");
    }
    plan.groups.push_back(std::move(read));
  }
}

/// Checks that the pools cover all nodes, one pool after the other, starting with those of the run's own job.
void read_pools(const json& from, Plan& plan) {
  read_value(from, plan.pools);
  std::uint64_t next = 0;
  std::uint64_t own = 0;
  for (const auto& pool : plan.pools) {
    if (pool.first != next || (own < next && !pool.elastic))
      throw std::domain_error(fmt::format("pool '{}' is out of place", pool.name));
    next += pool.node.count;
    if (!pool.elastic) own = next;
  }
  if (own != plan.node.count || next > UINT32_MAX)
    throw std::domain_error("the pools do not cover all nodes");
}

/// Checks that processes are sorted by role, and those of replicas from the first to the last.
void check_processes(const Plan& plan) {
  std::vector<std::uint32_t> next(plan.roles.size(), 0);
  std::uint32_t last = 0;
  for (const auto& process : plan.processes) {
    const auto& role = plan.role_of(process);
    const auto index = next[process.role]++;
    if (process.role < last || (role.replica && process.index != index))
      throw std::domain_error(fmt::format("the processes of '{}' are not in order", role.name));
    last = process.role;
  }
  for (std::size_t i = 0; i < next.size(); ++i) {
    const auto& role = plan.roles[i];
    if (role.replica && role.count != next[i])
      throw std::domain_error(fmt::format("'{}' has {} processes, not {}", role.name, next[i], role.count));
  }
}

/// Checks that the components of the job cover all nodes and spares.
void check_components(const Plan& plan) {
  for (const auto& pool : plan.pools) {
    const auto has_it = [&](const SlurmComponent& one) { return one.pools == std::vector{pool.name}; };
    if (pool.elastic && std::ranges::none_of(plan.slurm.borrowed, has_it))
      throw std::domain_error(fmt::format("no component lends the nodes of pool '{}'", pool.name));
  }
  if (plan.slurm.components.empty()) return;
  std::uint64_t nodes = 0;
  std::uint64_t spares = 0;
  for (const auto& component : plan.slurm.components) {
    nodes += component.nodes;
    spares += component.spares;
  }
  if (nodes != plan.node.count || spares != plan.slurm.spares)
    throw std::domain_error("the components of the job do not cover all nodes");
}

/// Checks that a role's processes form whole replicas.
void check_replicas(const Plan& plan) {
  for (const auto& role : plan.roles) {
    const auto& replica = role.replica;
    const auto& keep = role.keep_together;
    if (keep && (keep->origin.empty() || keep->nodes.value_or(2) < 2 || (keep->nodes && replica)))
      throw std::domain_error(fmt::format("'{}' has an invalid keep_together", role.name));
    if (!replica) continue;
    constexpr std::uint64_t kMost = 1U << 30U;
    const auto size = std::uint64_t{replica->nodes} * replica->per_node;
    if (size == 0 || size > kMost || role.count % size != 0)
      throw std::domain_error(fmt::format("'{}' has incomplete replicas", role.name));
  }
}

void read_processes(const json& from, Plan& plan) {
  std::map<std::string, std::uint32_t> roles;
  for (std::uint32_t i = 0; i < plan.roles.size(); ++i) roles[plan.roles[i].name] = i;
  for (const auto& process : from.at("processes"))
    plan.processes.push_back(read_process(process, roles, plan));
  check_processes(plan);
  for (const auto& gpu : from.at("idle_gpus")) plan.idle_gpus.push_back({gpu.at(0), gpu.at(1)});
  for (const auto& stage : from.at("stages")) {
    auto& indices = plan.stages.emplace_back();
    for (const auto& role : stage) indices.push_back(roles.at(role));
  }
}

/// One method, or a list. The other groups use the backend of the first one, unless set otherwise.
void read_weight_syncs(const json& from, Plan& plan) {
  const auto& syncs = from.at("weight_sync");
  plan.weight_syncs.clear();
  if (syncs.is_array())
    read_value(syncs, plan.weight_syncs);
  else
    plan.weight_syncs.push_back(value_from<WeightSync>(syncs));
  if (plan.weight_syncs.empty()) throw std::domain_error("'weight_sync' is empty");
  plan.backend = communicator_of(plan.weight_syncs.front().backend).value_or(Backend::nccl);
  if (from.contains("backend")) read_value(from.at("backend"), plan.backend);
}

Plan read_plan(const json& from) {
  if (from.value("format", "") != formats::kPlan.name) throw std::domain_error("it is not an nlaunch plan");
  Plan plan;
  from.at("name").get_to(plan.name);
  if (!config::is_experiment_name(plan.name)) {
    throw std::domain_error(fmt::format("'{}' is not a valid experiment name", plan.name));
  }
  from.at("experiment").get_to(plan.experiment);
  from.at("site").get_to(plan.site);
  from.at("site_path").get_to(plan.site_path);
  from.at("scheduler").get_to(plan.scheduler);
  if (find_scheduler(plan.scheduler) == nullptr)
    throw std::domain_error(fmt::format("unknown word {}", json_text(from.at("scheduler"))));
  read_value(from.at("node"), plan.node);
  if (from.contains("pools")) read_pools(from.at("pools"), plan);
  if (from.contains("topology")) read_value(from.at("topology"), plan.topology);
  if (const auto* part = find_part(plan.scheduler)) part->read(from.at(plan.scheduler), plan);
  check_components(plan);
  if (from.contains("walltime")) read_value(from.at("walltime"), plan.walltime);
  for (const auto& role : from.at("roles")) plan.roles.push_back(read_role(role));
  check_replicas(plan);
  read_processes(from, plan);
  read_groups(from.at("groups"), plan);
  read_weight_syncs(from, plan);
  read_value(from.at("preflight"), plan.preflight);
  read_value(from.at("audit"), plan.audit);
  for (const auto& [signal, rule] : from.at("signals").items())
    read_value(rule, plan.signals[std::stoi(signal)]);
  read_value(from.at("restart"), plan.restart);
  if (from.contains("checkpoint")) read_value(from.at("checkpoint"), plan.checkpoint);
  if (from.contains("notify")) read_value(from.at("notify"), plan.notify);
  if (from.contains("metrics")) read_value(from.at("metrics"), plan.metrics);
  if (from.contains("fan_out")) plan.fan_out = from.at("fan_out").get<std::uint32_t>();
  if (from.contains("leader_grace_ms")) read_value(from.at("leader_grace_ms"), plan.leader_grace);
  read_value(from.at("secrets"), plan.secrets);
  read_value(from.at("libraries"), plan.libraries);
  plan.modules = read_modules(from.at("modules"));
  read_value(from.at("expected"), plan.expected);
  if (from.contains("watch")) read_value(from.at("watch"), plan.watch);
  if (from.contains("bench")) plan.bench = bench_from_json(from.at("bench"), plan);
  from.at("vars").get_to(plan.vars);
  from.at("warnings").get_to(plan.warnings);
  from.at("sources").get_to(plan.sources);
  return plan;
}

}  // namespace

ordered_json write(const EnvOp& op) {
  ordered_json out{{"op", name_of(op.kind)}, {"name", op.name}};
  if (op.kind != EnvOp::Kind::unset && looks_like_secret(op.name)) {
    out["masked"] = true;
  } else if (op.kind != EnvOp::Kind::unset) {
    out["value"] = op.value;
  }
  out["layer"] = name_of(op.layer);
  out["origin"] = op.origin;
  if (!op.when.always()) out["when"] = to_value(op.when);
  return out;
}

void read(const json& from, EnvOp& op) {
  read_value(from.at("op"), op.kind);
  from.at("name").get_to(op.name);
  op.value = from.value("value", "");
  read_value(from.at("layer"), op.layer);
  from.at("origin").get_to(op.origin);
  if (from.contains("when")) read_value(from.at("when"), op.when);
  op.masked = from.value("masked", false);
}

ordered_json write(const Expectation& row) {
  ordered_json out{{"gpus_per_node", row.gpus_per_node.value_or(0)},
                   {"nodes", to_value(row.nodes)},
                   {"size", row.size},
                   {"min", row.min},
                   {"origin", row.origin}};
  if (row.limit > 0) out["limit"] = row.limit;
  return out;
}

void read(const json& from, Expectation& row) {
  if (const std::uint32_t gpus = from.at("gpus_per_node"); gpus > 0) row.gpus_per_node = gpus;
  if (from.contains("nodes")) read_value(from.at("nodes"), row.nodes);
  row.size = from.at("size");
  row.min = from.at("min");
  row.origin = from.at("origin");
  row.limit = from.value("limit", 0.0);
}

namespace {

/// The plan with empty lists of processes and groups.
ordered_json outline(const Plan& plan) {
  auto out = stamped<ordered_json>(formats::kPlan);
  out["name"] = plan.name;
  out["experiment"] = plan.experiment;
  out["site"] = plan.site;
  out["site_path"] = plan.site_path;
  out["scheduler"] = plan.scheduler;
  out["node"] = to_value(plan.node);
  if (!plan.pools.empty()) out["pools"] = to_value(plan.pools);
  if (auto topology = to_value(plan.topology); !topology.empty()) out["topology"] = std::move(topology);
  if (const auto* part = find_part(plan.scheduler)) out[plan.scheduler] = part->write(plan);
  if (plan.walltime) out["walltime"] = to_value(plan.walltime);
  out["roles"] = to_value(plan.roles);
  out["processes"] = ordered_json::array();
  out["groups"] = ordered_json::array();
  auto& idle = out["idle_gpus"] = ordered_json::array();
  for (const auto& gpu : plan.idle_gpus) idle.push_back({gpu.node, gpu.gpu});
  auto& stages = out["stages"] = ordered_json::array();
  for (const auto& stage : plan.stages) {
    auto names = ordered_json::array();
    for (const auto role : stage) names.push_back(plan.roles[role].name);
    stages.push_back(std::move(names));
  }
  const auto& syncs = plan.weight_syncs;
  out["weight_sync"] =
      syncs.size() == 1 && syncs.front().name.empty() ? to_value(syncs.front()) : to_value(syncs);
  if (communicator_of(syncs.front().backend) != plan.backend) out["backend"] = name_of(plan.backend);
  out["preflight"] = to_value(plan.preflight);
  out["audit"] = name_of(plan.audit);
  out["signals"] = write_signals(plan.signals);
  out["restart"] = to_value(plan.restart);
  if (plan.checkpoint) out["checkpoint"] = to_value(plan.checkpoint);
  if (plan.notify) out["notify"] = to_value(plan.notify);
  if (plan.metrics) out["metrics"] = to_value(plan.metrics);
  if (plan.fan_out) out["fan_out"] = *plan.fan_out;
  if (plan.leader_grace > Duration()) out["leader_grace_ms"] = to_value(plan.leader_grace);
  out["secrets"] = to_value(plan.secrets);
  out["libraries"] = to_value(plan.libraries);
  out["modules"] = to_value(plan.modules);
  out["expected"] = to_value(plan.expected);
  if (plan.watch) out["watch"] = to_value(plan.watch);
  if (!plan.bench.workloads.empty()) out["bench"] = to_json(plan.bench, plan);
  out["vars"] = plan.vars;
  out["warnings"] = plan.warnings;
  out["sources"] = plan.sources;
  return out;
}

/// Text of JSON that is written value by value, as nlohmann's dump() has it.
class TextWriter {
 public:
  explicit TextWriter(int indent) : indent_(indent) {}

  void open(char bracket) {
    text_ += bracket;
    ++depth_;
    is_empty_ = true;
  }
  void close(char bracket) {
    --depth_;
    if (!is_empty_) new_line();
    text_ += bracket;
    is_empty_ = false;
  }
  void key(std::string_view name) {
    next();
    text(name);
    text_ += indent_ < 0 ? ":" : ": ";
  }
  void next() {
    if (!is_empty_) text_ += ',';
    is_empty_ = false;
    new_line();
  }
  void value(const ordered_json& value) {
    // JSON escapes the line breaks of a string: those of the text are all between values.
    for (const char c : json_text(value, indent_)) {
      if (c == '\n')
        new_line();
      else
        text_ += c;
    }
  }
  void value(const std::string& value) { text(value); }
  void value(std::integral auto value) { fmt::format_to(std::back_inserter(text_), "{}", value); }
  void value(const std::ranges::forward_range auto& values) {
    open('[');
    for (const auto& one : values) {
      next();
      value(one);
    }
    close(']');
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void new_line() {
    if (indent_ >= 0) text_.append(1, '\n').append(static_cast<std::size_t>(indent_) * depth_, ' ');
  }
  void text(std::string_view value) {
    const auto plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
    if (std::ranges::all_of(value, plain)) {
      text_.append(1, '"').append(value) += '"';
    } else {
      text_ += json_text(ordered_json(value));
    }
  }

  int indent_;
  std::size_t depth_ = 0;
  bool is_empty_ = true;
  std::string text_;
};

template <class T>
void write_list(TextWriter& out, const Plan& plan, const std::vector<T>& values) {
  out.open('[');
  for (const auto& value : values) {
    out.next();
    out.open('{');
    each_member(plan, value, [&](const char* name, const auto& member) {
      out.key(name);
      out.value(member);
    });
    out.close('}');
  }
  out.close(']');
}

}  // namespace

ordered_json to_json(const Plan& plan) {
  auto out = outline(plan);
  for (const auto& process : plan.processes) out["processes"].push_back(object_of(plan, process));
  for (const auto& group : plan.groups) out["groups"].push_back(object_of(plan, group));
  return out;
}

std::string to_text(const Plan& plan, int indent) {
  TextWriter out(indent);
  out.open('{');
  const auto all = outline(plan);
  for (const auto& [key, value] : all.items()) {
    out.key(key);
    if (key == "processes") {
      write_list(out, plan, plan.processes);
    } else if (key == "groups") {
      write_list(out, plan, plan.groups);
    } else {
      out.value(value);
    }
  }
  out.close('}');
  return out.take();
}

Result<Plan> from_json(const std::string& text, const std::string& name) {
  std::string why;
  const auto parsed = parse_json(text);
  if (!parsed.is_object()) {
    why = "it is not JSON";
  } else if (const auto known = check_format(parsed, formats::kPlan, name); !known) {
    return std::unexpected(known.error());
  } else {
    try {
      return read_plan(parsed);
    } catch (const json::exception& error) {
      const std::string_view what = error.what();  // "[json.exception.out_of_range.403] key 'name' not found"
      why = what.substr(what.find("] ") + 2);
    } catch (const std::exception& error) {
      why = error.what();
    }
  }
  return std::unexpected(Diagnostics({Severity::error,
                                      "plan.file",
                                      fmt::format("'{}' cannot be read as a plan: {}", name, why),
                                      {},
                                      {},
                                      "--plan accepts the plan.json of a run or the output of `nlaunch plan "
                                      "--json`; pass an experiment without --plan"}));
}

}  // namespace nlaunch::plan
