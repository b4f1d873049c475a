#include "plan/role_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "config/role.h"
#include "plan/container.h"
#include "plan/metrics.h"
#include "sys/net_check.h"

namespace nlaunch::plan {

namespace fs = std::filesystem;

namespace {

/// What is wrong with an address as far as it is known: values that only a node knows are replaced by valid
/// ones.
template <class Parse>
void check_address(const char* id, const config::Text& written, const std::string& text, Parse parse,
                   Diagnostics& diagnostics) {
  const auto stand_in = [](std::string_view name) -> Lookup {
    return std::string(name.ends_with(".addrs") ? "host:1" : "1");
  };
  const auto parsed = parse(expand(text, stand_in, Pass::last).value_or(text));
  if (parsed) return;
  // "'http://1:1x/' is not ...": quote what was written instead.
  const auto& error = parsed.error();
  diagnostics.error(id, written.span, fmt::format("'{}' {}", text, error.substr(error.rfind("' ") + 2)));
}

/// A server is ready when it has loaded its model and compiled its kernels.
constexpr Duration kTimeoutOfServer = std::chrono::minutes(20);

/// vLLM listens only when its engine exists. SGLang listens earlier; /health_generate responds when it has
/// generated a token, and not every version's /health waits for that.
std::string_view health_path(ReadyServer server) {
  return server == ReadyServer::vllm ? "/health" : "/health_generate";
}

}  // namespace

std::string absolute(const std::string& path, const std::string& base, const std::string& home) {
  if (!home.empty() && (path == "~" || path.starts_with("~/"))) return home + path.substr(1);
  // Directories that only a node knows, both full paths.
  if (path.starts_with("${run.dir}") || path.starts_with("${node.scratch}")) return path;
  auto joined = (fs::path(base) / path).lexically_normal().string();
  if (joined.size() > 1 && joined.ends_with('/')) joined.pop_back();
  return joined;
}

RoleBuilder::RoleBuilder(const config::Experiment& experiment, const config::Site& site, PlanNames& names,
                         const PlanOptions& options, RolePlacement place, Diagnostics& diagnostics)
    : experiment_(experiment),
      site_(site),
      names_(names),
      placement_(std::move(place)),
      diagnostics_(diagnostics),
      env_(experiment, site, names, options, diagnostics) {}

Role RoleBuilder::build(const config::Role& role) {
  Role made;
  static_cast<RoleSettings&>(made) = role;
  made.name = role.name.value;
  made.origin = role.name.span.where();
  const bool launched = role.launcher && !role.command.empty();  // a role with an error can have no command
  if (launched) add_launcher(made, role);
  const std::size_t first =
      launched && config::is_python(role.command.front().value) ? 1 : 0;  // the launcher starts Python itself
  for (std::size_t i = first; i < role.command.size(); ++i)
    made.command.push_back(names_.resolve(role.command[i], &role, diagnostics_));
  if (!role.command.empty()) made.command_origin = role.command.front().span.where();
  if (!role.wrapper.empty()) add_wrapper(made, role);
  made.workdir = role.workdir ? absolute(names_.resolve(*role.workdir, &role, diagnostics_),
                                         placement_.workdir, placement_.home)
                              : placement_.workdir;
  if (const auto& asked = role.workdir ? role.workdir : experiment_.workdir)
    made.workdir_origin = asked->span.where();
  const auto& venv = role.venv ? role.venv : experiment_.venv;
  if (venv)
    made.venv = absolute(names_.resolve(*venv, &role, diagnostics_), placement_.workdir, placement_.home);
  made.gpus = role.gpus.value;
  if (role.replica) made.replica = {role.replica->nodes.value, role.replica->per_node.value};
  if (const auto& keep = role.keep_together) {
    made.keep_together = {keep->within.value, std::nullopt, keep->span.where()};
    if (keep->nodes) made.keep_together->nodes = keep->nodes->value;
  }
  for (const auto& pool : role.pools) made.pools.push_back(pool.value);
  for (const auto& partner : role.share_gpus_with) made.share_gpus_with.push_back(partner.value);
  if (role.gpu_memory) made.gpu_memory = role.gpu_memory->value;
  for (const auto& port : role.ports) made.ports.push_back(port.value);
  made.metrics = metrics_port(role);
  for (const auto& library : role.preload) add_preload(made, library);
  made.scope = role.scope.value_or(role.kind == RoleKind::learner && !role.launcher ? PreloadScope::process
                                                                                    : PreloadScope::tree);
  made.env = env_.operations(role, made.venv, diagnostics_);
  if (role.ready) made.ready = make_ready(*role.ready, role);
  if (role.alive) made.alive = make_alive(*role.alive, role);
  if (role.throughput) made.throughput = make_throughput(*role.throughput, role);
  if (role.fresh) made.fresh = make_fresh(*role.fresh, role);
  if (role.on_change) made.on_change = make_on_change(*role.on_change, role);
  if (role.kind == RoleKind::learner && experiment_.watch && experiment_.watch->heartbeat) {
    made.heartbeat = names_.resolve(*experiment_.watch->heartbeat, &role, diagnostics_);
  }
  made.ends_run = role.ends_run.value_or(role.kind == RoleKind::learner);
  for (const auto& spawner : role.spawned_by) made.spawned_by.push_back(spawner.value);
  if (role.classify) made.classify = names_.resolve(*role.classify, &role, diagnostics_);
  return made;
}

/// Each process is a node for its launcher, which starts a rank for each of its GPUs.
void RoleBuilder::add_launcher(Role& made, const config::Role& role) {
  const auto gpus = std::max(1U, role.gpus.value);
  const auto self = fmt::format("role.{}", role.name.value);
  const bool torchrun = role.launcher->value == Launcher::torchrun;
  std::vector<std::string> words;
  if (const auto& python = role.command.front().value; config::is_python(python) && python.contains('/'))
    words = {names_.resolve(role.command.front(), &role, diagnostics_), "-m",
             torchrun ? "torch.distributed.run" : "accelerate.commands.launch"};
  else if (torchrun)
    words = {"torchrun"};
  else
    words = {"accelerate", "launch"};
  std::vector<std::string> options;
  if (torchrun) {
    options = {fmt::format("--nnodes=${{{}.count}}", self), "--node_rank=${self.index}",
               fmt::format("--nproc_per_node={}", gpus), "--master_addr=${self.master_addr}",
               "--master_port=${self.master_port}"};
  } else {
    options = {fmt::format("--num_machines=${{{}.count}}", self),
               "--machine_rank=${self.index}",
               "--num_processes=${self.world_size}",
               "--main_process_ip=${self.master_addr}",
               "--main_process_port=${self.master_port}",
               "--rdzv_backend=static"};
  }
  made.launcher = role.launcher->value;
  made.command = std::move(words);
  made.command.insert(made.command.end(), options.begin(), options.end());
  for (const auto& option : role.launcher_options)
    made.command.push_back(names_.resolve(option, &role, diagnostics_));
}

void RoleBuilder::add_wrapper(Role& made, const config::Role& role) {
  for (const auto& word : role.wrapper) made.wrapper.push_back(names_.resolve(word, &role, diagnostics_));
  made.wrapper_origin = role.wrapper.front().span.where();
  auto problem = problem_with(made.wrapper);
  if (problem.message.empty()) return;
  diagnostics_.error("plan.wrapper", role.wrapper.front().span, std::move(problem.message)).hint =
      std::move(problem.hint);
}

void RoleBuilder::add_preload(Role& role, const config::Text& library) {
  if (placement_.libraries.contains(library.value)) {
    role.preload.push_back(library.value);
    return;
  }
  auto& error =
      diagnostics_.error("plan.unknown-library", library.span,
                         fmt::format("site '{}' defines no library '{}'", site_.name.value, library.value));
  std::vector<std::string> known;
  for (const auto& [name, definition] : placement_.libraries) known.push_back(name);
  error.hint = known.empty()
                   ? "choose a profile that has it with --site (`nlaunch sites` lists them), or add it under "
                     "`libraries:` of this one"
                   : fmt::format("it defines {}; --site selects another profile", text::join(known, ", "));
}

Ready RoleBuilder::make_ready(const config::Ready& ready, const config::Role& role) {
  const auto text = [&](const std::optional<config::Text>& value) {
    return value ? names_.resolve(*value, &role, diagnostics_) : std::string();
  };
  Ready made{text(ready.http),
             text(ready.tcp),
             ready.log ? ready.log->value : "",
             text(ready.file),
             {},
             ready.delay,
             ready.exited,
             {}};
  for (const auto& word : ready.exec) made.exec.push_back(names_.resolve(word, &role, diagnostics_));
  if (ready.server) {
    made.http = fmt::format("http://${{self.host}}:${{self.ports.http}}{}", health_path(ready.server->value));
    check_http_port(*ready.server, role);
  }
  if (ready.http) check_address("plan.ready", *ready.http, made.http, sys::parse_http_url, diagnostics_);
  if (ready.tcp) check_address("plan.ready", *ready.tcp, made.tcp, sys::parse_endpoint, diagnostics_);
  made.timeout = ready.timeout  ? ready.timeout->value
                 : ready.server ? kTimeoutOfServer
                 : ready.exited ? Duration{}
                                : Ready{}.timeout;
  if (ready.server) made.server = ready.server->value;
  made.origin = ready.span.where();
  if (ready.timeout) made.timeout_origin = ready.timeout->span.where();
  return made;
}

Alive RoleBuilder::make_alive(const config::Alive& alive, const config::Role& role) {
  Alive made;
  if (alive.http) {
    made.http = names_.resolve(*alive.http, &role, diagnostics_);
    check_address("plan.alive", *alive.http, made.http, sys::parse_http_url, diagnostics_);
  }
  if (alive.tcp) {
    made.tcp = names_.resolve(*alive.tcp, &role, diagnostics_);
    check_address("plan.alive", *alive.tcp, made.tcp, sys::parse_endpoint, diagnostics_);
  }
  for (const auto& word : alive.exec) made.exec.push_back(names_.resolve(word, &role, diagnostics_));
  made.every = alive.every.value_or(made.every);
  made.timeout = alive.timeout.value_or(made.timeout);
  made.failures = alive.failures.value_or(made.failures);
  made.after = alive.after.value_or(made.after);
  return made;
}

/// Metric names of vLLM (docs.vllm.ai, usage/metrics) and SGLang (docs.sglang.io,
/// references/production_metrics; needs --enable-metrics).
Throughput RoleBuilder::make_throughput(const config::Throughput& throughput, const config::Role& role) {
  Throughput made;
  if (throughput.server) {
    const bool vllm = throughput.server->value == ReadyServer::vllm;
    made.metrics = "http://${self.host}:${self.ports.http}/metrics";
    made.counter = vllm ? "vllm:generation_tokens_total" : "sglang:generation_tokens_total";
    made.busy = vllm ? "vllm:num_requests_running" : "sglang:num_running_reqs";
    check_http_port(*throughput.server, role);
  }
  if (throughput.metrics) {
    made.metrics = names_.resolve(*throughput.metrics, &role, diagnostics_);
    check_address("plan.throughput", *throughput.metrics, made.metrics, sys::parse_http_url, diagnostics_);
  }
  if (throughput.counter) made.counter = throughput.counter->value;
  if (throughput.busy) made.busy = throughput.busy->value;
  made.every = throughput.every.value_or(made.every);
  made.within = throughput.within.value_or(made.within);
  return made;
}

Fresh RoleBuilder::make_fresh(const config::Fresh& fresh, const config::Role& role) {
  Fresh made;
  if (fresh.http) {
    made.http = names_.resolve(*fresh.http, &role, diagnostics_);
    check_address("plan.fresh", *fresh.http, made.http, sys::parse_http_url, diagnostics_);
  }
  if (fresh.log) made.log = fresh.log->value;
  return made;
}

OnChange RoleBuilder::make_on_change(const config::OnChange& change, const config::Role& role) {
  OnChange made;
  made.signal = change.signal;
  for (const auto& of : change.of) {
    const auto named =
        std::ranges::find_if(experiment_.roles, [&](const auto& one) { return one.name.value == of.value; });
    const auto refuse = [&](std::string message, std::string hint) {
      diagnostics_.error("plan.on-change", of.span, std::move(message)).hint = std::move(hint);
    };
    if (named == experiment_.roles.end())
      refuse(fmt::format("unknown role '{}'", of.value), "name a role whose addresses change");
    else if (named->name.value == role.name.value)
      refuse(fmt::format("role '{}' cannot be notified of its own changes", of.value), "name another role");
    else if (named->whole && named->ports.empty())
      refuse(fmt::format("role '{}' has no ports, so it has no address that could change", of.value),
             "write ports: [http] in that role");
    else
      made.of.push_back(of.value);
  }
  if (change.post) {
    made.post = names_.resolve(*change.post, &role, diagnostics_);
    check_address("plan.on-change", *change.post, made.post, sys::parse_http_url, diagnostics_);
  }
  for (const auto& word : change.exec) made.exec.push_back(names_.resolve(word, &role, diagnostics_));
  return made;
}

void RoleBuilder::check_http_port(const Located<ReadyServer>& server, const config::Role& role) {
  const auto is_http = [](const config::Text& port) { return port.value == "http"; };
  if (!role.whole || std::ranges::any_of(role.ports, is_http)) return;
  const auto name = name_of(server.value);
  diagnostics_
      .error(
          "plan.ready", server.span,
          fmt::format("{} is checked on port 'http', which role '{}' does not have", name, role.name.value))
      .hint = R"(add `ports: [http]`, and `--port, "${self.ports.http}"` to the command)";
}

}  // namespace nlaunch::plan
