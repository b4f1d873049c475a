#include "launch/bind/bind.h"

#include <fmt/ranges.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/secrets.h"
#include "base/text.h"
#include "launch/bind/modules.h"
#include "launch/bind/preload.h"
#include "launch/bind/secrets.h"
#include "launch/bind/venv.h"
#include "launch/bind/wrap.h"
#include "plan/container.h"
#include "plan/references.h"
#include "plan/vllm.h"
#include "preflight/ask/role_library.h"
#include "sys/files.h"
#include "sys/nics.h"
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
  Binder(const BindRequest& request, const NodeAddresses& directory)
      : request_(request),
        plan_(request.plan),
        directory_(directory),
        caller_(plan::to_environment(request.environment)) {}

  Result<BoundNode> run() {
    node_.host = directory_.at(request_.node).host;
    node_.index = request_.node;
    node_.scratch = scratch_of(plan_, request_.node, request_.paths.id);
    node_.cache = cache_of(plan_);
    bind_gpus();
    bind_secrets();
    bind_environment();
    diagnostics_.append(missing_venvs(plan_, request_.node));
    if (diagnostics_.has_errors()) return std::unexpected(std::move(diagnostics_));
    const plan::NodeNames names(
        plan_, node_, addresses_of(directory_),
        {request_.paths.id, request_.paths.folder, request_.paths.attempt, request_.paths.resume});
    bind_libraries(names);
    if (diagnostics_.has_errors()) return std::unexpected(std::move(diagnostics_));
    make_folders();
    for (const auto& sync : plan_.weight_syncs)
      node_.weight_paths.push_back(names.resolve(sync.path, nullptr, diagnostics_));
    const auto learner = std::ranges::find_if(plan_.processes, [&](const plan::Process& process) {
      return plan_.role_of(process).kind == RoleKind::learner;
    });
    if (learner != plan_.processes.end()) node_.nixl_host = address_of(directory_, *learner);
    for (std::uint32_t i = 0; i < plan_.processes.size(); ++i) {
      if (plan_.processes[i].node == request_.node) bind_process(i, names);
    }
    write_role_files(names);
    if (diagnostics_.has_errors()) return std::unexpected(std::move(diagnostics_));
    return std::move(node_);
  }

 private:
  void bind_gpus() {
    if (plan_.node.cpu_slots || used_gpus() == 0) return;
    const auto given = caller_.find("CUDA_VISIBLE_DEVICES");
    auto gpus = visible_gpus(request_.machine, given == caller_.end() ? nullptr : &given->second);
    if (!gpus) {
      diagnostics_.append(gpus.error());
    } else if (gpus->size() < used_gpus()) {
      diagnostics_.error(
          "launch.too-few-gpus", {},
          fmt::format("the plan uses {} per node, but this node shows {}{}", text::count(used_gpus(), "GPU"),
                      gpus->size(),
                      request_.machine.nvml_error.empty() ? "" : ": " + request_.machine.nvml_error));
    } else {
      gpus->resize(std::min<std::size_t>(gpus->size(), plan_.node_of(request_.node).gpus));
      node_.gpus = std::move(*gpus);
      place_gpus();
    }
  }

  /// The devices near each GPU.
  void place_gpus() {
    const auto nics = sys::find_nics("/sys", "/dev");
    std::vector<std::string> bus_ids;
    for (const auto& nic : nics) bus_ids.push_back(nic.bus_id);
    for (auto& gpu : node_.gpus) {
      gpu.numa = topology_.numa_of(gpu.bus_id);
      for (const auto i : topology_.nearest(gpu.bus_id, bus_ids)) gpu.nics.push_back(nics[i].name);
    }
  }

  /// Up to the last GPU that a process here uses.
  [[nodiscard]] std::size_t used_gpus() const {
    std::size_t used = 0;
    for (const auto& process : plan_.processes) {
      if (process.node != request_.node) continue;
      for (const auto gpu : process.gpus) used = std::max<std::size_t>(used, gpu + 1U);
    }
    return used;
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

  void bind_libraries(const plan::NodeNames& names) {
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
        node_.notes.push_back(bound.error().first_message());
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
    plan::ConditionFacts facts{
        plan_.all_nodes(), plan_.node_of(request_.node).gpu_model, request_.machine.arch, role.kind, {}};
    for (const auto& [name, library] : node_.libraries) {
      if (!library.version.empty()) facts.library_versions[name] = library.version;
    }
    return facts;
  }

  void bind_process(std::uint32_t index, const plan::NodeNames& names) {
    const auto& process = plan_.processes[index];
    const auto& role = plan_.role_of(process);
    BoundProcess bound;
    bound.process = index;
    bound.name = plan_.name_of(process);
    bound.ports = process.ports;
    for (const auto& word : role.command) bound.argv.push_back(names.resolve(word, &process, diagnostics_));
    if (plan_.checkpoint && role.kind == RoleKind::learner && !request_.paths.resume.empty()) {
      for (const auto& word : plan_.checkpoint->resume)
        bound.argv.push_back(names.resolve(word, &process, diagnostics_));
    }
    bound.workdir = names.resolve(role.workdir, &process, diagnostics_);
    bound.ready = role.ready;
    for (auto* text : {&bound.ready.http, &bound.ready.tcp, &bound.ready.file}) {
      *text = names.resolve(*text, &process, diagnostics_);
    }
    if (role.alive) {
      bound.alive = role.alive;
      for (auto* text : {&bound.alive->http, &bound.alive->tcp})
        *text = names.resolve(*text, &process, diagnostics_);
      for (auto& word : bound.alive->exec) word = names.resolve(word, &process, diagnostics_);
    }
    if (role.throughput) {
      bound.throughput = role.throughput;
      bound.throughput->metrics = names.resolve(bound.throughput->metrics, &process, diagnostics_);
    }
    if (role.fresh) {
      bound.fresh = role.fresh;
      bound.fresh->http = names.resolve(bound.fresh->http, &process, diagnostics_);
    }
    if (role.on_change) {
      bound.on_change = role.on_change;
      bound.on_change->post = names.resolve(bound.on_change->post, &process, diagnostics_);
      for (auto& word : bound.on_change->exec) word = names.resolve(word, &process, diagnostics_);
    }
    bound.heartbeat = names.resolve(role.heartbeat, &process, diagnostics_);
    for (auto& word : bound.ready.exec) word = names.resolve(word, &process, diagnostics_);
    for (const auto& library : role.preload) bound.preload.push_back(node_.libraries.at(library).path);
    const auto environment = environment_of(process, role, bound, names);
    bound.env.assign(environment.begin(), environment.end());
    if (const auto file = environment.find(kErrorFile);
        file != environment.end() && file->second == error_file_of(node_, bound.name))
      bound.error_file = file->second;
    bind_wrapper(process, role, bound, names);
    bound.cpus = cpus_of(process);
    bound.python = python_of(bound);
    check_program(role, bound, environment);
    node_.processes.push_back(std::move(bound));
  }

  static plan::BoundPython python_of(const BoundProcess& bound) {
    if (plan::is_container(bound.wrapper)) return {};
    const auto python = preflight::python_of(bound);
    return {python.path, version_of_python(python.path), python.named};
  }

  void bind_wrapper(const plan::Process& process, const plan::Role& role, BoundProcess& bound,
                    const plan::NodeNames& names) {
    plan::Words words;
    for (const auto& word : role.wrapper) words.push_back(names.resolve(word, &process, diagnostics_));
    if (auto wrapper =
            wrap(words, bound, role.venv, {node_.scratch, node_.cache}, request_.paths, request_.install)) {
      bound.wrapper = std::move(*wrapper);
    } else {
      complain(role, "launch.mount", wrapper.error().first_message());
    }
  }

  plan::Environment environment_of(const plan::Process& process, const plan::Role& role, BoundProcess& bound,
                                   const plan::NodeNames& names) {
    auto operations = secrets_;
    for (auto op : role.env) {
      if (op.masked) {
        diagnostics_
            .error("launch.masked", {},
                   fmt::format("the plan keeps no value for {} ({}), which looks like a secret", op.name,
                               op.origin))
            .hint = "declare it under `secrets:`, or pass it with --env";
      }
      op.value = names.resolve(op.value, &process, diagnostics_);
      if (op.layer == plan::Layer::nlaunch && op.name == plan::kVllmSockets &&
          !plan::holds_vllm_sockets(op.value)) {
        note_once(fmt::format(
            "{0} is not set: the path '{1}' is too long for vLLM's sockets, which stay in /tmp when "
            "a server is killed; use a shorter `node.scratch` in the profile",
            op.name, op.value));
        continue;
      }
      operations.push_back(std::move(op));
    }
    const auto own =
        own_operations(plan_, process, node_, request_.paths, master_address(role),
                       bound.process < request_.ras_ports.size() ? request_.ras_ports[bound.process] : 0);
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
    const auto facts = facts_for(role);
    const auto host = plan::apply(base_, modules_, facts);
    auto environment = plan::apply(host, operations, facts);
    if (!role.wrapper.empty()) bound.given = given_by(operations, facts, host, environment);
    return environment;
  }

  /// Address of the node of the role's first process.
  [[nodiscard]] const std::string& master_address(const plan::Role& role) const {
    const auto first = std::ranges::find_if(
        plan_.processes, [&](const plan::Process& process) { return &plan_.role_of(process) == &role; });
    return address_of(directory_, *first);
  }

  /// The node's processes share its CPUs; PyTorch's own default is all of them for each.
  [[nodiscard]] std::size_t threads_each() const {
    const auto here = std::ranges::count(plan_.processes, request_.node, &plan::Process::node);
    return std::max<std::size_t>(
        1, sys::allowed_cpus().size() / static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, here)));
  }

  std::vector<unsigned> cpus_of(const plan::Process& process) {
    std::vector<std::string> bus_ids;
    if (node_.gpus.empty() || plan_.role_of(process).any_cpu) return {};
    for (const auto gpu : plan::gpus_in_reach(plan_, process)) bus_ids.push_back(node_.gpus.at(gpu).bus_id);
    return topology_.cpus_near(bus_ids);
  }

  /// A missing program is reported before anything starts, not by the first process that fails.
  void check_program(const plan::Role& role, const BoundProcess& bound,
                     const plan::Environment& environment) {
    if (bound.argv.empty()) return;
    std::error_code error;
    if (!fs::is_directory(bound.workdir, error)) {
      const auto& origin = role.workdir_origin;
      return complain(role, "launch.workdir",
                      fmt::format("the working directory '{}'{} does not exist", bound.workdir,
                                  origin.empty() ? "" : " (" + origin + ")"));
    }
    const auto path = environment.find("PATH");
    const auto look_for = [&](const std::vector<std::string>& command, const std::string& asked_by,
                              const std::string& hint) {
      if (command.empty()) return;
      const auto found =
          sys::find_program(command.front(), path == environment.end() ? "" : path->second, bound.workdir);
      if (found) return;
      const auto& program = command.front();
      const auto& why = found.error().first_message();
      complain(role, "launch.program", fmt::format("{} ({})", why, asked_by),
               program.contains('/') ? hint_for_file(program, why) : hint);
    };
    look_for(bound.wrapper, fmt::format("wrapper: {}", role.wrapper_origin),
             "if a module provides it, load that in the site profile: `modules: {load: [...]}`");
    if (!plan::is_container(bound.wrapper)) {
      const auto hint = hint_for_name(role);
      look_for(bound.argv, fmt::format("command: {}", role.command_origin), hint);
      look_for(bound.ready.exec, "ready.exec", hint);
      if (bound.alive) look_for(bound.alive->exec, "alive.exec", hint);
      if (bound.on_change) look_for(bound.on_change->exec, "on_change.exec", hint);
    }
    check_image(role, bound);
  }

  /// For a program that is searched in PATH.
  static std::string hint_for_name(const plan::Role& role) {
    const auto others =
        "load its module in the site profile (`modules: {load: [NAME]}`), or give its full path";
    if (!role.venv.empty())
      return fmt::format("install it in the role's venv with {}/bin/python -m pip install PACKAGE, {}",
                         text::shell_quote(role.venv), others);
    return fmt::format("write `venv: DIRECTORY` in role '{}'{}, {}", role.name,
                       role.origin.empty() ? "" : fmt::format(" ({})", role.origin), others);
  }

  static std::string hint_for_file(const std::string& program, const std::string& why) {
    if (why.ends_with("is not executable"))
      return fmt::format("make it executable with chmod +x, or name the program that reads it: [bash, {}]",
                         program);
    return program.starts_with('/')
               ? ""
               : "a path that does not start with / is relative to the role's working directory";
  }

  void check_image(const plan::Role& role, const BoundProcess& bound) {
    const auto image = plan::image_of(bound.wrapper);
    const auto path = (fs::path(bound.workdir) / image).lexically_normal();
    std::error_code error;
    if (image.empty() || image.contains("${") || fs::exists(path, error)) return;
    complain(role, "launch.image",
             fmt::format("the image '{}' ({}) does not exist", path.string(), role.wrapper_origin),
             image.starts_with('~')
                 ? "'~' is not expanded here: write ${env.HOME}"
                 : "a path that does not start with / is relative to the role's working directory");
  }

  void note_once(const std::string& note) {
    if (std::ranges::find(node_.notes, note) == node_.notes.end()) node_.notes.push_back(note);
  }

  /// Once per role, however many processes it has.
  void complain(const plan::Role& role, const char* id, const std::string& what,
                const std::string& hint = "") {
    const auto message = fmt::format("{}: {}", role.name, what);
    if (complaints_.insert(message).second) diagnostics_.error(id, {}, message).hint = hint;
  }

  void write_role_files(const plan::NodeNames& names) {
    for (const auto& role : plan_.roles) {
      // The same on all nodes, which share the run directory and start nothing until all are bound.
      if (request_.node == 0 && !request_.again) {
        write(names.addrs_file(role.name), fmt::format("{}\n", fmt::join(names.addresses(role), "\n")));
        write(names.addrs_file(role.name).string() + ".generation", "1\n");
      }
      if (role.spawned_by.empty()) continue;
      // Written once, by the node of the role's first process.
      const auto first = std::ranges::find_if(node_.processes, [&](const BoundProcess& bound) {
        const auto& process = plan_.processes[bound.process];
        return process.index == 0 && &plan_.role_of(process) == &role;
      });
      if (first == node_.processes.end()) continue;
      nlohmann::ordered_json env = nlohmann::ordered_json::object();
      for (const auto& [name, value] : first->env) {
        const bool secret = std::ranges::find(node_.secret_names, name) != node_.secret_names.end() ||
                            looks_like_secret(name) || node_.masker.mask(value) != value;
        // The service gives each process its own GPUs.
        if (!secret && name != "CUDA_VISIBLE_DEVICES") env[name] = value;
      }
      write(names.env_file(role.name), json_text(env, 2) + "\n");
    }
  }

  void write(const fs::path& path, const std::string& content) {
    if (const auto wrote = sys::write_file_atomically(path, content); !wrote)
      diagnostics_.append(wrote.error());
  }

  const BindRequest& request_;
  const plan::Plan& plan_;
  const NodeAddresses& directory_;
  plan::Environment caller_;
  plan::Environment base_;
  std::vector<EnvOp> modules_;
  std::vector<EnvOp> secrets_;
  sys::Topology topology_;
  Diagnostics diagnostics_;
  std::set<std::string> complaints_;
  BoundNode node_;
};

}  // namespace

std::string scratch_of(const plan::Plan& plan, std::uint32_t node, const std::string& run_id) {
  auto scratch = fmt::format("{}/nlaunch-{}-{}", plan.node.scratch, ::getuid(), run_id);
  // Plan nodes on the same machine must not share this.
  if (plan.all_nodes() > 1) scratch += fmt::format("-{}", node);
  return scratch;
}

std::string error_file_of(const plan::BoundNode& node, const std::string& process) {
  return fmt::format("{}/errors/{}.json", node.scratch, process);
}

std::string cache_of(const plan::Plan& plan) {
  return fmt::format("{}/nlaunch-{}-cache", plan.node.scratch, ::getuid());
}

void remove_scratch(const fs::path& scratch) {
  struct stat info {};
  if (::lstat(scratch.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) return;
  std::error_code ignored;
  fs::remove_all(scratch, ignored);
}

Result<BoundNode> bind_node(const BindRequest& request, const NodeAddresses& directory) {
  auto node = Binder(request, directory).run();
  // Nobody else knows about it.
  if (!node && !request.again) remove_scratch(scratch_of(request.plan, request.node, request.paths.id));
  return node;
}

Result<plan::BoundLibrary> bind_library(const std::string& name, const plan::Library& library,
                                        const std::string& probe) {
  glob_t found{};
  ::glob(library.path.c_str(), 0, nullptr, &found);
  const std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (files.size() != 1) {
    return failure("launch.library", "library '{}' ({}): {} matches '{}'{}", name, library.origin,
                   files.empty() ? "no file" : "more than one file", library.path,
                   files.empty() ? "" : ": " + text::join(files, ", "));
  }
  return plan::BoundLibrary{files.front(), library_version(probe, files.front())};
}

}  // namespace nlaunch::launch
