#include "plan/build.h"

#include <re2/re2.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/backend.h"
#include "base/scheduler_traits.h"
#include "base/text.h"
#include "config/pools.h"
#include "plan/bench.h"
#include "plan/checkpoint.h"
#include "plan/container.h"
#include "plan/demand.h"
#include "plan/elastic.h"
#include "plan/fixed_ports.h"
#include "plan/groups.h"
#include "plan/metrics.h"
#include "plan/placement.h"
#include "plan/references.h"
#include "plan/role_builder.h"
#include "plan/scheduler_part.h"
#include "plan/together.h"
#include "plan/tolerance.h"
#include "plan/trackers.h"
#include "plan/vllm.h"
#include "plan/watch.h"
#include "plan/weight_sync.h"

namespace nlaunch::plan {
namespace {

namespace fs = std::filesystem;

// Below Linux's ephemeral ports (32768 and up, ip_local_port_range), so that the kernel gives them to no
// other program.
constexpr std::uint32_t kFirstPort = 20000;
constexpr std::uint32_t kPorts = 12000;

/// Returns the same value for a name on every machine, unlike std::hash (FNV-1a).
std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

class Builder {
 public:
  Builder(const config::Experiment& experiment, const config::Site& site, const MachineFacts& facts,
          const PlanOptions& options)
      : experiment_(experiment),
        site_(site),
        facts_(facts),
        options_(options),
        scheduler_(traits_of(site.scheduler)),
        names_(experiment, site, facts.caller) {}

  Result<Plan> run() {
    resolve_texts();
    if (diagnostics_.has_errors()) return std::unexpected(std::move(diagnostics_));
    set_stages();
    check_nodes_and_gpus();
    if (!diagnostics_.has_errors()) place_roles();
    if (!diagnostics_.has_errors()) check_tolerance(experiment_, plan_, diagnostics_);
    if (!diagnostics_.has_errors()) check_standby(experiment_, plan_, diagnostics_);
    if (!diagnostics_.has_errors()) check_together(plan_, experiment_, diagnostics_);
    if (!diagnostics_.has_errors()) check_fixed_ports(experiment_, plan_, diagnostics_);
    for (auto& sync : plan_.weight_syncs) sync.world_size = weight_sync_size(plan_, sync);
    if (!diagnostics_.has_errors()) check_elastic(experiment_, plan_, diagnostics_);
    if (!diagnostics_.has_errors()) check_weight_syncs(experiment_, plan_, diagnostics_);
    check_time_limit();
    if (diagnostics_.has_errors()) return std::unexpected(std::move(diagnostics_));
    ask_for_places(plan_);
    set_ports();
    plan_.groups = make_groups(plan_);
    if (experiment_.bench) plan_.bench = make_bench(*experiment_.bench, plan_, diagnostics_);
    if (diagnostics_.has_errors()) return std::unexpected(std::move(diagnostics_));
    add_warnings();
    return std::move(plan_);
  }

  Diagnostics mistakes_in_names() {
    resolve_texts();
    Diagnostics found;
    for (const auto& item : diagnostics_.items()) {
      if (item.id == "plan.reference" || item.id == "plan.unknown-library") found.add(item);
    }
    return found;
  }

 private:
  void resolve_texts() {
    names_.resolve_vars(diagnostics_);
    plan_.vars = names_.vars();
    set_identity();
    set_node();
    set_pools();
    set_site_values();
    add_roles();
  }

  void add_weight_sync(const config::WeightSync& sync) {
    auto& made = plan_.weight_syncs.emplace_back();
    made.name = sync.name.value;
    made.backend = sync.backend.value;
    for (const auto& name : sync.order) made.order.push_back(name.value);
    if (sync.master) made.master = sync.master->value;
    if (!sync.path) return;
    for (const auto& reference : references(sync.path->value)) {
      if (!reference.name.starts_with("weight_sync.") || !reference.name.ends_with("path")) continue;
      diagnostics_
          .error("plan.reference",
                 part_of(sync.path->span, sync.path->value, reference.offset, reference.length),
                 fmt::format("'path' cannot refer to '${{{}}}'", reference.name))
          .hint = "write the directory, or a var that contains it: ${vars.weights}";
      return;
    }
    made.path = absolute(resolve(*sync.path), workdir_, home());
  }

  void set_watch(const config::Watch& watch) {
    plan_.watch = make_watch(watch);
    if (!watch.progress || plan_.watch->progress != watch.progress->value) return;
    const auto meant = tracker_like(watch.progress->value);
    if (meant.empty()) return;
    plan_.warnings.push_back(
        fmt::format("`watch.progress` is the regular expression '{}': did you mean the tracker '{}'?",
                    watch.progress->value, meant));
  }

  void set_checkpoint(const config::Checkpoint& checkpoint) {
    std::vector<std::string> resume;
    for (const auto& word : checkpoint.resume) resume.push_back(resolve(word));
    const auto& dir = checkpoint.dir;
    plan_.checkpoint = make_checkpoint(checkpoint, dir ? absolute(resolve(*dir), workdir_, home()) : "",
                                       std::move(resume), diagnostics_);
  }

  void set_notify(const config::Notify& notify) {
    auto& out = plan_.notify.emplace();
    out.on = notify.on.empty() ? std::vector{NotifyOn::stall, NotifyOn::end} : notify.on;
    for (const auto& word : notify.exec) out.exec.push_back(resolve(word));
    if (notify.webhook)
      out.webhook = Secret{notify.webhook->name.value, static_cast<Secret::Source>(notify.webhook->source),
                           resolve(notify.webhook->from), notify.webhook->name.span.where()};
  }

  void set_metrics(const config::MetricsExport& metrics) {
    auto& out = plan_.metrics.emplace();
    out.listen = metrics.listen.value_or("");
    if (!metrics.file) return;
    out.file = absolute(resolve(*metrics.file), workdir_, home());
    const auto unknown = unknown_in_metrics_file(out.file);
    if (unknown.empty()) return;
    diagnostics_
        .error("plan.metrics", metrics.file->span, fmt::format("'metrics.file' cannot contain '{}'", unknown))
        .hint = "write a path; ${run.id}, ${run.name} and ${run.dir} are replaced";
  }

  void set_identity() {
    plan_.name = experiment_.name.value;
    plan_.experiment = experiment_.path;
    plan_.sources.push_back(experiment_.path);
    plan_.sources.insert(plan_.sources.end(), experiment_.extends.rbegin(), experiment_.extends.rend());
    plan_.sources.insert(plan_.sources.end(), site_.sources.begin(), site_.sources.end());
    plan_.preflight = {experiment_.preflight_level, experiment_.preflight_strict};
    if (experiment_.watch) set_watch(*experiment_.watch);
    plan_.audit = experiment_.audit;
    plan_.restart = experiment_.restart;
    plan_.signals = experiment_.signals;
    std::vector<std::string> learners;
    for (const auto& role : experiment_.roles) {
      if (role.kind == RoleKind::learner) learners.push_back(role.name.value);
    }
    for (const int signal : {SIGTERM, SIGHUP}) plan_.signals.try_emplace(signal, SignalRule{});
    const SignalRule to_learners{learners.empty() ? SignalRule::Action::ignore : SignalRule::Action::forward,
                                 learners};
    for (const int signal : {SIGUSR1, SIGUSR2}) plan_.signals.try_emplace(signal, to_learners);
    workdir_ = experiment_.workdir
                   ? absolute(resolve(*experiment_.workdir), folder_of(*experiment_.workdir), home())
                   : default_folder();
    if (experiment_.checkpoint) set_checkpoint(*experiment_.checkpoint);
    if (experiment_.notify) set_notify(*experiment_.notify);
    if (experiment_.metrics) set_metrics(*experiment_.metrics);
    if (experiment_.leader_grace) plan_.leader_grace = experiment_.leader_grace->value;
    plan_.weight_syncs.clear();
    for (const auto& sync : experiment_.weight_syncs) add_weight_sync(sync);
    for (const auto& secret : experiment_.secrets) {
      plan_.secrets.push_back({secret.name.value, static_cast<Secret::Source>(secret.source),
                               resolve(secret.from), secret.name.span.where()});
      // The submitter's files are not there: the scheduler passes a secret as a variable.
      if (scheduler_.shares_files) continue;
      plan_.secrets.back().source = Secret::Source::env;
      plan_.secrets.back().from = secret.name.value;
    }
  }

  /// The base of relative paths of the experiment: its own directory, which has another path in a container.
  std::string folder_of_experiment() {
    const auto own = fs::path(experiment_.path).parent_path().string();
    if (scheduler_.shares_files) return own;
    const auto& workdir = experiment_.beaker.workdir ? experiment_.beaker.workdir : site_.beaker.workdir;
    return workdir ? absolute(resolve(*workdir), "/", "") : own;
  }

  /// The default working directory of commands: the directory of the file that the others extend.
  std::string default_folder() {
    if (experiment_.extends.empty() || !scheduler_.shares_files) return folder_of_experiment();
    return fs::path(experiment_.extends.front()).parent_path().string();
  }

  /// The base of a relative path that can come from a base file of the experiment.
  std::string folder_of(const config::Text& path) {
    const auto file = path.span.file ? fs::absolute(path.span.file->name).lexically_normal() : fs::path();
    const bool below = std::ranges::find(experiment_.extends, file.string()) != experiment_.extends.end();
    return below && scheduler_.shares_files ? file.parent_path().string() : folder_of_experiment();
  }

  void set_site_values() {
    plan_.site = site_.name.value;
    plan_.site_path = site_.path;
    plan_.scheduler = site_.scheduler;
    plan_.fan_out = site_.fan_out;
    if (const auto* part = find_part(plan_.scheduler)) {
      const auto port = static_cast<std::uint16_t>(kFirstPort + hash_of(plan_.name) / kPorts % kPorts);
      part->make({experiment_, site_, options_.spares, options_.spares_of, port,
                  [this](const config::Text& text) { return resolve(text); },
                  [this](const std::string& path, const std::string& base) {
                    return absolute(path, base.empty() ? workdir_ : base, home());
                  },
                  diagnostics_},
                 plan_);
    }
    const auto spares = spares_asked();
    if (!scheduler_.spares && !spares.empty()) {
      diagnostics_
          .error("plan.spares", {},
                 fmt::format("--spares {}: site '{}' has no scheduler that could allocate spare nodes",
                             spares, site_.name.value))
          .hint = "remove --spares, or choose another --site (`nlaunch sites` lists them)";
    }
    plan_.walltime = experiment_.walltime;
    if (experiment_.walltime && scheduler_.walltime == WalltimeUse::refused) {
      diagnostics_
          .error("plan.walltime", {}, fmt::format("`walltime` has no effect {}", scheduler_.why_no_walltime))
          .hint = "remove it";
    }
    const auto& modules = site_.modules;
    plan_.modules = {modules.init ? resolve(*modules.init) : "", modules.reset, {}, modules.span.where()};
    for (const auto& folder : modules.use) plan_.modules.use.push_back(resolve(folder));
    for (const auto& module : modules.load) plan_.modules.load.push_back(resolve(module));
    for (const auto& [name, value] : modules.set) plan_.modules.set.emplace_back(name.value, resolve(value));
    for (const auto& file : modules.source) plan_.modules.source.push_back(resolve(file));
    for (const auto& [name, library] : site_.libraries) {
      plan_.libraries[name] = {absolute(library_path(name, library.path), workdir_, home()), library.version,
                               library.path.span.where()};
    }
    for (const auto& row : site_.all_reduce_busbw) {
      plan_.expected.all_reduce_busbw.push_back(
          {row.gpus_per_node, row.nodes, row.size, row.min, row.span.where(), row.limit});
    }
    const auto& topology = site_.topology;
    plan_.topology = {topology.slurm, topology.domain_nodes, topology.switch_nodes, topology.numa,
                      topology.nics};
    for (const auto& bus_id : site_.bus_ids) plan_.expected.bus_ids.push_back(bus_id.value);
    plan_.expected.intra_node = site_.intra_node;
    plan_.expected.inter_node = site_.inter_node;
  }

  /// VIRTUAL_ENV there is the experiment's venv, if it has one: the caller can be in another one.
  std::string library_path(const std::string& library, const config::Text& path) {
    auto caller = facts_.caller;
    if (const auto venv = venv_of_library(library); !venv.empty()) caller["VIRTUAL_ENV"] = venv;
    return names_.with_caller(caller).resolve(path, nullptr, diagnostics_);
  }

  /// The venv of the roles that preload the library, except those in containers, whose venvs are in their
  /// images; for a library that no role preloads, the experiment's. Empty if there is none, or if there are
  /// several.
  std::string venv_of_library(const std::string& library) const {
    std::set<std::string> venvs;
    bool preloaded = false;
    for (const auto& role : experiment_.roles) {
      if (std::ranges::find(role.preload, library, &config::Text::value) == role.preload.end()) continue;
      preloaded = true;
      if (!is_in_container(role))
        venvs.insert(absolute_venv(role.venv ? role.venv : experiment_.venv, &role));
    }
    if (!preloaded) venvs.insert(absolute_venv(experiment_.venv, nullptr));
    return venvs.size() == 1 ? *venvs.begin() : "";
  }

  /// Errors in these strings are reported where the roles are built.
  std::string absolute_venv(const std::optional<config::Text>& venv, const config::Role* role) const {
    Diagnostics ignored;
    return venv ? absolute(names_.resolve(*venv, role, ignored), workdir_, home()) : "";
  }

  bool is_in_container(const config::Role& role) const {
    Diagnostics ignored;
    Words wrapper;
    for (const auto& word : role.wrapper) wrapper.push_back(names_.resolve(word, &role, ignored));
    return is_container(wrapper);
  }

  /// As written: "1", "train=1"; empty for none.
  [[nodiscard]] std::string spares_asked() const {
    if (options_.spares > 0) return std::to_string(options_.spares);
    for (const auto& [pool, number] : options_.spares_of)
      if (number > 0) return fmt::format("{}={}", pool, number);
    return "";
  }

  void check_nodes_and_gpus() {
    check_pool_options("--nodes", options_.nodes ? std::optional(*options_.nodes) : std::nullopt,
                       options_.nodes_of);
    check_pool_options("--spares", options_.spares > 0 ? std::optional(options_.spares) : std::nullopt,
                       options_.spares_of);
    for (const auto& [name, number] : options_.spares_of) {
      const auto* pool = config::find_pool(experiment_.pools, name);
      if (number > 0 && pool != nullptr && pool->elastic)
        diagnostics_
            .error("plan.spares", {},
                   fmt::format("--spares {}={}: the nodes of the elastic pool '{}' are not part of the job",
                               name, number, name))
            .hint = "remove it: nlaunch requests another node when one is taken away";
    }
    check_nodes();
    set_gpus();
  }

  /// Reports options for pools that do not exist, or for all pools if there are several.
  void check_pool_options(const char* option, std::optional<std::uint32_t> all,
                          const std::map<std::string, std::uint32_t>& by_pool) {
    std::vector<std::string> known;
    for (const auto& pool : experiment_.pools) known.push_back(pool.name.value);
    for (const auto& [name, number] : by_pool) {
      if (std::ranges::find(known, name) != known.end()) continue;
      auto& error = diagnostics_.error(
          "plan.unknown-pool", {}, fmt::format("{} {}={}: unknown pool '{}'", option, name, number, name));
      const auto near = text::nearest(name, known);
      error.hint = known.empty() ? fmt::format("the experiment has no pools: write {} {}", option, number)
                   : near        ? fmt::format("did you mean {} {}={}?", option, *near, number)
                                 : fmt::format("available: {}", text::join(known, ", "));
    }
    if (!all || known.size() < 2) return;
    diagnostics_
        .error("plan.pools", {},
               fmt::format("{} {}: the experiment has {} pools, and no pool is named", option, *all,
                           known.size()))
        .hint =
        fmt::format("write {} {}={}; the pools are {}", option, known.front(), *all, text::join(known, ", "));
  }

  /// The experiment's settings for a pool's nodes, over those of the profile for the pool of that name, over
  /// those for all nodes.
  void set_pools() {
    for (const auto& pool : experiment_.pools) {
      const auto* at_site = config::find_pool(site_.pools, pool.name.value);
      Pool made{pool.name.value, 0, plan_.node};
      made.node.gpus = site_gpus();
      if (at_site != nullptr) apply(*at_site, made.node);
      apply(pool, made.node);
      const auto given = options_.nodes_of.find(made.name);
      made.node.count = given != options_.nodes_of.end() ? given->second
                        : experiment_.pools.size() == 1  ? options_.nodes.value_or(pool.nodes.value)
                                                         : pool.nodes.value;
      made.first = plan_.pools.empty() ? 0 : plan_.pools.back().first + plan_.pools.back().node.count;
      if (pool.elastic) made.elastic = Elastic{pool.elastic->min.value};
      plan_.pools.push_back(std::move(made));
    }
    if (plan_.pools.empty()) return;
    plan_.node.count = 0;
    for (const auto& pool : plan_.pools) plan_.node.count += pool.elastic ? 0 : pool.node.count;
  }

  static void apply(const config::Pool& from, Node& node) {
    if (from.gpus) node.gpus = from.gpus->value;
    if (from.cpus) node.cpus = *from.cpus;
    if (from.gpu) node.gpu_model = from.gpu->value;
    if (from.interface) node.interface = from.interface->value;
    if (from.gpus && from.gpus->value == 0) {  // nor the network cards near the GPUs
      node.gpu_model.clear();
      node.nic_kind.clear();
      node.nic_count = 0;
    }
  }

  void check_nodes() {
    const auto& node = plan_.node;
    if (node.count == 0 && plan_.pools.empty())
      diagnostics_.error("plan.no-nodes", experiment_.nodes.span, "a run needs at least one node");
    for (const auto& pool : plan_.pools) {
      if (pool.node.count == 0)
        diagnostics_.error("plan.no-nodes", {}, fmt::format("pool '{}' needs at least one node", pool.name));
    }
    check_pools(experiment_, plan_, diagnostics_);
    if (diagnostics_.has_errors()) return;
    if (scheduler_.this_machine && node.count > 1) {
      const bool from_options = options_.nodes || !options_.nodes_of.empty();
      const auto& pools = experiment_.pools;
      auto& error = diagnostics_.error(
          "plan.one-machine",
          from_options    ? SourceSpan{}
          : pools.empty() ? experiment_.nodes.span
                          : pools.back().nodes.span,
          fmt::format("{} nodes are requested{}, but site '{}' is one machine", node.count,
                      pools.empty() ? "" : fmt::format(" by {}", text::count(pools.size(), "pool")),
                      site_.name.value));
      error.hint = fmt::format("choose {}a site with a scheduler: `nlaunch sites` lists them",
                               pools.empty() ? "--nodes 1, or " : "");
    }
    if (!traits_of(plan_.scheduler).pools) refuse_unlike_pools();
  }

  /// For a scheduler whose nodes are all alike.
  void refuse_unlike_pools() {
    for (std::size_t i = 0; i < plan_.pools.size(); ++i) {
      const auto& pool = experiment_.pools[i];
      const auto* at_site = config::find_pool(site_.pools, pool.name.value);
      const bool by_site = at_site != nullptr && !at_site->directives.empty();
      const bool same_gpus = plan_.pools[i].node.gpus == plan_.pools.front().node.gpus;
      if (pool.directives.empty() && !by_site && same_gpus) continue;
      diagnostics_
          .error("plan.pools", pool.name.span,
                 fmt::format("pool '{}' has its own kind of nodes, but all nodes of a {} job are alike",
                             pool.name.value, scheduler_.title))
          .hint = "remove `gpus` and `slurm` from the pools, or choose another --site";
    }
  }

  [[nodiscard]] std::uint32_t site_gpus() const {
    return site_.gpus ? site_.gpus->value : static_cast<std::uint32_t>(facts_.gpus.size());
  }

  void set_node() {
    auto& node = plan_.node;
    node.count = options_.nodes.value_or(experiment_.nodes.value);
    node.cpus = site_.cpus.value_or(0);
    node.arch = site_.arch ? site_.arch->value : scheduler_.this_machine ? facts_.arch : "";
    node.interface = site_.nics.interface;
    node.nic_kind = site_.nics.kind;
    node.nic_count = site_.nics.count;
    node.scratch = site_.scratch ? resolve(*site_.scratch) : "/tmp";
    node.gpu_model = site_.gpu ? site_.gpu->value : facts_.gpus.empty() ? "" : facts_.gpus.front();
  }

  void set_gpus() {
    auto& node = plan_.node;
    node.gpus = site_gpus();
    if (!plan_.pools.empty()) {
      node.gpus = 0;
      for (const auto& pool : plan_.pools) node.gpus = std::max(node.gpus, pool.node.gpus);
    }
    plan_.backend = backend_of(experiment_, node.gpus > 0);
    const auto needed =
        std::ranges::find_if(experiment_.roles, [](const auto& role) { return role.gpus.value > 0; });
    if (node.gpus > 0 || needed == experiment_.roles.end()) return;
    if (experiment_.cpu_slots && !traits_of(plan_.backend).needs_gpu) {
      set_cpu_slots();
      return;
    }
    auto& error = diagnostics_.error(
        "plan.no-gpu", needed->gpus.span,
        fmt::format("role '{}' requests {}, but {}", needed->name.value,
                    text::count(needed->gpus.value, "GPU"),
                    scheduler_.this_machine
                        ? "none was found on this machine"
                        : fmt::format("site '{}' does not specify how many a node has", site_.name.value)));
    error.hint = scheduler_.this_machine
                     ? "--set weight_sync.backend=gloo --set cpu_slots=true runs on the CPU, with one slot "
                       "for each GPU; --set site.node.gpus=N plans for another machine"
                     : "set node.gpus in the profile, or --set site.node.gpus=N; for nodes without GPUs, "
                       "`cpu_slots: true` with `weight_sync: {backend: gloo}` runs on their CPUs";
  }

  /// A pool that has no GPUs according to the experiment gets no slots either.
  void set_cpu_slots() {
    auto& node = plan_.node;
    const auto demands = demands_of(experiment_);
    node.cpu_slots = true;
    if (plan_.pools.empty()) node.gpus = gpus_on_one_node(demands, 0);
    for (std::size_t i = 0; i < plan_.pools.size(); ++i) {
      auto& pool = plan_.pools[i].node;
      pool.cpu_slots = true;
      if (!experiment_.pools[i].gpus) pool.gpus = gpus_on_one_node(demands, i);
      node.gpus = std::max(node.gpus, pool.gpus);
    }
  }

  void add_roles() {
    RoleBuilder roles(experiment_, site_, names_, options_, {workdir_, home(), plan_.libraries},
                      diagnostics_);
    for (const auto& role : experiment_.roles) plan_.roles.push_back(roles.build(role));
  }

  void set_stages() {
    const auto index_of = [&](const std::string& name) {
      return static_cast<std::uint32_t>(std::ranges::find(plan_.roles, name, &Role::name) -
                                        plan_.roles.begin());
    };
    std::vector<bool> placed(plan_.roles.size(), false);
    for (const auto& stage : experiment_.start) {
      auto& roles = plan_.stages.emplace_back();
      for (const auto& name : stage) {
        roles.push_back(index_of(name.value));
        placed[roles.back()] = true;
      }
    }
    if (plan_.stages.empty()) plan_.stages.emplace_back();
    for (std::uint32_t i = 0; i < plan_.roles.size(); ++i) {
      if (!placed[i] && plan_.roles[i].spawned_by.empty()) plan_.stages.front().push_back(i);
    }
  }

  void place_roles() {
    const auto wanted = demands_of(experiment_);
    std::vector<NodeRange> ranges;
    for (const auto& pool : plan_.pools) ranges.push_back({pool.node.count, pool.node.gpus});
    if (ranges.empty()) ranges.push_back({plan_.node.count, plan_.node.gpus});
    auto placement = place(wanted, ranges);
    for (const auto& misfit : placement.misfits)
      report_misfit(misfit, wanted, experiment_, plan_, diagnostics_);
    check_gpu_memory(wanted, placement, experiment_, diagnostics_);
    for (std::uint32_t i = 0; i < plan_.roles.size(); ++i) add_processes(i, placement.by_demand[i]);
    plan_.idle_gpus = std::move(placement.idle);
  }

  void add_processes(std::uint32_t role, const std::vector<Placed>& placed) {
    auto& of = plan_.roles[role];
    of.count = static_cast<std::uint32_t>(placed.size());
    std::map<std::uint32_t, std::uint32_t> on_node;    // processes so far
    std::map<std::uint32_t, std::uint32_t> node_rank;  // in the order in which nodes first appear
    for (std::size_t i = 0; i < placed.size(); ++i) {
      Process process{role, static_cast<std::uint32_t>(i), -1, placed[i].node, 0, 1, 0, placed[i].gpus, {}};
      process.local_rank = on_node[process.node]++;
      process.node_rank =
          node_rank.try_emplace(process.node, static_cast<std::uint32_t>(node_rank.size())).first->second;
      if (of.rendezvous == Rendezvous::torch) {
        process.rank = static_cast<std::int32_t>(i * std::max<std::uint32_t>(1, of.gpus));
      }
      plan_.processes.push_back(std::move(process));
    }
    for (auto it = plan_.processes.end() - static_cast<std::ptrdiff_t>(placed.size());
         it != plan_.processes.end(); ++it)
      it->local_size = on_node[it->node];
  }

  void set_ports() {
    std::uint32_t next = hash_of(plan_.name) % kPorts;
    const auto take = [&] { return static_cast<std::uint16_t>(kFirstPort + next++ % kPorts); };
    for (auto& sync : plan_.weight_syncs) sync.port = take();
    for (auto& role : plan_.roles) {
      if (role.rendezvous == Rendezvous::torch) role.rendezvous_port = take();
    }
    for (auto& process : plan_.processes) {
      for (std::size_t i = 0; i < plan_.role_of(process).ports.size(); ++i) process.ports.push_back(take());
    }
  }

  /// Slurm would announce the end of such a job at its start.
  void check_time_limit() {
    if (!experiment_.walltime || scheduler_.walltime != WalltimeUse::honoured) return;
    const auto& directives = plan_.slurm.directives;
    const auto time = std::ranges::find(directives, "time", &Directive::name);
    const auto limit = time == directives.end() ? std::nullopt : parse_time_limit(time->value);
    const auto& before = experiment_.walltime->before;
    if (!limit || *limit == std::chrono::seconds::max() || *limit > before) return;
    auto& error = diagnostics_.error(
        "plan.walltime", {},
        fmt::format(
            "the time limit of the job, {} ({}), is not longer than `walltime.before`, {}: the end would "
            "be announced at once",
            time->value, time->origin, format_duration(before)));
    error.hint = fmt::format("write `time: \"{}\"` or more, or a shorter `before` in `walltime`",
                             format_time_limit(std::chrono::duration_cast<std::chrono::seconds>(2 * before)));
  }

  /// Without a shell, "$NAME" reaches the program as it is.
  void warn_of_shell_variables(const config::Role& role) {
    static const RE2 kVariable(R"((?:^|[^$\\])\$([A-Za-z_]\w*))");
    static const RE2 kShell(R"((?:.*/)?(?:ba|z|da|k|fi)?sh|(?:.*/)?(?:ssh|srun|env)|-\w*c)");
    const auto has_shell = [](const config::Text& word) { return RE2::FullMatch(word.value, kShell); };
    if (std::ranges::any_of(role.command, has_shell)) return;
    for (const auto& word : role.command) {
      std::string name;
      if (!RE2::PartialMatch(word.value, kVariable, &name)) continue;
      plan_.warnings.push_back(fmt::format(
          "role '{}' passes '{}' ({}) as it is, since no shell starts its command; write ${{env.{}}}",
          role.name.value, word.value, word.span.where(), name));
    }
  }

  /// A later stage waits only for what has a check.
  void warn_of_unchecked_engines() {
    for (std::size_t stage = 0; stage + 1 < plan_.stages.size(); ++stage) {
      for (const auto index : plan_.stages[stage]) {
        const auto& role = plan_.roles[index];
        if (role.kind != RoleKind::engine || role.ready.given()) continue;
        const bool vllm = runs_vllm(experiment_.roles[index]);
        plan_.warnings.push_back(fmt::format(
            "engine '{}' ({}) has no `ready`: the next stage starts at once, before it answers; write "
            "{} in it",
            role.name, role.origin, vllm ? "`ready: vllm`" : "`ready: {http: URL}`"));
      }
    }
  }

  void add_warnings() {
    auto& warnings = plan_.warnings;
    warn_of_unchecked_engines();
    for (const auto& role : experiment_.roles) warn_of_shell_variables(role);
    if (plan_.node.cpu_slots) {
      warnings.push_back(
          fmt::format("no GPUs found: `gpus` counts CPU slots ({}), over Gloo", plan_.node.gpus));
    } else if (!plan_.idle_gpus.empty()) {
      warnings.push_back(fmt::format("{} of {} {} idle", text::count(plan_.idle_gpus.size(), "GPU"),
                                     all_gpus(), plan_.idle_gpus.size() == 1 ? "stays" : "stay"));
    }
    if (experiment_.walltime && has_times_of_its_own())
      warnings.emplace_back(
          "the pools' `time` limits differ: Slurm announces only the end of the first component's limit, and "
          "the job ends with the first component whose time is over");
    if (plan_.leader_grace > Duration() && !outlives_leader(plan_))
      warnings.push_back(
          fmt::format("`leader_grace` has no effect on site '{}': its scheduler starts no agents, and the "
                      "run ends with nlaunch",
                      plan_.site));
    if (plan_.checkpoint && experiment_.walltime && plan_.checkpoint->wait >= experiment_.walltime->before)
      warnings.push_back(fmt::format(
          "`checkpoint.wait` is {}, but the walltime is announced only {} before: the learners would not be "
          "stopped in time",
          format_duration(plan_.checkpoint->wait), format_duration(experiment_.walltime->before)));
    if (experiment_.walltime && scheduler_.walltime == WalltimeUse::ignored)
      warnings.push_back(fmt::format("`walltime` has no effect {}", scheduler_.why_no_walltime));
  }

  /// Whether the components of the job have different time limits.
  [[nodiscard]] bool has_times_of_its_own() const {
    std::set<std::string> times;
    for (const auto& component : plan_.slurm.components) {
      const auto time = std::ranges::find(component.directives, "time", &Directive::name);
      times.insert(time == component.directives.end() ? "" : time->value);
    }
    return times.size() > 1;
  }

  [[nodiscard]] std::uint64_t all_gpus() const {
    if (plan_.pools.empty()) return std::uint64_t{plan_.node.count} * plan_.node.gpus;
    std::uint64_t all = 0;
    for (const auto& pool : plan_.pools) all += std::uint64_t{pool.node.count} * pool.node.gpus;
    return all;
  }

  [[nodiscard]] std::string home() const {
    const auto found = facts_.caller.find("HOME");
    return found == facts_.caller.end() ? "" : found->second;
  }

  std::string resolve(const config::Text& text) { return names_.resolve(text, nullptr, diagnostics_); }

  const config::Experiment& experiment_;
  const config::Site& site_;
  const MachineFacts& facts_;
  const PlanOptions& options_;
  const SchedulerTraits& scheduler_;
  PlanNames names_;
  Diagnostics diagnostics_;
  Plan plan_;
  std::string workdir_;
};

}  // namespace

Result<Plan> build(const config::Experiment& experiment, const config::Site& site, const MachineFacts& facts,
                   const PlanOptions& options) {
  return Builder(experiment, site, facts, options).run();
}

Diagnostics mistakes_in_names(const config::Experiment& experiment, const config::Site& site,
                              const MachineFacts& facts, const PlanOptions& options) {
  return Builder(experiment, site, facts, options).mistakes_in_names();
}

}  // namespace nlaunch::plan
