#include "base/secrets.h"
#include "plan/json_parts.h"

namespace nlaunch::plan {
namespace {

constexpr std::array kRoleKinds{RoleKind::learner, RoleKind::engine, RoleKind::service};
constexpr std::array<std::string_view, 5> kOps{"set", "unset", "prepend", "append", "fallback"};
constexpr std::array kLayers{Layer::inherited, Layer::modules,      Layer::site,
                             Layer::venv,      Layer::experiment,   Layer::role,
                             Layer::overlay,   Layer::command_line, Layer::nlaunch};

ordered_json write(const Condition& when) {
  ordered_json out = ordered_json::object();
  if (when.nodes) out["nodes"] = when.nodes->str();
  if (!when.gpu.empty()) out["gpu"] = when.gpu;
  if (!when.arch.empty()) out["arch"] = when.arch;
  if (when.kind) out["kind"] = name_of(*when.kind);
  for (const auto& [library, versions] : when.library) out["library"][library] = versions.str();
  return out;
}

Condition read_condition(const json& from) {
  Condition when;
  when.nodes = range(from, "nodes");
  when.gpu = from.value("gpu", "");
  when.arch = from.value("arch", "");
  if (from.contains("kind")) when.kind = word(from.at("kind"), kRoleKinds);
  const auto libraries = from.value("library", json::object());
  for (const auto& [library, versions] : libraries.items())
    when.library.emplace(library, *range(libraries, library.c_str()));
  return when;
}

ordered_json write(const EnvOp& op) {
  ordered_json out{{"op", kOps[static_cast<std::size_t>(op.kind)]}, {"name", op.name}};
  if (op.kind != EnvOp::Kind::unset && looks_like_secret(op.name)) {
    out["masked"] = true;
  } else if (op.kind != EnvOp::Kind::unset) {
    out["value"] = op.value;
  }
  out["layer"] = name_of(op.layer);
  out["origin"] = op.origin;
  if (!op.when.always()) out["when"] = write(op.when);
  return out;
}

EnvOp read_op(const json& from) {
  EnvOp op;
  op.kind = numbered<EnvOp::Kind>(from.at("op"), kOps);
  from.at("name").get_to(op.name);
  op.value = from.value("value", "");
  op.layer = word(from.at("layer"), kLayers);
  from.at("origin").get_to(op.origin);
  op.when = read_condition(from.value("when", json::object()));
  op.masked = from.value("masked", false);
  return op;
}

ordered_json write(const Ready& ready) {
  ordered_json out = ordered_json::object();
  if (!ready.http.empty()) out["http"] = ready.http;
  if (!ready.tcp.empty()) out["tcp"] = ready.tcp;
  if (!ready.log.empty()) out["log"] = ready.log;
  if (!ready.file.empty()) out["file"] = ready.file;
  if (!ready.exec.empty()) out["exec"] = ready.exec;
  if (ready.delay) out["delay_ms"] = ready.delay->count();
  out["timeout_ms"] = ready.timeout.count();
  return out;
}

Ready read_ready(const json& from) {
  Ready ready{from.value("http", ""),
              from.value("tcp", ""),
              from.value("log", ""),
              from.value("file", ""),
              from.value("exec", std::vector<std::string>{}),
              {},
              {}};
  if (from.contains("delay_ms")) ready.delay = milliseconds(from.at("delay_ms"));
  ready.timeout = milliseconds(from.at("timeout_ms"));
  return ready;
}

}  // namespace

std::optional<VersionRange> range(const json& from, const char* key) {
  const auto text = from.value(key, "");
  if (text.empty()) return std::nullopt;
  auto parsed = VersionRange::parse(text);
  if (!parsed) throw std::domain_error(parsed.error());
  return std::move(*parsed);
}

Duration milliseconds(const json& from) {
  return Duration(from.get<Duration::rep>());
}

ordered_json write_restart(const Restart& restart) {
  return {{"on_failure", restart.on_failure}, {"max", restart.max}, {"backoff_ms", restart.backoff.count()}};
}

Restart read_restart(const json& from) {
  return {from.at("on_failure"), from.at("max"), milliseconds(from.at("backoff_ms"))};
}

ordered_json write_role(const Role& role) {
  ordered_json out{{"name", role.name},
                   {"kind", name_of(role.kind)},
                   {"command", role.command},
                   {"command_origin", role.command_origin},
                   {"workdir", role.workdir},
                   {"workdir_origin", role.workdir_origin},
                   {"venv", role.venv},
                   {"count", role.count},
                   {"gpus", role.gpus},
                   {"rendezvous", name_of(role.rendezvous)},
                   {"rendezvous_port", role.rendezvous_port},
                   {"ports", role.ports},
                   {"preload", role.preload},
                   {"scope", name_of(role.scope)},
                   {"ready", write(role.ready)},
                   {"heartbeat", role.heartbeat},
                   {"stop", {{"signal", role.stop.signal}, {"grace_ms", role.stop.grace.count()}}},
                   {"restart", write_restart(role.restart)},
                   {"ends_run", role.ends_run},
                   {"exit_ok", role.exit_ok},
                   {"leave", role.leave},
                   {"spawned_by", role.spawned_by},
                   {"classify", role.classify}};
  if (!role.wrapper.empty()) {
    out["wrapper"] = role.wrapper;
    out["wrapper_origin"] = role.wrapper_origin;
  }
  auto& env = out["env"] = ordered_json::array();
  for (const auto& op : role.env) env.push_back(write(op));
  return out;
}

Role read_role(const json& from) {
  Role role;
  from.at("name").get_to(role.name);
  role.kind = word(from.at("kind"), kRoleKinds);
  from.at("command").get_to(role.command);
  role.command_origin = from.value("command_origin", "plan.json");  // an older one
  from.at("workdir").get_to(role.workdir);
  from.at("workdir_origin").get_to(role.workdir_origin);
  from.at("venv").get_to(role.venv);
  from.at("count").get_to(role.count);
  from.at("gpus").get_to(role.gpus);
  role.rendezvous = word(from.at("rendezvous"), std::array{Rendezvous::none, Rendezvous::torch});
  from.at("rendezvous_port").get_to(role.rendezvous_port);
  from.at("ports").get_to(role.ports);
  from.at("preload").get_to(role.preload);
  role.scope = word(from.at("scope"), std::array{PreloadScope::process, PreloadScope::tree});
  role.ready = read_ready(from.at("ready"));
  role.heartbeat = from.value("heartbeat", "");
  role.stop = {from.at("stop").at("signal"), milliseconds(from.at("stop").at("grace_ms"))};
  role.restart = read_restart(from.at("restart"));
  from.at("ends_run").get_to(role.ends_run);
  from.at("exit_ok").get_to(role.exit_ok);
  from.at("leave").get_to(role.leave);
  from.at("spawned_by").get_to(role.spawned_by);
  from.at("classify").get_to(role.classify);
  role.wrapper = from.value("wrapper", std::vector<std::string>{});
  role.wrapper_origin = from.value("wrapper_origin", "");
  for (const auto& op : from.at("env")) role.env.push_back(read_op(op));
  return role;
}

}  // namespace nlaunch::plan
