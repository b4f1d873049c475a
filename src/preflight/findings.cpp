#include "preflight/findings.h"

#include <fmt/format.h>

#include <filesystem>
#include <future>
#include <map>

#include "base/json.h"
#include "preflight/ask/ask_probe.h"
#include "preflight/ask/inquiries.h"
#include "preflight/ask/role_library.h"
#include "preflight/checks.h"
#include "preflight/gather.h"
#include "preflight/groups/group_outcome.h"
#include "preflight/groups/trials.h"
#include "preflight/report/report_json.h"
#include "sys/files.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

/// "RUN-attempt-0" from the directory of an attempt, which is the same on all nodes.
std::string tag_of(const std::filesystem::path& attempt) {
  return fmt::format("{}-{}", attempt.parent_path().filename().string(), attempt.filename().string());
}

std::map<std::uint32_t, std::string> paths_of(const std::map<std::uint32_t, RolePython>& pythons) {
  std::map<std::uint32_t, std::string> paths;
  for (const auto& [role, python] : pythons)
    if (!python.path.empty()) paths[role] = python.path;
  return paths;
}

/// NVML, each role's Python and libfabric take a fifth of a second or more: all are queried at the same time.
NodeObservations gather(const Request& request) {
  NodeObservations observations{.plan = request.plan, .node = request.node, .address = request.address};
  observations.ranks = make_ranks(request.plan, request.node);
  observations.folders = folders_of(observations, request.folder);
  if (request.options.level >= PreflightLevel::standard)
    observations.pythons = pythons_of_roles(observations);
  auto answers =
      std::async(std::launch::async, [&request, known = observations] { return ask(request, known); });
  std::future<std::vector<SharedFolder>> shared;
  if (request.options.level >= PreflightLevel::standard)
    shared =
        std::async(std::launch::async, [&request, tag = tag_of(request.folder), node = request.node.index] {
          return try_shared_folders(request.plan, request.node, node, tag);
        });
  std::future<std::vector<NixlTransfer>> nixl;
  if (request.options.level >= PreflightLevel::standard)
    nixl = std::async(std::launch::async,
                      [&request, tag = tag_of(request.folder), pythons = paths_of(observations.pythons)] {
                        return try_nixl(request.plan, request.node, pythons, tag);
                      });
  auto machine = std::async(std::launch::async, [&] {
    const auto known = parse_json(request.facts);
    return known.is_object() ? read_machine_facts(known) : ask_machine_facts(request.probe);
  });
  std::map<std::uint32_t, std::future<LibraryFact>> libraries;
  for (const auto& rank : observations.ranks) {
    const auto role = request.plan.processes[rank.process].role;
    if (rank.device < 0 || libraries.contains(role)) continue;
    libraries[role] = std::async(std::launch::async, [&request, bound = rank.bound] {
      return find_role_library(request.node.processes[bound], request.probe);
    });
  }
  observations.ports = ask_ports(request.plan, request.node);
  observations.interfaces = sys::names_in("/sys/class/net");
  std::erase(observations.interfaces, "bonding_masters");  // a file of the bonding driver
  for (auto& [role, library] : libraries) observations.libraries[role] = library.get();
  observations.machine = machine.get();
  observations.answers = answers.get();
  if (nixl.valid()) observations.nixl = nixl.get();
  if (shared.valid()) observations.shared_folders = shared.get();
  return observations;
}

void add_once(std::string& list, const std::string& word) {
  if (word.empty() || list.find(word) != std::string::npos) return;
  list += (list.empty() ? "" : ", ") + word;
}

NodeSummary summary_of(const NodeObservations& observations) {
  NodeSummary out;
  out.host = observations.node.host;
  out.arch = observations.machine.arch;
  out.gpus = static_cast<std::uint32_t>(observations.machine.gpus.size());
  out.driver = observations.machine.driver;
  for (const auto& gpu : observations.machine.gpus) add_once(out.gpu, gpu.name);
  for (const auto& [role, library] : observations.libraries) add_once(out.nccl, library.version);
  return out;
}

std::string why_no_probe(const NodeObservations& observations, const Rank& rank) {
  const auto& role = observations.role_of(rank).name;
  const auto* container = observations.answer("container/" + role);
  if (container == nullptr || container->error.empty()) return "";
  return fmt::format("nlaunch-probe does not start in the container of '{}'", role);
}

}  // namespace

Findings look(const Request& request) {
  auto observations = gather(request);
  Findings findings;
  for (const auto* check : node_checks()) {
    for (auto& row : check->judge(observations)) findings.rows.push_back(std::move(row));
    if (check->figures == nullptr) continue;
    for (auto& figure : check->figures(observations)) findings.figures.push_back(std::move(figure));
  }
  findings.fingerprints = gemm_fingerprints(observations);
  findings.summary = summary_of(observations);
  for (auto& rank : observations.ranks) {
    const auto library = observations.libraries.find(request.plan.processes[rank.process].role);
    if (library != observations.libraries.end()) rank.library = library->second;
    rank.slow = slow_settings(request.node.processes[rank.bound]);
    rank.no_probe = why_no_probe(observations, rank);
  }
  findings.ranks = std::move(observations.ranks);
  return findings;
}

json to_json(const Findings& findings) {
  json out{{"rows", json::array()},
           {"ranks", json::array()},
           {"figures", json::array()},
           {"fingerprints", json::array()},
           {"summary", to_json(findings.summary)}};
  for (const auto& row : findings.rows) out["rows"].push_back(to_json(row));
  for (const auto& figure : findings.figures) out["figures"].push_back(to_json(figure));
  for (const auto& print : findings.fingerprints)
    out["fingerprints"].push_back({{"gpu", print.gpu}, {"model", print.model}, {"value", print.value}});
  for (const auto& rank : findings.ranks) {
    out["ranks"].push_back({{"process", rank.process},
                            {"gpu", rank.gpu},
                            {"node", rank.node},
                            {"bound", rank.bound},
                            {"subject", rank.subject},
                            {"device", rank.device},
                            {"slow", rank.slow},
                            {"no_probe", rank.no_probe},
                            {"library",
                             {{"path", rank.library.path},
                              {"version", rank.library.version},
                              {"by", rank.library.by},
                              {"error", rank.library.error}}}});
  }
  return out;
}

Findings findings_from_json(const json& from) {
  Findings findings;
  findings.summary = summary_from_json(from.at("summary"));
  for (const auto& figure : from.at("figures")) findings.figures.push_back(figure_from_json(figure));
  for (const auto& print : from.at("fingerprints"))
    findings.fingerprints.push_back({0, print.at("gpu"), print.at("model"), print.at("value")});
  for (const auto& row : from.at("rows")) findings.rows.push_back(row_from_json(row));
  for (const auto& rank : from.at("ranks")) {
    const auto& library = rank.at("library");
    findings.ranks.push_back(
        {rank.at("process"),
         rank.at("gpu"),
         rank.at("node"),
         rank.at("bound"),
         rank.at("subject"),
         rank.at("device"),
         {library.at("path"), library.at("version"), library.at("by"), library.at("error")},
         rank.at("slow"),
         rank.at("no_probe")});
  }
  return findings;
}

}  // namespace nlaunch::preflight
