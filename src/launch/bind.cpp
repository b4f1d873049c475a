#include "launch/bind.h"

#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "launch/late_names.h"
#include "launch/modules.h"
#include "launch/preload.h"
#include "launch/secrets.h"
#include "sys/files.h"
#include "sys/spawn.h"
#include "sys/topology.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;
using plan::BoundNode;
using plan::BoundProcess;
using plan::EnvOp;

class Binder {
 public:
  explicit Binder(const BindRequest& request)
      : request_(request), plan_(request.plan), caller_(plan::to_environment(request.environment)) {}

  Result<Bound> run() {
    node_.host = request_.machine.host;
    node_.scratch = fmt::format("{}/nlaunch-{}-{}", plan_.node.scratch, ::getuid(), request_.paths.id);
    bind_gpus();
    bind_secrets();
    bind_environment();
    bind_ports();
    if (diagnostics_.has_errors()) return std::unexpected(std::move(diagnostics_));
    const LateNames names(plan_, node_, request_.paths);
    bind_libraries(names);
    if (diagnostics_.has_errors()) return std::unexpected(std::move(diagnostics_));
    make_folders();
    for (std::uint32_t i = 0; i < plan_.processes.size(); ++i) {
      if (plan_.processes[i].node == request_.node) bind_process(i, names);
    }
    write_role_files(names);
    if (diagnostics_.has_errors()) return std::unexpected(std::move(diagnostics_));
    return Bound{std::move(node_), std::move(taken_ports_)};
  }

 private:
  void bind_gpus() {
    if (plan_.node.cpu_slots || plan_.node.gpus == 0) return;
    const auto given = caller_.find("CUDA_VISIBLE_DEVICES");
    auto gpus = visible_gpus(request_.machine, given == caller_.end() ? nullptr : &given->second);
    if (!gpus) {
      diagnostics_.append(gpus.error());
    } else if (gpus->size() < plan_.node.gpus) {
      diagnostics_.error(
          "launch.too-few-gpus", {},
          fmt::format("the plan uses {} of a node, and this one shows {}{}",
                      text::count(plan_.node.gpus, "GPU"), gpus->size(),
                      request_.machine.nvml_error.empty() ? "" : ": " + request_.machine.nvml_error));
    } else {
      gpus->resize(plan_.node.gpus);
      node_.gpus = std::move(*gpus);
    }
  }

  void bind_secrets() {
    auto values = read_secrets(plan_.secrets, caller_);
    if (!values) return diagnostics_.append(values.error());
    for (auto& [name, value] : *values) {
      node_.secret_names.push_back(name);
      node_.masker.add(value);
      secrets_.push_back({EnvOp::Kind::set, name, value, plan::Layer::experiment, "secrets", {}});
    }
  }

  void bind_environment() {
    auto inherited = plan::inherit(request_.environment);
    node_.dropped = std::move(inherited.dropped);
    base_ = std::move(inherited.kept);
    auto modules = load_modules(plan_.modules, base_);
    if (!modules) return diagnostics_.append(modules.error());
    modules_ = std::move(*modules);
  }

  void bind_ports() {
    const auto take = [&](std::uint16_t wish) {
      const auto port = taken_ports_.take(wish);
      if (!port) diagnostics_.error("launch.ports", {}, "no TCP port is free between 20000 and 31999");
      return port.value_or(wish);
    };
    plan_.weight_sync.port = take(plan_.weight_sync.port);
    for (auto& role : plan_.roles) {
      if (role.rendezvous == Rendezvous::torch) role.rendezvous_port = take(role.rendezvous_port);
    }
    for (auto& process : plan_.processes) {
      for (auto& port : process.ports) port = take(port);
    }
  }

  void bind_libraries(const LateNames& names) {
    std::set<std::string> used;
    for (const auto& role : plan_.roles) used.insert(role.preload.begin(), role.preload.end());
    for (const auto& [name, library] : plan_.libraries) {
      auto resolved = library;
      resolved.path = names.resolve(library.path, nullptr, diagnostics_);
      auto bound = bind_library(name, resolved, request_.install.probe);
      if (bound) {
        node_.libraries[name] = std::move(*bound);
      } else if (used.contains(name)) {
        diagnostics_.append(bound.error());
      } else {
        node_.notes.push_back(bound.error().items().front().message);
      }
    }
  }

  void make_folders() {
    for (const auto& folder : {fs::path(node_.scratch), request_.paths.attempt / "env",
                               request_.paths.attempt / "addrs", request_.paths.attempt / "preload"}) {
      if (const auto made = sys::make_private_folder(folder); !made) diagnostics_.append(made.error());
    }
  }

  [[nodiscard]] plan::ConditionFacts facts_for(const plan::Role& role) const {
    plan::ConditionFacts facts{plan_.node.count, plan_.node.gpu_model, request_.machine.arch, role.kind, {}};
    for (const auto& [name, library] : node_.libraries) {
      if (!library.version.empty()) facts.library_versions[name] = library.version;
    }
    return facts;
  }

  void bind_process(std::uint32_t index, const LateNames& names) {
    const auto& process = plan_.processes[index];
    const auto& role = plan_.role_of(process);
    BoundProcess bound;
    bound.process = index;
    bound.name = plan_.name_of(process);
    bound.ports = process.ports;
    for (const auto& word : role.command) bound.argv.push_back(names.resolve(word, &process, diagnostics_));
    bound.workdir = names.resolve(role.workdir, &process, diagnostics_);
    bound.ready = role.ready;
    for (auto* text : {&bound.ready.http, &bound.ready.tcp, &bound.ready.file}) {
      *text = names.resolve(*text, &process, diagnostics_);
    }
    for (const auto& library : role.preload) bound.preload.push_back(node_.libraries.at(library).path);
    const auto environment = environment_of(process, role, bound, names);
    bound.env.assign(environment.begin(), environment.end());
    bound.cpus = cpus_of(process);
    check_program(role, bound, environment);
    node_.processes.push_back(std::move(bound));
  }

  plan::Environment environment_of(const plan::Process& process, const plan::Role& role,
                                   const BoundProcess& bound, const LateNames& names) {
    auto operations = modules_;
    operations.insert(operations.end(), secrets_.begin(), secrets_.end());
    for (auto op : role.env) {
      if (op.masked) {
        diagnostics_
            .error("launch.masked", {},
                   fmt::format("the plan keeps no value for {} ({}), which looks like a secret", op.name,
                               op.origin))
            .hint = "declare it under `secrets:`, or give it with --env";
      }
      op.value = names.resolve(op.value, &process, diagnostics_);
      operations.push_back(std::move(op));
    }
    const auto own = own_operations(plan_, process, node_, request_.paths, std::string(kLoopback));
    operations.insert(operations.end(), own.begin(), own.end());
    operations.push_back({EnvOp::Kind::fallback,
                          "OMP_NUM_THREADS",
                          std::to_string(threads_each()),
                          plan::Layer::nlaunch,
                          "nlaunch's default",
                          {}});
    const auto preload = preload_value(
        {bound.preload, role.scope, request_.install.scope_library, request_.paths.attempt / "preload"});
    if (!preload) {
      diagnostics_.append(preload.error());
    } else if (!preload->empty()) {
      operations.push_back({EnvOp::Kind::set, "LD_PRELOAD", *preload, plan::Layer::nlaunch, "preload", {}});
    }
    return plan::apply(base_, operations, facts_for(role));
  }

  /// CPUs are shared by the node's processes; PyTorch's own default is all of them for each.
  [[nodiscard]] std::size_t threads_each() const {
    const auto here = std::ranges::count(plan_.processes, request_.node, &plan::Process::node);
    return std::max<std::size_t>(
        1, sys::allowed_cpus().size() / static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, here)));
  }

  std::vector<unsigned> cpus_of(const plan::Process& process) {
    std::vector<std::string> bus_ids;
    if (node_.gpus.empty()) return {};
    for (const auto gpu : plan::gpus_in_reach(plan_, process)) bus_ids.push_back(node_.gpus.at(gpu).bus_id);
    return topology_.cpus_near(bus_ids);
  }

  /// A program that is not there is said before anything starts, not by the first process that fails.
  void check_program(const plan::Role& role, const BoundProcess& bound,
                     const plan::Environment& environment) {
    if (bound.argv.empty()) return;
    std::error_code error;
    if (!fs::is_directory(bound.workdir, error)) {
      diagnostics_.error(
          "launch.workdir", {},
          fmt::format("{}: the working folder '{}' does not exist", bound.name, bound.workdir));
      return;
    }
    const auto path = environment.find("PATH");
    const auto found =
        sys::find_program(bound.argv[0], path == environment.end() ? "" : path->second, bound.workdir);
    if (found) return;
    auto& problem = diagnostics_.error(
        "launch.program", {}, fmt::format("{}: {}", bound.name, found.error().items().front().message));
    if (!role.venv.empty() && !fs::exists(role.venv, error)) {
      problem.hint = fmt::format("the venv '{}' does not exist", role.venv);
    }
  }

  void write_role_files(const LateNames& names) {
    for (const auto& role : plan_.roles) {
      write(names.addrs_file(role.name), fmt::format("{}\n", fmt::join(names.addresses(role), "\n")));
      if (role.spawned_by.empty()) continue;
      const auto first = std::ranges::find_if(node_.processes, [&](const BoundProcess& bound) {
        return &plan_.role_of(plan_.processes[bound.process]) == &role;
      });
      if (first == node_.processes.end()) continue;
      nlohmann::ordered_json env = nlohmann::ordered_json::object();
      for (const auto& [name, value] : first->env) {
        const bool secret = std::ranges::find(node_.secret_names, name) != node_.secret_names.end();
        // The service gives each process its own GPUs.
        if (!secret && name != "CUDA_VISIBLE_DEVICES") env[name] = value;
      }
      write(names.env_file(role.name), env.dump(2) + "\n");
    }
  }

  void write(const fs::path& path, const std::string& content) {
    if (const auto wrote = sys::write_file_atomically(path, content); !wrote)
      diagnostics_.append(wrote.error());
  }

  const BindRequest& request_;
  plan::Plan plan_;  // with the ports that are free here
  plan::Environment caller_;
  plan::Environment base_;
  std::vector<EnvOp> modules_;
  std::vector<EnvOp> secrets_;
  Ports taken_ports_;
  sys::Topology topology_;
  Diagnostics diagnostics_;
  BoundNode node_;
};

}  // namespace

Result<Bound> bind(const BindRequest& request) {
  return Binder(request).run();
}

Result<plan::BoundLibrary> bind_library(const std::string& name, const plan::Library& library,
                                        const std::string& probe) {
  glob_t found{};
  ::glob(library.path.c_str(), 0, nullptr, &found);
  const std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (files.size() != 1) {
    return failure("launch.library", "library '{}' ({}): {} fits '{}'{}", name, library.origin,
                   files.empty() ? "no file" : "more than one file", library.path,
                   files.empty() ? "" : ": " + text::join(files, ", "));
  }
  return plan::BoundLibrary{files.front(), library_version(probe, files.front())};
}

}  // namespace nlaunch::launch
