#include "plan/reference_table.h"

#include <glob.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/secrets.h"
#include "base/text.h"
#include "config/pools.h"
#include "plan/groups.h"
#include "sys/files.h"

namespace nlaunch::plan {
namespace {

using config::Text;

/// A name as it is looked up in a plan: "role.NAME.addrs" has `rest` "NAME.addrs", and `role` is the role
/// NAME.
struct AtPlan {
  const PlanNames& names;
  std::string_view rest;               ///< after the family
  const config::Role* role = nullptr;  ///< for `self`: the role of the text; for `role`: the named one
};
struct AtNode {
  const NodeNames& names;
  std::string_view rest;
  const Process* process = nullptr;  ///< the process of the text
  const Role* role = nullptr;        ///< for `role`: the named one
};

/// One name. To add a name, add a row.
struct Row {
  std::string_view family;
  std::string_view name;
  /// The value in a plan; nullptr: the reference is kept for the node.
  Lookup (*in_plan)(const AtPlan&) = nullptr;
  /// The value on a node; nullptr: the plan has filled it in.
  Lookup (*on_node)(const AtNode&) = nullptr;
};

Lookup optional_text(const std::optional<Text>& text) {
  return text ? text->value : std::string();
}

Unknown unknown(std::string_view name, std::string_view bad, const std::vector<std::string>& known) {
  auto message = fmt::format("unknown name '${{{}}}'", name);
  if (const auto near = text::nearest(bad, known)) {
    const auto at = name.rfind(bad);
    auto better = std::string(name);
    better.replace(at, bad.size(), *near);
    message += fmt::format(": did you mean '${{{}}}'?", better);
  } else if (known.empty()) {
    message += ": none of that kind is defined";
  } else {
    message += fmt::format(": '{}' is not one of {}", bad, text::join(known, ", "));
  }
  return {std::move(message)};
}

/// A role that starts others has their GPUs, whose number can differ between nodes.
bool spawns(const config::Experiment& experiment, const config::Role& role) {
  return std::ranges::any_of(experiment.roles, [&](const auto& other) {
    return std::ranges::any_of(other.spawned_by, [&](const Text& by) { return by.value == role.name.value; });
  });
}

std::string_view after_dot(std::string_view text) {
  const auto dot = text.find('.');
  return dot == std::string_view::npos ? std::string_view() : text.substr(dot + 1);
}

std::vector<std::string> port_names(const config::Role& role) {
  std::vector<std::string> names;
  for (const auto& port : role.ports) names.push_back(port.value);
  return names;
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

template <class Named>
std::vector<std::string> keys_of(const std::vector<std::pair<Text, Named>>& pairs) {
  std::vector<std::string> names;
  for (const auto& [name, value] : pairs) names.push_back(name.value);
  return names;
}

// --- names that need more than a line ---

Lookup var_in_plan(const AtPlan& at) {
  const auto& experiment = at.names.experiment();
  const auto known = at.names.vars().find(std::string(at.rest));
  if (known != at.names.vars().end()) return Expanded{known->second};
  if (!experiment.vars_whole) return Keep{};
  auto nothing = unknown(fmt::format("vars.{}", at.rest), at.rest, keys_of(experiment.vars));
  nothing.unset = true;  // --set can define it
  return nothing;
}

/// For a rank, or for the place of the rendezvous.
Lookup needs_rendezvous(const AtPlan& at) {
  if (at.role->rendezvous != Rendezvous::none) return Keep{};
  return Unknown{fmt::format("'${{self.{}}}': role '{}' has no rendezvous{}", at.rest, at.role->name.value,
                             at.rest == "rank" ? "; use ${self.index}" : "")};
}

const Role& own_role(const AtNode& at) {
  return at.names.plan().role_of(*at.process);
}

/// The process of a role at which the others rendezvous.
const Process& first_of(const Plan& plan, const Role& role) {
  return *std::ranges::find_if(plan.processes,
                               [&](const Process& process) { return &plan.role_of(process) == &role; });
}

Lookup ports_in_plan(const AtPlan& at) {
  const auto ports = port_names(*at.role);
  const auto port = after_dot(at.rest);
  if (has(ports, port)) return Keep{};
  if (!ports.empty()) return unknown(fmt::format("self.{}", at.rest), port, ports);
  return Unknown{fmt::format("'${{self.{}}}': role '{}' declares no ports", at.rest, at.role->name.value)};
}

Lookup port_on_node(const AtNode& at) {
  const auto& ports = at.names.plan().role_of(*at.process).ports;
  const auto found = std::ranges::find(ports, after_dot(at.rest));
  if (found == ports.end()) return Unknown{fmt::format("'${{self.{}}}' is not known", at.rest)};
  return std::to_string(at.process->ports.at(static_cast<std::size_t>(found - ports.begin())));
}

/// The weight sync with that name, or, without a name, the only or first one.
template <class Syncs>
auto find_sync(Syncs& syncs, std::string_view name) {
  return std::ranges::find_if(syncs, [&](const auto& sync) {
    if constexpr (requires { sync.name.value; })
      return name.empty() || sync.name.value == name;
    else
      return name.empty() || sync.name == name;
  });
}

Lookup unknown_sync(std::string_view whole, std::string_view name,
                    const std::vector<config::WeightSync>& syncs) {
  std::vector<std::string> known;
  for (const auto& sync : syncs) {
    if (!sync.name.value.empty()) known.push_back(sync.name.value);
  }
  if (known.empty())
    return Unknown{
        fmt::format("'${{{}}}': the experiment has one weight-sync group, which has no name", whole)};
  return unknown(whole, name, known);
}

/// ${self.sync_rank}, ${self.sync_rank.NAME}
Lookup sync_rank_in_plan(const AtPlan& at) {
  const auto name = after_dot(at.rest);
  const auto& syncs = at.names.experiment().weight_syncs;
  if (find_sync(syncs, name) != syncs.end()) return Keep{};
  return unknown_sync(fmt::format("self.{}", at.rest), name, syncs);
}

Lookup sync_rank_on_node(const AtNode& at) {
  const auto& plan = at.names.plan();
  const auto found = find_sync(plan.weight_syncs, after_dot(at.rest));
  const auto& sync = found == plan.weight_syncs.end() ? plan.weight_syncs.front() : *found;
  if (const auto rank = sync_rank(plan, sync, *at.process); rank >= 0) return std::to_string(rank);
  const bool on_others = plan.role_of(*at.process).kind == RoleKind::engine;
  const auto group =
      sync.name.empty() ? "the weight-sync group" : fmt::format("the weight-sync group '{}'", sync.name);
  return Unknown{fmt::format("{} is not in {}: {}", plan.name_of(*at.process), group,
                             !sync.order.empty() ? "`weight_sync.order` does not name it"
                             : on_others ? "it shares its GPUs with a learner or another engine, and a "
                                           "communicator can use a GPU only once"
                                         : "learner 0 and the engines are"),
                 true};
}

// ${weight_sync.WHAT}, ${weight_sync.NAME.WHAT}

/// The name, empty if there is none, and WHAT.
std::pair<std::string_view, std::string_view> name_and_what(std::string_view rest) {
  const auto dot = rest.find('.');
  if (dot == std::string_view::npos) return {"", rest};
  return {rest.substr(0, dot), rest.substr(dot + 1)};
}

Lookup sync_in_plan(const AtPlan& at) {
  const auto& syncs = at.names.experiment().weight_syncs;
  const auto [name, what] = name_and_what(at.rest);
  const auto sync = find_sync(syncs, name);
  if (sync == syncs.end()) return unknown_sync(fmt::format("weight_sync.{}", at.rest), name, syncs);
  if (what == "backend") return std::string(name_of(sync->backend.value));
  if (what == "path" && !sync->path)
    return Unknown{fmt::format("'${{weight_sync.{}}}': only backend: disk has a path", at.rest)};
  return Keep{};
}

const WeightSync& sync_of(const AtNode& at) {
  const auto& syncs = at.names.plan().weight_syncs;
  const auto found = find_sync(syncs, name_and_what(at.rest).first);
  return found == syncs.end() ? syncs.front() : *found;
}

// ${self.replica.NAME}

Lookup replica_in_plan(const AtPlan& at) {
  const auto name = fmt::format("self.{}", at.rest);
  if (!at.role->replica)
    return Unknown{fmt::format("'${{{}}}': role '{}' has no replicas: write `replica: {{nodes: N}}`", name,
                               at.role->name.value)};
  const auto what = after_dot(at.rest);
  const std::vector<std::string> known{"index", "rank", "size", "nodes", "gpus", "host", "ports.NAME"};
  if (!what.starts_with("ports.")) return has(known, what) ? Lookup(Keep{}) : unknown(name, what, known);
  const auto ports = port_names(*at.role);
  if (has(ports, after_dot(what))) return Keep{};
  if (!ports.empty()) return unknown(name, after_dot(what), ports);
  return Unknown{fmt::format("'${{{}}}': role '{}' declares no ports", name, at.role->name.value)};
}

Lookup replica_on_node(const AtNode& at) {
  const auto& plan = at.names.plan();
  const auto& role = own_role(at);
  const auto own = in_replica(role, *at.process);
  const auto what = after_dot(at.rest);
  if (what == "index") return std::to_string(own.index);
  if (what == "rank") return std::to_string(own.rank);
  if (what == "size") return std::to_string(replica_size(role));
  if (what == "nodes") return std::to_string(role.replica ? role.replica->nodes : 1);
  if (what == "gpus") return std::to_string(replica_size(role) * role.gpus);
  const auto leader = std::ranges::find_if(plan.processes, [&](const Process& one) {
    return one.role == at.process->role && one.index == own.leader;
  });
  if (leader == plan.processes.end()) return Unknown{fmt::format("'${{self.{}}}' is not known", at.rest)};
  if (what == "host") return at.names.address_of(*leader);
  const auto port = std::ranges::find(role.ports, after_dot(what));
  if (port == role.ports.end()) return Unknown{fmt::format("'${{self.{}}}' is not known", at.rest)};
  return std::to_string(leader->ports.at(static_cast<std::size_t>(port - role.ports.begin())));
}

// ${pool.NAME.WHAT}

/// A value that a process gets when it starts must hold for the whole run.
Unknown unknown_yet(std::string_view name, std::string_view pool) {
  return {
      fmt::format("'${{{}}}': the nodes of the elastic pool '{}' come and go during the run; "
                  "${{role.NAME.addrs_file}} names a file that always has the current ones",
                  name, pool)};
}

Lookup pool_in_plan(const AtPlan& at) {
  const auto& pools = at.names.experiment().pools;
  std::vector<std::string> names;
  for (const auto& pool : pools) names.push_back(pool.name.value);
  const auto pool = at.rest.substr(0, at.rest.find('.'));
  const auto name = fmt::format("pool.{}", at.rest);
  if (names.empty()) return Unknown{fmt::format("'${{{}}}': the experiment has no pools", name)};
  if (!has(names, pool)) return unknown(name, pool, names);
  const auto what = after_dot(at.rest);
  const std::vector<std::string> known{"gpus", "hosts", "nodes"};
  if (!has(known, what)) return unknown(name, what, known);
  const bool comes_and_goes = config::find_pool(pools, pool)->elastic.has_value();
  return what == "hosts" && comes_and_goes ? Lookup(unknown_yet(name, pool)) : Lookup(Keep{});
}

Lookup pool_on_node(const AtNode& at) {
  const auto& pools = at.names.plan().pools;
  const auto pool = std::ranges::find(pools, at.rest.substr(0, at.rest.find('.')), &Pool::name);
  if (pool == pools.end()) return Unknown{fmt::format("'${{pool.{}}}' is not known", at.rest)};
  const auto what = after_dot(at.rest);
  if (what == "gpus") return std::to_string(pool->node.gpus);
  if (what == "nodes") return std::to_string(pool->node.count);
  std::vector<std::string> hosts;
  for (std::uint32_t i = 0; i < pool->node.count; ++i) hosts.push_back(at.names.address_of(pool->first + i));
  return text::join(hosts, ",");
}

constexpr std::string_view kListForm = "list|";
constexpr std::string_view kPortOfAll = "ports.";

/// The part after the role in "role.engine.0.ports.http".
struct OneOf {
  std::uint32_t index = 0;
  std::string_view what;  ///< "host", "ports.http"
};
std::optional<OneOf> one_of(std::string_view behind_role) {
  const auto dot = behind_role.find('.');
  const auto index = text::whole_number<std::uint32_t>(behind_role.substr(0, dot));
  if (!index) return std::nullopt;
  return OneOf{*index, after_dot(behind_role)};
}

/// The number of processes of a role, if the file defines it without the number of nodes.
std::optional<std::uint32_t> count_of(const config::Role& role) {
  // For a role with replicas, the number of replicas, because others address their leaders.
  if (role.per_node || (role.per && role.per->value == config::Role::Per::node)) return std::nullopt;
  return role.count ? role.count->value : 1;
}

Unknown no_such_index(std::string_view rest, std::string_view role, std::uint32_t count,
                      std::string_view what) {
  const auto last =
      count == 1 ? fmt::format("'{}.0'", role) : fmt::format("'{0}.0' to '{0}.{1}'", role, count - 1);
  return {fmt::format("'${{role.{}}}': role '{}' has {}, {}", rest, role, text::count(count, what), last)};
}

Lookup one_in_plan(const AtPlan& at) {
  const auto& role = *at.role;
  const auto [index, what] = *one_of(after_dot(at.rest));
  if (const auto count = count_of(role); count && index >= *count)
    return no_such_index(at.rest, role.name.value, *count, role.replica ? "replica" : "process");
  if (what == "host") return Keep{};
  const auto name = fmt::format("role.{}", at.rest);
  if (!what.starts_with("ports.")) return unknown(name, what, {"host", "ports.NAME"});
  const auto ports = port_names(role);
  if (has(ports, after_dot(what))) return Keep{};
  if (!ports.empty()) return unknown(name, after_dot(what), ports);
  return Unknown{fmt::format("'${{{}}}': role '{}' declares no ports", name, role.name.value)};
}

Lookup one_on_node(const AtNode& at) {
  const auto [index, what] = *one_of(after_dot(at.rest));
  const auto& plan = at.names.plan();
  const auto process = std::ranges::find_if(plan.processes, [&, wanted = index](const Process& one) {
    return &plan.role_of(one) == at.role && one.index == wanted * replica_size(*at.role);
  });
  if (process == plan.processes.end())
    return no_such_index(at.rest, at.role->name, replicas(*at.role),
                         at.role->replica ? "replica" : "process");
  if (what == "host") return at.names.address_of(*process);
  const auto port = std::ranges::find(at.role->ports, after_dot(what));
  return std::to_string(process->ports.at(static_cast<std::size_t>(port - at.role->ports.begin())));
}

// ${role.NAME.list|FORM|SEPARATOR}: FORM for each process, with the names in braces filled in.

struct ListForm {
  std::string_view form;
  std::string_view separator = ",";
};
ListForm list_form(std::string_view behind_role) {
  const auto form = behind_role.substr(kListForm.size());
  const auto bar = form.find('|');
  if (bar == std::string_view::npos) return {form};
  return {form.substr(0, bar), form.substr(bar + 1)};
}

/// FORM with each {NAME} replaced by `value(NAME)`.
std::string fill(std::string_view form, const std::function<std::string(std::string_view)>& value) {
  std::string out;
  while (!form.empty()) {
    const auto open = form.find('{');
    const auto close = open == std::string_view::npos ? open : form.find('}', open);
    if (close == std::string_view::npos) return out + std::string(form);
    out += form.substr(0, open);
    out += value(form.substr(open + 1, close - open - 1));
    form.remove_prefix(close + 1);
  }
  return out;
}

Lookup list_in_plan(const AtPlan& at) {
  std::vector<std::string> known{"host", "index", "name", "node"};
  for (const auto& port : at.role->ports) known.push_back(fmt::format("ports.{}", port.value));
  if (!at.role->ports.empty()) known.emplace_back("port");
  std::string wrong;
  fill(list_form(after_dot(at.rest)).form, [&](std::string_view name) {
    if (!has(known, name) && wrong.empty())
      wrong = fmt::format("'${{role.{}}}': '{{{}}}' is not one of {{{}}}", at.rest, name,
                          text::join(known, "}, {"));
    return std::string();
  });
  return wrong.empty() ? Lookup(Keep{}) : Unknown{wrong};
}

Lookup list_on_node(const AtNode& at) {
  const auto [form, separator] = list_form(after_dot(at.rest));
  const auto& plan = at.names.plan();
  std::vector<std::string> parts;
  for (const auto& process : plan.processes) {
    if (&plan.role_of(process) != at.role || !is_reached(*at.role, process)) continue;
    parts.push_back(fill(form, [&](std::string_view name) -> std::string {
      if (name == "host") return at.names.address_of(process);
      const auto index = in_replica(*at.role, process).index;
      if (name == "index") return std::to_string(index);
      if (name == "name") return fmt::format("{}.{}", at.role->name, index);
      if (name == "node") return std::to_string(process.node);
      const auto port = std::ranges::find(at.role->ports, after_dot(name));
      return std::to_string(
          process.ports.at(name == "port" ? 0 : static_cast<std::size_t>(port - at.role->ports.begin())));
    }));
  }
  return text::join(parts, separator);
}

Lookup cache_on_node(const AtNode& at) {
  const auto& folder = at.names.node().cache;
  if (const auto made = sys::make_private_folder(folder); !made)
    return Unknown{fmt::format("'${{node.cache}}': {}", made.error().first_message())};
  return folder;
}

Lookup port_of_all_in_plan(const AtPlan& at) {
  const auto port = after_dot(after_dot(at.rest));
  const auto ports = port_names(*at.role);
  if (has(ports, port)) return Keep{};
  if (!ports.empty()) return unknown(fmt::format("role.{}", at.rest), port, ports);
  return Unknown{fmt::format("'${{role.{}}}': role '{}' declares no ports", at.rest, at.role->name.value)};
}

Lookup port_of_all_on_node(const AtNode& at) {
  const auto& plan = at.names.plan();
  const auto port = std::ranges::find(at.role->ports, after_dot(after_dot(at.rest)));
  std::vector<std::string> numbers;
  for (const auto& process : plan.processes) {
    if (&plan.role_of(process) == at.role && is_reached(*at.role, process))
      numbers.push_back(
          std::to_string(process.ports.at(static_cast<std::size_t>(port - at.role->ports.begin()))));
  }
  return text::join(numbers, ",");
}

Lookup needs_ports(const AtPlan& at) {
  if (!at.role->ports.empty()) return Keep{};
  return Unknown{fmt::format("'${{role.{}}}': role '{}' declares no ports", at.rest, at.role->name.value)};
}

Lookup gpu_memory_of(const config::Role& role, std::string_view name) {
  if (role.gpu_memory) return fmt::format("{:g}", role.gpu_memory->value);
  return Unknown{fmt::format("'${{{}}}': role '{}' has no gpu_memory", name, role.name.value)};
}

Lookup library_in_plan(const AtPlan& at) {
  const auto& site = at.names.site();
  std::vector<std::string> paths;
  for (const auto& [library, definition] : site.libraries) paths.push_back(library + ".path");
  if (has(paths, at.rest)) return Keep{};
  if (!paths.empty()) return unknown(fmt::format("library.{}", at.rest), at.rest, paths);
  return Unknown{
      fmt::format("'${{library.{}}}': the site '{}' defines no libraries", at.rest, site.name.value)};
}

Lookup library_on_node(const AtNode& at) {
  constexpr std::string_view kPath = ".path";
  const auto& libraries = at.names.node().libraries;
  const auto found = at.rest.ends_with(kPath)
                         ? libraries.find(std::string(at.rest.substr(0, at.rest.size() - kPath.size())))
                         : libraries.end();
  if (found != libraries.end()) return found->second.path;
  return Unknown{fmt::format("'${{library.{}}}' is not known on this node", at.rest)};
}

Lookup variable_in_plan(const AtPlan& at) {
  const std::string name(at.rest);
  if (looks_like_secret(name)) {
    return Unknown{fmt::format(
        "'${{env.{0}}}' would put a secret into the plan: declare it as `secrets: {{{0}: env}}`", name)};
  }
  const auto found = at.names.caller().find(name);
  if (found != at.names.caller().end()) return found->second;
  return Unknown{fmt::format("'${{env.{0}}}' is not set in nlaunch's environment: set it, or give a default "
                             "with ${{env.{0}:-VALUE}}",
                             name),
                 true};
}

Lookup newest_on_node(const AtNode& at) {
  namespace fs = std::filesystem;
  const std::string pattern(at.rest);
  glob_t found{};
  ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::string newest;
  fs::file_time_type newest_time = fs::file_time_type::min();
  for (std::size_t i = 0; i < found.gl_pathc; ++i) {
    std::error_code error;
    const auto time = fs::last_write_time(found.gl_pathv[i], error);
    if (error || time < newest_time) continue;
    newest = found.gl_pathv[i];
    newest_time = time;
  }
  ::globfree(&found);
  if (newest.empty()) return Unknown{fmt::format("nothing matches '{}'", pattern), true};
  return newest;
}

// --- the table ---

/// A name in capitals is a placeholder for any name. Messages use this order.
const std::vector<Row> kRows{
    {"vars", "NAME", var_in_plan},
    {"self", "name", nullptr,
     [](const AtNode& at) -> Lookup { return at.names.plan().name_of(*at.process); }},
    {"self", "rank", needs_rendezvous,
     [](const AtNode& at) -> Lookup { return std::to_string(at.process->rank); }},
    {"self", "world_size", needs_rendezvous,
     [](const AtNode& at) -> Lookup {
       return std::to_string(own_role(at).count * std::max(1U, own_role(at).gpus));
     }},
    {"self", "nnodes", needs_rendezvous,
     [](const AtNode& at) -> Lookup {
       return std::to_string(makes_ranks(own_role(at)) ? own_role(at).count
                                                       : at.names.hosts(own_role(at)).size());
     }},
    {"self", "node_rank", needs_rendezvous,
     [](const AtNode& at) -> Lookup {
       return std::to_string(makes_ranks(own_role(at)) ? at.process->index : at.process->node_rank);
     }},
    {"self", "master_addr", needs_rendezvous,
     [](const AtNode& at) -> Lookup { return at.names.address_of(first_of(at.names.plan(), own_role(at))); }},
    {"self", "master_port", needs_rendezvous,
     [](const AtNode& at) -> Lookup { return std::to_string(own_role(at).rendezvous_port); }},
    {"self", "index", nullptr, [](const AtNode& at) -> Lookup { return std::to_string(at.process->index); }},
    {"self", "local_rank", nullptr,
     [](const AtNode& at) -> Lookup { return std::to_string(at.process->local_rank); }},
    {"self", "host", nullptr, [](const AtNode& at) -> Lookup { return at.names.address_of(*at.process); }},
    {"self", "node", nullptr, [](const AtNode& at) -> Lookup { return std::to_string(at.process->node); }},
    {"self", "gpus",
     [](const AtPlan& at) -> Lookup {
       if (spawns(at.names.experiment(), *at.role)) return Keep{};
       return std::to_string(at.role->gpus.value);
     },
     [](const AtNode& at) -> Lookup {
       return std::to_string(gpus_in_reach(at.names.plan(), *at.process).size());
     }},
    {"self", "gpu_memory", [](const AtPlan& at) { return gpu_memory_of(*at.role, "self.gpu_memory"); }},
    {"self", "ports", ports_in_plan, port_on_node},
    {"self", "replica", replica_in_plan, replica_on_node},
    {"self", "pool", nullptr,
     [](const AtNode& at) -> Lookup {
       const auto* pool = at.names.plan().pool_of(at.process->node);
       return pool == nullptr ? std::string() : pool->name;
     }},
    {"self", "sync_rank", sync_rank_in_plan, sync_rank_on_node},
    {"run", "dir", nullptr, [](const AtNode& at) -> Lookup { return at.names.folders().run.string(); }},
    {"run", "attempt_dir", nullptr,
     [](const AtNode& at) -> Lookup { return at.names.folders().attempt.string(); }},
    {"resume", "path",
     [](const AtPlan& at) -> Lookup {
       if (at.names.experiment().checkpoint) return Keep{};
       return Unknown{"'${resume.path}' needs `checkpoint`, which describes what the learners save"};
     },
     [](const AtNode& at) -> Lookup { return at.names.folders().resume; }},
    {"run", "id", nullptr, [](const AtNode& at) -> Lookup { return at.names.folders().id; }},
    {"run", "name", nullptr, [](const AtNode& at) -> Lookup { return at.names.plan().name; }},
    {"run", "nodes", nullptr,
     [](const AtNode& at) -> Lookup { return std::to_string(at.names.plan().node.count); }},
    {"node", "scratch", nullptr, [](const AtNode& at) -> Lookup { return at.names.node().scratch; }},
    {"node", "cache", nullptr, cache_on_node},
    {"role", "0.host", one_in_plan, one_on_node},
    {"role", "0.ports", one_in_plan, one_on_node},
    {"role", "ports", port_of_all_in_plan, port_of_all_on_node},
    {"role", "list|FORM|SEPARATOR", list_in_plan, list_on_node},
    {"role", "addrs", needs_ports,
     [](const AtNode& at) -> Lookup { return text::join(at.names.addresses(*at.role), ","); }},
    {"role", "addrs_file", needs_ports,
     [](const AtNode& at) -> Lookup { return at.names.addrs_file(at.role->name).string(); }},
    {"role", "hosts", nullptr,
     [](const AtNode& at) -> Lookup { return text::join(at.names.hosts(*at.role), ","); }},
    {"role", "nodes", nullptr,
     [](const AtNode& at) -> Lookup { return std::to_string(at.names.hosts(*at.role).size()); }},
    {"role", "count", nullptr,
     [](const AtNode& at) -> Lookup { return std::to_string(active_replicas(*at.role)); }},
    {"role", "gpus", [](const AtPlan& at) -> Lookup { return std::to_string(at.role->gpus.value); }},
    {"role", "gpu_memory",
     [](const AtPlan& at) { return gpu_memory_of(*at.role, fmt::format("role.{}", at.rest)); }},
    {"role", "env_file", nullptr,
     [](const AtNode& at) -> Lookup { return at.names.env_file(at.role->name).string(); }},
    {"pool", "NAME.nodes", pool_in_plan, pool_on_node},
    {"pool", "NAME.hosts", pool_in_plan, pool_on_node},
    {"pool", "NAME.gpus", pool_in_plan, pool_on_node},
    {"library", "NAME.path", library_in_plan, library_on_node},
    {"site", "name", [](const AtPlan& at) -> Lookup { return at.names.site().name.value; }},
    {"site", "gpus",
     [](const AtPlan& at) -> Lookup {
       const auto& gpus = at.names.site().gpus;
       return gpus ? std::to_string(gpus->value) : std::string();
     }},
    {"site", "gpu", [](const AtPlan& at) { return optional_text(at.names.site().gpu); }},
    {"site", "arch", [](const AtPlan& at) { return optional_text(at.names.site().arch); }},
    {"site", "cpus",
     [](const AtPlan& at) -> Lookup {
       const auto& cpus = at.names.site().cpus;
       return cpus ? std::to_string(*cpus) : std::string();
     }},
    {"site", "interface", [](const AtPlan& at) -> Lookup { return at.names.site().nics.interface; }},
    {"site", "scratch", [](const AtPlan& at) { return optional_text(at.names.site().scratch); }},
    {"env", "NAME", variable_in_plan},
    {"weight_sync", "backend", sync_in_plan},
    {"weight_sync", "host", sync_in_plan,
     [](const AtNode& at) -> Lookup { return at.names.address_of(sync_node(at.names.plan(), sync_of(at))); }},
    {"weight_sync", "port", sync_in_plan,
     [](const AtNode& at) -> Lookup { return std::to_string(sync_of(at).port); }},
    {"weight_sync", "world_size", sync_in_plan,
     [](const AtNode& at) -> Lookup { return std::to_string(sync_of(at).world_size); }},
    {"weight_sync", "path", sync_in_plan,
     [](const AtNode& at) -> Lookup {
       // Those of the node, resolved once.
       const auto& syncs = at.names.plan().weight_syncs;
       const auto& paths = at.names.node().weight_paths;
       const auto index = static_cast<std::size_t>(&sync_of(at) - syncs.data());
       if (index >= paths.size())
         return Unknown{fmt::format("'${{weight_sync.{}}}' is not known here", at.rest)};
       return paths[index];
     }},
    {"newest", "GLOB", nullptr, newest_on_node},
};

bool stands_for_any(const Row& row) {
  return row.name.front() >= 'A' && row.name.front() <= 'Z';
}

std::vector<std::string> families() {
  std::vector<std::string> out;
  for (const auto& row : kRows) {
    if (!has(out, row.family)) out.emplace_back(row.family);
  }
  return out;
}

std::vector<std::string> names_in(std::string_view family) {
  std::vector<std::string> out;
  for (const auto& row : kRows) {
    if (row.family == family) out.emplace_back(row.name);
  }
  return out;
}

const Row* find_row(std::string_view family, std::string_view name) {
  // A process of a role is named by any number.
  if (family == "role" && one_of(name)) name = "0.host";
  if (family == "role" && name.starts_with(kListForm)) name = "list|FORM|SEPARATOR";
  if (family == "role" && name.starts_with(kPortOfAll)) name = "ports";
  if (family == "weight_sync") name = name_and_what(name).second;
  const auto found = std::ranges::find_if(kRows, [&](const Row& row) {
    return row.family == family && (stands_for_any(row) || row.name == name);
  });
  return found == kRows.end() ? nullptr : &*found;
}

/// HOME, SLURM_JOB_ID
bool looks_like_variable(std::string_view name) {
  return std::ranges::all_of(
      name, [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
}

Lookup value_of(const Row& row, const AtPlan& at) {
  return row.in_plan == nullptr ? Lookup(Keep{}) : row.in_plan(at);
}

Lookup self_in_plan(const PlanNames& names, std::string_view rest, const config::Role* role) {
  if (role == nullptr) return Unknown{fmt::format("'${{self.{}}}' is only available in a role", rest)};
  const auto word = rest.substr(0, rest.find('.'));
  const auto* row = find_row("self", word);
  if (row == nullptr) return unknown(fmt::format("self.{}", rest), word, names_in("self"));
  if (!role->whole) return Keep{};
  if (word != rest && row->in_plan != ports_in_plan && row->in_plan != replica_in_plan &&
      row->in_plan != sync_rank_in_plan)
    return unknown(fmt::format("self.{}", rest), rest, names_in("self"));
  return value_of(*row, {names, rest, role});
}

/// Whether its value contains the location of a role's processes.
bool says_where(const Row& row) {
  static const std::vector<std::string> kNames{"0.host", "0.ports", "ports", "list|FORM|SEPARATOR",
                                               "addrs",  "hosts"};
  return row.family == "role" && has(kNames, row.name);
}

Lookup role_in_plan(const PlanNames& names, std::string_view rest) {
  const auto& experiment = names.experiment();
  const auto role = rest.substr(0, rest.find('.'));
  const auto name = fmt::format("role.{}", rest);
  const auto found =
      std::ranges::find_if(experiment.roles, [&](const auto& one) { return one.name.value == role; });
  if (found == experiment.roles.end()) {
    std::vector<std::string> roles;
    for (const auto& one : experiment.roles) roles.push_back(one.name.value);
    return experiment.roles_whole ? Lookup(unknown(name, role, roles)) : Keep{};
  }
  const auto what = after_dot(rest);
  const auto* row = find_row("role", what);
  if (row == nullptr) return unknown(name, what, names_in("role"));
  if (!found->whole) return Keep{};
  auto value = value_of(*row, {names, rest, &*found});
  const auto* pool = config::elastic_pool_of(*found, experiment.pools);
  const bool comes_and_goes = pool != nullptr && says_where(*row) && std::holds_alternative<Keep>(value);
  return comes_and_goes ? Lookup(unknown_yet(name, pool->value)) : value;
}

}  // namespace

Lookup look_up_in_plan(const PlanNames& names, std::string_view name, const config::Role* role) {
  if (name.starts_with("newest:")) return Keep{};
  const auto dot = name.find('.');
  const auto family = name.substr(0, dot);
  if (looks_like_variable(name)) {
    return Unknown{fmt::format(
        "unknown name '${{{0}}}': did you mean '${{env.{0}}}', or '$${{{0}}}' for a shell?", name)};
  }
  if (!has(families(), family)) return unknown(name, family, families());
  if (dot == std::string_view::npos) {
    return Unknown{fmt::format("'${{{}}}' is incomplete: write ${{{}.NAME}}", name, name)};
  }
  const auto rest = name.substr(dot + 1);
  if (family == "self") return self_in_plan(names, rest, role);
  if (family == "role") return role_in_plan(names, rest);
  const auto* row = find_row(family, rest);
  if (row != nullptr) return value_of(*row, {names, rest, role});
  return unknown(name, family == "weight_sync" ? name_and_what(rest).second : rest, names_in(family));
}

Lookup look_up_on_node(const NodeNames& names, std::string_view name, const Process* process) {
  constexpr std::string_view kNewest = "newest:";
  if (name.starts_with(kNewest)) return newest_on_node({names, name.substr(kNewest.size())});
  const auto family = name.substr(0, name.find('.'));
  const auto rest = after_dot(name);
  const auto not_known = Unknown{fmt::format("'${{{}}}' is not known on this node", name)};
  AtNode at{names, rest, process};
  auto what = rest;
  if (family == "self") {
    if (process == nullptr) return not_known;
    what = rest.substr(0, rest.find('.'));
  }
  if (family == "role") {
    const auto role = rest.substr(0, rest.find('.'));
    at.role = names.plan().find_role(role);
    if (at.role == nullptr) return Unknown{fmt::format("unknown role '{}'", role)};
    what = after_dot(rest);
  }
  const auto* row = find_row(family, what);
  return row == nullptr || row->on_node == nullptr ? Lookup(not_known) : row->on_node(at);
}

std::vector<std::string> reference_names() {
  std::vector<std::string> out;
  for (const auto& row : kRows)
    out.push_back(fmt::format("{}{}{}", row.family, row.family == "newest" ? ":" : ".", row.name));
  return out;
}

}  // namespace nlaunch::plan
