#include "plan/json.h"

#include "base/backend.h"
#include "base/format.h"
#include "base/json.h"
#include "base/scheduler_traits.h"
#include "config/names.h"
#include "plan/bench.h"
#include "plan/json_parts.h"
#include "plan/scheduler_part.h"
#include "plan/slurm.h"
#include "plan/watch.h"

namespace nlaunch::plan {
namespace {

Backend backend(const json& from) {
  const auto& word = from.at("backend");
  for (const auto& one : all_backends()) {
    if (word == one.name) return one.backend;
  }
  throw std::domain_error(fmt::format("unknown word {}", json_text(word)));
}

std::string str(const std::optional<VersionRange>& range) {
  return range ? range->str() : std::string();
}

constexpr std::array kGroups{GroupKind::node, GroupKind::world, GroupKind::tensor_parallel,
                             GroupKind::weight_sync};
constexpr std::array<std::string_view, 3> kSources{"env", "file", "netrc"};
constexpr std::array<std::string_view, 3> kActions{"stop", "ignore", "forward"};

ordered_json write(const Plan& plan, const Process& process) {
  return {{"role", plan.role_of(process).name},
          {"index", process.index},
          {"rank", process.rank},
          {"node", process.node},
          {"local_rank", process.local_rank},
          {"local_size", process.local_size},
          {"node_rank", process.node_rank},
          {"gpus", process.gpus},
          {"ports", process.ports}};
}

Process read_process(const json& from, const std::map<std::string, std::uint32_t>& roles, const Plan& plan) {
  Process process{roles.at(from.at("role")), from.at("index"),      from.at("rank"),
                  from.at("node"),           from.at("local_rank"), from.at("local_size"),
                  from.at("node_rank"),      from.at("gpus"),       from.at("ports")};
  if (process.node >= plan.node.count)
    throw std::domain_error(fmt::format("there is no node {}", process.node));
  for (const auto gpu : process.gpus) {
    if (gpu >= plan.node.gpus) throw std::domain_error(fmt::format("there is no GPU {} on a node", gpu));
  }
  return process;
}

ordered_json write(const Node& node) {
  return {{"count", node.count},         {"gpus", node.gpus},           {"cpus", node.cpus},
          {"cpu_slots", node.cpu_slots}, {"gpu_model", node.gpu_model}, {"arch", node.arch},
          {"interface", node.interface}, {"nic_kind", node.nic_kind},   {"nic_count", node.nic_count},
          {"scratch", node.scratch}};
}

Node read_node(const json& from) {
  return {from.at("count"),     from.at("gpus"),   from.at("cpus"),      from.at("cpu_slots"),
          from.at("gpu_model"), from.at("arch"),   from.at("interface"), from.at("nic_kind"),
          from.at("nic_count"), from.at("scratch")};
}

ordered_json write(const Expected& expected) {
  ordered_json out{{"bus_ids", expected.bus_ids},
                   {"intra_node", expected.intra_node},
                   {"inter_node", expected.inter_node},
                   {"all_reduce_busbw", ordered_json::array()}};
  for (const auto& row : expected.all_reduce_busbw) {
    out["all_reduce_busbw"].push_back({{"gpus_per_node", row.gpus_per_node.value_or(0)},
                                       {"nodes", str(row.nodes)},
                                       {"size", row.size},
                                       {"min", row.min},
                                       {"origin", row.origin}});
    if (row.limit > 0) out["all_reduce_busbw"].back()["limit"] = row.limit;
  }
  return out;
}

Expected read_expected(const json& from) {
  Expected expected{{}, from.at("bus_ids"), from.at("intra_node"), from.at("inter_node")};
  for (const auto& row : from.at("all_reduce_busbw")) {
    Expectation read{
        {}, range(row, "nodes"), row.at("size"), row.at("min"), row.at("origin"), row.value("limit", 0.0)};
    if (const std::uint32_t gpus = row.at("gpus_per_node"); gpus > 0) read.gpus_per_node = gpus;
    expected.all_reduce_busbw.push_back(std::move(read));
  }
  return expected;
}

ordered_json write_settings(const Plan& plan) {
  ordered_json signals = ordered_json::object();
  for (const auto& [signal, rule] : plan.signals) {
    signals[std::to_string(signal)] = {{"action", kActions[static_cast<std::size_t>(rule.action)]},
                                       {"roles", rule.roles}};
  }
  ordered_json secrets = ordered_json::array();
  for (const auto& secret : plan.secrets) {
    secrets.push_back({{"name", secret.name},
                       {"source", kSources[static_cast<std::size_t>(secret.source)]},
                       {"from", secret.from},
                       {"origin", secret.origin}});
  }
  ordered_json libraries = ordered_json::object();
  for (const auto& [name, library] : plan.libraries) {
    libraries[name] = {{"path", library.path}, {"version", str(library.version)}, {"origin", library.origin}};
  }
  return {{"weight_sync",
           {{"backend", name_of(plan.weight_sync.backend)},
            {"world_size", plan.weight_sync.world_size},
            {"port", plan.weight_sync.port}}},
          {"preflight", {{"level", name_of(plan.preflight.level)}, {"strict", plan.preflight.strict}}},
          {"audit", name_of(plan.audit)},
          {"signals", std::move(signals)},
          {"restart", write_restart(plan.restart)},
          {"secrets", std::move(secrets)},
          {"libraries", std::move(libraries)},
          {"modules",
           {{"init", plan.modules.init},
            {"reset", plan.modules.reset},
            {"load", plan.modules.load},
            {"set", plan.modules.set},
            {"source", plan.modules.source},
            {"origin", plan.modules.origin}}},
          {"expected", write(plan.expected)}};
}

void read_settings(const json& from, Plan& plan) {
  const auto& sync = from.at("weight_sync");
  plan.weight_sync = {backend(sync), sync.at("world_size"), sync.at("port")};
  const auto& preflight = from.at("preflight");
  plan.preflight = {word(preflight.at("level"),
                         std::array{PreflightLevel::quick, PreflightLevel::standard, PreflightLevel::deep}),
                    preflight.at("strict")};
  plan.audit = word(from.at("audit"), std::array{AuditMode::report, AuditMode::enforce});
  for (const auto& [signal, rule] : from.at("signals").items()) {
    plan.signals[std::stoi(signal)] = {numbered<SignalRule::Action>(rule.at("action"), kActions),
                                       rule.at("roles")};
  }
  plan.restart = read_restart(from.at("restart"));
  for (const auto& secret : from.at("secrets")) {
    plan.secrets.push_back({secret.at("name"), numbered<Secret::Source>(secret.at("source"), kSources),
                            secret.at("from"), secret.at("origin")});
  }
  for (const auto& [name, library] : from.at("libraries").items()) {
    plan.libraries[name] = {library.at("path"), range(library, "version"), library.at("origin")};
  }
  const auto& modules = from.at("modules");
  plan.modules = {modules.at("init"),   modules.at("reset"), modules.at("load"),
                  modules.at("origin"), modules.at("set"),   modules.at("source")};
  plan.expected = read_expected(from.at("expected"));
}

ordered_json write_groups(const Plan& plan) {
  ordered_json groups = ordered_json::array();
  for (const auto& group : plan.groups) {
    ordered_json members = ordered_json::array();
    for (const auto& member : group.members) members.push_back({member.process, member.gpu});
    groups.push_back({{"name", group.name},
                      {"kind", name_of(group.kind)},
                      {"backend", name_of(group.backend)},
                      {"members", std::move(members)}});
  }
  return groups;
}

void read_groups(const json& from, Plan& plan) {
  for (const auto& group : from) {
    Group read{group.at("name"), word(group.at("kind"), kGroups), backend(group), {}};
    for (const auto& member : group.at("members")) {
      read.members.push_back({member.at(0), member.at(1)});
      if (read.members.back().process >= plan.processes.size())
        throw std::domain_error("a group names no process");
    }
    plan.groups.push_back(std::move(read));
  }
}

void read_processes(const json& from, Plan& plan) {
  std::map<std::string, std::uint32_t> roles;
  for (std::uint32_t i = 0; i < plan.roles.size(); ++i) roles[plan.roles[i].name] = i;
  for (const auto& process : from.at("processes"))
    plan.processes.push_back(read_process(process, roles, plan));
  for (const auto& gpu : from.at("idle_gpus")) plan.idle_gpus.push_back({gpu.at(0), gpu.at(1)});
  for (const auto& stage : from.at("stages")) {
    auto& indices = plan.stages.emplace_back();
    for (const auto& role : stage) indices.push_back(roles.at(role));
  }
}

Plan read_plan(const json& from) {
  if (from.value("format", "") != formats::kPlan.name) throw std::domain_error("it is not a plan of nlaunch");
  Plan plan;
  from.at("name").get_to(plan.name);
  if (!config::is_experiment_name(plan.name)) {
    throw std::domain_error(fmt::format("'{}' cannot be the name of an experiment", plan.name));
  }
  from.at("experiment").get_to(plan.experiment);
  from.at("site").get_to(plan.site);
  from.at("site_path").get_to(plan.site_path);
  from.at("scheduler").get_to(plan.scheduler);
  if (find_scheduler(plan.scheduler) == nullptr)
    throw std::domain_error(fmt::format("unknown word {}", json_text(from.at("scheduler"))));
  plan.node = read_node(from.at("node"));
  if (const auto* part = find_part(plan.scheduler)) part->read(from.at(plan.scheduler), plan);
  if (from.contains("walltime")) plan.walltime = walltime_from_json(from.at("walltime"));
  for (const auto& role : from.at("roles")) plan.roles.push_back(read_role(role));
  read_processes(from, plan);
  read_groups(from.at("groups"), plan);
  read_settings(from, plan);
  if (from.contains("watch")) plan.watch = watch_from_json(from.at("watch"));
  if (from.contains("bench")) plan.bench = bench_from_json(from.at("bench"), plan);
  from.at("vars").get_to(plan.vars);
  from.at("warnings").get_to(plan.warnings);
  from.at("sources").get_to(plan.sources);
  return plan;
}

}  // namespace

ordered_json to_json(const Plan& plan) {
  auto out = stamped<ordered_json>(formats::kPlan);
  out["name"] = plan.name;
  out["experiment"] = plan.experiment;
  out["site"] = plan.site;
  out["site_path"] = plan.site_path;
  out["scheduler"] = plan.scheduler;
  out["node"] = write(plan.node);
  if (const auto* part = find_part(plan.scheduler)) out[plan.scheduler] = part->write(plan);
  if (plan.walltime) out["walltime"] = to_json(*plan.walltime);
  auto& roles = out["roles"] = ordered_json::array();
  for (const auto& role : plan.roles) roles.push_back(write_role(role));
  auto& processes = out["processes"] = ordered_json::array();
  for (const auto& process : plan.processes) processes.push_back(write(plan, process));
  out["groups"] = write_groups(plan);
  auto& idle = out["idle_gpus"] = ordered_json::array();
  for (const auto& gpu : plan.idle_gpus) idle.push_back({gpu.node, gpu.gpu});
  auto& stages = out["stages"] = ordered_json::array();
  for (const auto& stage : plan.stages) {
    auto names = ordered_json::array();
    for (const auto role : stage) names.push_back(plan.roles[role].name);
    stages.push_back(std::move(names));
  }
  out.update(write_settings(plan));
  if (plan.watch) out["watch"] = to_json(*plan.watch);
  if (!plan.bench.workloads.empty()) out["bench"] = to_json(plan.bench, plan);
  out["vars"] = plan.vars;
  out["warnings"] = plan.warnings;
  out["sources"] = plan.sources;
  return out;
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
                                      "--plan takes the plan.json of a run, or what `nlaunch plan --json` "
                                      "prints; an experiment is given without --plan"}));
}

}  // namespace nlaunch::plan
