// A run without experiment, plan or preflight: `run_driver SPEC.json` supervises what the spec says, under a
// guardian, and writes summary.json into its folder. For the process tests.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "supervise/run_attempt.h"
#include "sys/files.h"
#include "sys/spawn.h"

namespace {

using namespace nlaunch;
using supervise::Json;

Duration duration_of(const Json& spec, const char* name, Duration otherwise) {
  return spec.contains(name) ? Duration(spec[name].get<Duration::rep>()) : otherwise;
}

plan::Ready ready_of(const Json& spec) {
  plan::Ready ready;
  ready.http = spec.value("http", "");
  ready.tcp = spec.value("tcp", "");
  ready.log = spec.value("log", "");
  ready.file = spec.value("file", "");
  ready.exec = spec.value("exec", std::vector<std::string>{});
  if (spec.contains("delay_ms")) ready.delay = duration_of(spec, "delay_ms", {});
  ready.exited = spec.value("exited", false);
  ready.timeout = duration_of(spec, "timeout_ms", std::chrono::seconds(10));
  return ready;
}

plan::Role role_of(const Json& spec) {
  plan::Role role;
  role.name = spec.at("name").get<std::string>();
  role.count = spec.value("count", 1U);
  role.command = spec.at("command").get<std::vector<std::string>>();
  if (spec.contains("ready")) role.ready = ready_of(spec["ready"]);
  role.stop.signal = spec.value("stop_signal", 15);
  role.stop.grace = duration_of(spec, "grace_ms", std::chrono::seconds(5));
  role.restart = {spec.contains("restarts"), spec.value("restarts", 0U),
                  duration_of(spec, "backoff_ms", Duration(10))};
  role.ends_run = spec.value("ends_run", false);
  role.exit_ok = spec.value("exit_ok", false);
  role.leave = spec.value("leave", false);
  return role;
}

std::vector<std::pair<std::string, std::string>> environment_of(const Json& spec) {
  std::vector<std::pair<std::string, std::string>> env;
  for (const auto& entry : sys::own_environment()) {
    const auto equals = entry.find('=');
    env.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  if (spec.contains("env")) {
    for (const auto& [name, value] : spec["env"].items()) env.emplace_back(name, value.get<std::string>());
  }
  return env;
}

void add_processes(const plan::Role& role, std::uint32_t role_index, const Json& spec, plan::Plan& plan,
                   plan::BoundNode& node) {
  for (std::uint32_t i = 0; i < role.count; ++i) {
    plan::Process process;
    process.role = role_index;
    process.index = i;
    plan.processes.push_back(process);
    plan::BoundProcess bound;
    bound.process = static_cast<std::uint32_t>(plan.processes.size() - 1);
    bound.name = fmt::format("{}.{}", role.name, i);
    bound.argv = role.command;
    bound.env = environment_of(spec);
    bound.workdir = spec.value("workdir", "/tmp");
    bound.ready = role.ready;
    node.processes.push_back(std::move(bound));
  }
}

void fill(const Json& spec, plan::Plan& plan, plan::BoundNode& node) {
  node.host = "here";
  for (const auto& role_spec : spec.at("roles")) {
    const auto index = static_cast<std::uint32_t>(plan.roles.size());
    const auto stage = role_spec.value("stage", 0U);
    if (plan.stages.size() <= stage) plan.stages.resize(stage + 1);
    plan.stages[stage].push_back(index);
    plan.roles.push_back(role_of(role_spec));
    add_processes(plan.roles.back(), index, role_spec, plan, node);
  }
  const auto secrets = spec.value("secrets", Json::array());
  for (const auto& secret : secrets) node.masker.add(secret.get<std::string>());
  const auto forward = spec.value("forward", Json::object());
  for (const auto& [signal, roles] : forward.items()) {
    plan.signals[sys::signal_number(signal)] = {SignalRule::Action::forward,
                                                roles.get<std::vector<std::string>>()};
  }
}

void lost(const supervise::SupervisorLost& lost) {
  std::vector<std::string> killed;
  for (const auto& process : lost.swept.killed) killed.push_back(process.name);
  fmt::print(stderr, "run_driver: the supervisor {}; {} processes were killed\n", lost.status.str(),
             killed.size());
  if (lost.run_folder.empty()) return;
  const auto summary = supervise::summary_of_lost_supervisor(lost.status, killed, {});
  const auto written = sys::write_file_atomically(lost.run_folder + "/summary.json", summary.dump(2) + "\n");
  if (!written) fmt::print(stderr, "{}", render(written.error()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  std::ifstream file(argv[1]);
  const Json spec = Json::parse(file);
  const std::filesystem::path folder = spec.at("folder").get<std::string>();
  const auto link = supervise::enter_guarded(&lost);
  link.announce(folder.string());

  plan::Plan plan;
  plan::BoundNode node;
  fill(spec, plan, node);
  supervise::EventLog events(folder / "events.jsonl", nullptr);
  supervise::Hooks hooks;
  if (spec.contains("abort_after_ms")) {
    hooks.period = duration_of(spec, "abort_after_ms", {});
    hooks.tick = [](const supervise::LivePids& pids) {
      return supervise::Hooks::Abort{fmt::format("{} alive and not wanted", pids.size()), 70};
    };
  }
  // The tests read both in one stream.
  supervise::RunTerminal terminal(STDOUT_FILENO, STDOUT_FILENO);
  const auto outcome = supervise::run_attempt(
      {plan, node, folder, 0, events, link, spec.value("quiet", false) ? nullptr : &terminal,
       spec.value("color", false) ? Color::always : Color::never, hooks});
  auto summary = supervise::to_json(outcome);
  for (const auto& process : outcome.processes) summary["processes"].push_back(supervise::to_json(process));
  const auto written = sys::write_file_atomically(folder / "summary.json", summary.dump(2) + "\n");
  if (!written) fmt::print(stderr, "{}", render(written.error()));
  return supervise::exit_code(outcome);
}
