#include "preflight/findings.h"

#include <future>
#include <map>

#include "preflight/ask_probe.h"
#include "preflight/checks.h"
#include "preflight/gather.h"
#include "preflight/report_json.h"
#include "preflight/role_library.h"
#include "preflight/slow_settings.h"
#include "preflight/trials.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

/// NVML and each role's Python take a fifth of a second and more: they are asked at the same time.
NodeEvidence gather(const Look& request) {
  NodeEvidence evidence{.plan = request.plan, .node = request.node};
  evidence.ranks = make_ranks(request.plan, request.node);
  auto machine = std::async(std::launch::async, [&] {
    const auto known = json::parse(request.facts, nullptr, false);
    return known.is_object() ? read_machine_facts(known) : ask_machine_facts(request.probe);
  });
  std::map<std::uint32_t, std::future<LibraryFact>> libraries;
  for (const auto& rank : evidence.ranks) {
    const auto role = request.plan.processes[rank.process].role;
    if (rank.device < 0 || libraries.contains(role)) continue;
    libraries[role] = std::async(std::launch::async, [&request, bound = rank.bound] {
      return find_role_library(request.node.processes[bound], request.probe);
    });
  }
  for (auto& [role, library] : libraries) evidence.libraries[role] = library.get();
  evidence.machine = machine.get();
  evidence.ports = ask_ports(request.node);
  evidence.folders = ask_folders(request.node, request.folder);
  return evidence;
}

}  // namespace

Findings look(const Look& request) {
  auto evidence = gather(request);
  Findings findings;
  for (const auto& check : node_checks()) {
    for (auto& row : check.judge(evidence)) findings.rows.push_back(std::move(row));
  }
  for (auto& rank : evidence.ranks) {
    const auto library = evidence.libraries.find(request.plan.processes[rank.process].role);
    if (library != evidence.libraries.end()) rank.library = library->second;
    rank.slow = slow_settings(request.node.processes[rank.bound]);
  }
  findings.ranks = std::move(evidence.ranks);
  return findings;
}

json to_json(const Findings& findings) {
  json out{{"rows", json::array()}, {"ranks", json::array()}};
  for (const auto& row : findings.rows) out["rows"].push_back(to_json(row));
  for (const auto& rank : findings.ranks) {
    out["ranks"].push_back({{"process", rank.process},
                            {"gpu", rank.gpu},
                            {"node", rank.node},
                            {"bound", rank.bound},
                            {"subject", rank.subject},
                            {"device", rank.device},
                            {"slow", rank.slow},
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
         rank.at("slow")});
  }
  return findings;
}

}  // namespace nlaunch::preflight
