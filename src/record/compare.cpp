#include "record/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "bench/environments.h"
#include "record/facts.h"

namespace nlaunch::record {
namespace {

constexpr std::string_view kNone = "(none)";

constexpr std::array<std::string_view, 22> kOfTheJob{"SLURM_JOB_ID",
                                                     "SLURM_JOBID",
                                                     "SLURM_JOB_NODELIST",
                                                     "SLURM_NODELIST",
                                                     "SLURM_JOB_START_TIME",
                                                     "SLURM_JOB_END_TIME",
                                                     "SLURM_JOB_NAME",
                                                     "SLURM_JOB_GID",
                                                     "SLURMD_NODENAME",
                                                     "SLURM_TOPOLOGY_",
                                                     "SLURM_SUBMIT_",
                                                     "SLINGSHOT_VNIS",
                                                     "SLINGSHOT_SVC_IDS",
                                                     "HOSTNAME",
                                                     "XDG_SESSION_ID",
                                                     "SSH_",
                                                     "OLDPWD",
                                                     "SHLVL",
                                                     "BEAKER_JOB_ID",
                                                     "BEAKER_REPLICA_",
                                                     "BEAKER_TASK_ID",
                                                     "MASTER_ADDR"};

std::set<int> ports_of(const RunFiles& run) {
  std::set<int> out;
  const auto add = [&](const Json& port) {
    if (port.is_number_unsigned() && port.get<std::uint64_t>() > 0 && port.get<std::uint64_t>() < 65536)
      out.insert(port.get<int>());
  };
  const auto& syncs = at(run.plan, "weight_sync");
  add(at(syncs, "port"));
  for (std::size_t i = 0; syncs.is_array() && i < syncs.size(); ++i) add(at(syncs[i], "port"));
  for (const auto& role : at(run.plan, "roles")) add(at(role, "rendezvous_port"));
  for (const auto& attempt : run.attempts) {
    for (const auto& [host, bound] : attempt.bound) {
      for (const auto& process : at(bound, "processes")) {
        for (const auto& port : at(process, "ports")) add(port);
      }
    }
  }
  return out;
}

/// "host:20114" becomes "host:PORT" if the port belongs to the run.
std::string without_ports(std::string value, const std::set<int>& ports) {
  for (const int port : ports) {
    const auto text = fmt::format(":{}", port);
    for (auto at = value.find(text); at != std::string::npos; at = value.find(text, at + 1)) {
      const auto next = at + text.size();
      if (next == value.size() || value[next] < '0' || value[next] > '9')
        value.replace(at, text.size(), ":PORT");
    }
  }
  return value;
}

/// From the last attempt that was bound.
bench::Environments environments_of(const RunFiles& run) {
  bench::Environments out;
  for (auto attempt = run.attempts.rbegin(); attempt != run.attempts.rend() && out.empty(); ++attempt)
    out = bench::read_environments(attempt->folder);
  const auto ports = ports_of(run);
  for (auto& [role, variables] : out) {
    std::erase_if(variables, [](const auto& one) { return varies_by_job(one.first); });
    for (auto& [name, value] : variables) value = without_ports(std::move(value), ports);
  }
  return bench::without_folder(std::move(out), run.folder);
}

std::string value_of(const Facts& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() ? std::string(kNone) : found->second;
}

Section compare_facts(const std::string& section, const Facts& a, const Facts& b) {
  Section out{section, {}, 0};
  std::set<std::string> names;
  for (const auto* facts : {&a, &b}) {
    for (const auto& [name, value] : *facts) names.insert(name);
  }
  for (const auto& name : names) {
    auto in_a = value_of(a, name);
    auto in_b = value_of(b, name);
    if (in_a == in_b) {
      ++out.equal;
    } else {
      out.differences.push_back({name, std::move(in_a), std::move(in_b), ""});
    }
  }
  return out;
}

Section compare_environments(const RunFiles& a, const RunFiles& b) {
  const auto in_a = environments_of(a);
  const auto in_b = environments_of(b);
  if (in_a.empty() || in_b.empty())
    return compare_facts("environment, as planned", planned_environment_facts(a),
                         planned_environment_facts(b));
  Section out{"environment", {}, 0};
  std::set<std::pair<std::string, std::string>> names;
  for (const auto* environments : {&in_a, &in_b}) {
    for (const auto& [role, variables] : *environments) {
      for (const auto& [name, value] : variables) names.emplace(role, name);
    }
  }
  for (const auto& [role, name, values] : bench::differences({in_a, in_b}))
    out.differences.push_back({role + " " + name, values[0], values[1], ""});
  out.equal = names.size() - out.differences.size();
  return out;
}

std::string number(double value) {
  return fmt::format("{:.4g}", value);
}

Section compare_measured(const Measured& a, const Measured& b) {
  constexpr double kSame = 0.01;
  Section out{"measured", {}, 0, true};
  std::set<std::string> names;
  for (const auto* facts : {&a, &b}) {
    for (const auto& [name, value] : *facts) names.insert(name);
  }
  for (const auto& name : names) {
    const auto in_a = a.find(name);
    const auto in_b = b.find(name);
    if (in_a == a.end() || in_b == b.end()) {
      out.differences.push_back({name, in_a == a.end() ? std::string(kNone) : number(in_a->second),
                                 in_b == b.end() ? std::string(kNone) : number(in_b->second), ""});
    } else if (std::abs(in_b->second - in_a->second) <= kSame * std::abs(in_a->second)) {
      ++out.equal;
    } else {
      const auto change = in_a->second == 0
                              ? std::string()
                              : fmt::format("{:+.0f} %", 100 * (in_b->second / in_a->second - 1));
      out.differences.push_back({name, number(in_a->second), number(in_b->second), change});
    }
  }
  return out;
}

struct Row {
  const char* name;
  Facts (*facts)(const RunFiles&);
};
constexpr std::array kBefore{Row{"outcome", outcome_facts}, Row{"libraries", library_facts},
                             Row{"versions", version_facts}};
constexpr std::array kAfter{Row{"plan", plan_facts},  Row{"git", git_facts},
                            Row{"files", file_facts}, Row{"wheels", wheel_facts},
                            Row{"nodes", node_facts}, Row{"preflight", preflight_facts}};

}  // namespace

bool varies_by_job(const std::string& variable) {
  return variable == "_" ||
         std::ranges::any_of(kOfTheJob, [&](auto own) { return variable.starts_with(own); });
}

bool Comparison::equal() const {
  return std::ranges::all_of(sections,
                             [](const Section& one) { return one.measured || one.differences.empty(); });
}

Comparison compare(const RunFiles& a, const RunFiles& b) {
  Comparison out;
  for (const auto& [name, facts] : kBefore) out.sections.push_back(compare_facts(name, facts(a), facts(b)));
  out.sections.push_back(compare_environments(a, b));
  for (const auto& [name, facts] : kAfter) out.sections.push_back(compare_facts(name, facts(a), facts(b)));
  out.sections.push_back(compare_measured(measured(a), measured(b)));
  return out;
}

Json to_json(const Comparison& comparison, const RunFiles& a, const RunFiles& b) {
  Json out;
  for (const auto& [key, run] : {std::pair("a", &a), std::pair("b", &b)})
    out[key] = {{"run", run->folder.filename().string()}, {"folder", run->folder.string()}};
  out["equal"] = comparison.equal();
  auto& sections = out["sections"] = Json::array();
  for (const auto& section : comparison.sections) {
    auto differences = Json::array();
    for (const auto& [what, in_a, in_b, change] : section.differences) {
      differences.push_back({{"what", what}, {"a", in_a}, {"b", in_b}});
      if (!change.empty()) differences.back()["change"] = change;
    }
    sections.push_back({{"name", section.name},
                        {"measured", section.measured},
                        {"equal", section.equal},
                        {"differences", std::move(differences)}});
  }
  return out;
}

}  // namespace nlaunch::record
