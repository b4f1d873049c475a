#include "session/run_evidence.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "evidence/read.h"
#include "evidence/readers/gpu_use.h"
#include "evidence/spec.h"
#include "report/verdict_text.h"
#include "sys/files.h"
#include "sys/proc.h"

namespace nlaunch::session {
namespace {

namespace fs = std::filesystem;

/// Samples of eight GPUs for a week.
constexpr std::uint64_t kLargestSamples = 256U << 20U;

std::string value_of(const plan::BoundProcess& process, std::string_view name) {
  const auto found = std::ranges::find(process.env, name, &std::pair<std::string, std::string>::first);
  return found == process.env.end() ? "" : found->second;
}

evidence::Subject subject_of(const plan::Plan& plan, const plan::BoundNode& node,
                             const plan::BoundProcess& bound) {
  const auto& process = plan.processes[bound.process];
  evidence::Subject subject;
  subject.name = bound.name;
  if (process.rank >= 0 && plan.role_of(process).gpus <= 1) subject.rank = process.rank;
  subject.url = bound.ready.http;
  subject.ras = value_of(bound, "NCCL_RAS_ADDR");
  subject.recorder_pipe = value_of(bound, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
  subject.recorder_dump = value_of(bound, "TORCH_FR_DUMP_TEMP_FILE");
  if (subject.recorder_dump.empty())
    subject.recorder_dump = value_of(bound, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE");
  subject.nccl_logs = value_of(bound, "NCCL_DEBUG_FILE");
  if (node.gpus.empty()) return subject;
  for (const auto gpu : plan::gpus_in_reach(plan, process)) subject.gpus.push_back(node.gpus.at(gpu).bus_id);
  return subject;
}

/// NCCL replaces %h and %p by host and pid.
std::string as_glob(const std::string& file) {
  std::string glob;
  for (std::size_t i = 0; i < file.size(); ++i) {
    const bool replaced = file[i] == '%' && i + 1 < file.size() && (file[i + 1] == 'h' || file[i + 1] == 'p');
    glob += replaced ? '*' : file[i];
    if (replaced) ++i;
  }
  return glob;
}

/// The one process that has done fewer steps than all others that report steps.
std::optional<std::size_t> straggler(const watch::Progress& progress) {
  std::vector<std::pair<std::uint64_t, std::size_t>> steps;
  for (std::size_t i = 0; i < progress.by_process.size(); ++i) {
    if (progress.by_process[i]) steps.emplace_back(*progress.by_process[i], i);
  }
  std::ranges::sort(steps);
  if (steps.size() < 2 || steps[0].first == steps[1].first) return std::nullopt;
  return steps[0].second;
}

/// Names of the processes that nlaunch starts.
std::vector<std::string> names_of(const plan::Plan& plan) {
  std::vector<std::string> names;
  for (const auto& rules : supervise::rules_of(plan).processes)
    names.push_back(plan.name_of(plan.processes[rules.process]));
  return names;
}

supervise::Judgement judge(const std::vector<std::string>& names, const std::string& folder,
                           const watch::Progress& progress) {
  supervise::Judgement judgement;
  const auto judged = evidence::judge_folder(folder);
  if (!judged) {
    judgement.sentence = "cannot read the evidence: " + judged.error().first_message();
    return judgement;
  }
  const auto& [evidence, verdict] = *judged;
  judgement.json = to_json(verdict, evidence);
  judgement.sentence = verdict.sentence;
  for (const auto& line : text::split(report::verdict_text(verdict, evidence, report::Paint(false)), '\n')) {
    if (!line.empty()) judgement.lines.emplace_back(line);
  }
  if (!judgement.lines.empty()) judgement.lines.erase(judgement.lines.begin());  // removes the sentence
  if (verdict.sure && verdict.culprits.size() == 1) {
    const auto& culprit = evidence.members[verdict.culprits.front().member].process;
    const auto at = std::ranges::find(names, culprit);
    if (at != names.end()) judgement.fault = static_cast<supervise::ProcessIndex>(at - names.begin());
    return judgement;
  }
  const auto late = straggler(progress);
  if (verdict.sure || !late) return judgement;
  judgement.fault = static_cast<supervise::ProcessIndex>(*late);
  judgement.sentence = fmt::format("{} is at step {}, the others are at {}", names[*late],
                                   *progress.by_process[*late], *progress.last_step);
  judgement.json["sentence"] = judgement.sentence;
  judgement.json["by_steps"] = names[*late];
  return judgement;
}

/// The file with the samples of a node's GPUs.
fs::path gpu_use_file(const fs::path& attempt, const std::string& host) {
  return attempt / "gpu-use" / (host + ".jsonl");
}

std::optional<sys::SpawnRequest> collector(const plan::Plan& plan, const plan::BoundNode& node,
                                           const launch::Install& install, const fs::path& attempt,
                                           const supervise::LivePids& live, const supervise::Ends& ends,
                                           const std::string& folder) {
  evidence::Spec spec;
  spec.folder = fs::absolute(folder).string();
  spec.host = node.host;
  spec.probe = install.probe;
  spec.gpu_use = gpu_use_file(attempt, node.host).string();
  spec.secrets = node.secret_names;
  for (const auto& process : node.processes) {
    auto subject = subject_of(plan, node, process);
    subject.log = (attempt / "logs" / (process.name + ".log")).string();
    subject.nccl_logs = as_glob(subject.nccl_logs);
    if (const auto found = live.find(process.process); found != live.end()) subject.pid = found->second;
    if (const auto found = ends.processes.find(process.process); found != ends.processes.end()) {
      subject.ended = found->second.status.str();
      subject.ended_at = std::chrono::duration<double>(found->second.at).count();
    }
    if (const auto found = ends.killed_parts.find(process.process); found != ends.killed_parts.end())
      subject.killed_parts = found->second;
    if (subject.pid > 0 || !subject.ended.empty()) spec.processes.push_back(std::move(subject));
  }
  const auto host = fs::path(spec.folder) / node.host;
  const auto file = host / "spec.json";
  if (!sys::make_private_folder(host) ||
      !sys::write_file_atomically(file, json_text(to_json(spec), 2) + "\n"))
    return std::nullopt;
  sys::SpawnRequest request;
  request.argv = {install.program, "collect", file.string()};
  request.env = sys::own_environment();
  return request;
}

/// The program that samples the GPUs of a node, if it has GPUs.
std::optional<sys::SpawnRequest> sampler(const plan::BoundNode& node, const launch::Install& install,
                                         const fs::path& attempt) {
  const auto file = gpu_use_file(attempt, node.host);
  if (node.gpus.empty() || install.probe.empty() || !sys::make_private_folder(file.parent_path()))
    return std::nullopt;
  sys::SpawnRequest request;
  request.argv = {install.probe, "gpu-use", file.string()};
  request.env = sys::own_environment();
  return request;
}

}  // namespace

void install_evidence_hooks(supervise::Hooks& hooks, const plan::Plan& plan, const plan::BoundNode& node,
                            const launch::Install& install, const fs::path& attempt) {
  hooks.beside = sampler(node, install, attempt);
  hooks.collect = [&plan, &node, &install, attempt](const auto& live, const auto& ends,
                                                    const std::string& folder) {
    return collector(plan, node, install, attempt, live, ends, folder);
  };
}

void add_gpu_use(nlohmann::ordered_json& devices, const fs::path& attempt) {
  std::map<std::string, std::map<std::string, evidence::GpuUse>> by_host;
  for (auto& entry : devices) {
    const auto host = entry.at("host").get<std::string>();
    if (!by_host.contains(host))
      by_host[host] = evidence::read_gpu_use(
          sys::read_regular_file(gpu_use_file(attempt, host), kLargestSamples, sys::Links::refused)
              .value_or(""));
    for (auto& device : entry.at("devices")) {
      const auto use = by_host[host].find(device.value("bus_id", ""));
      if (use == by_host[host].end()) continue;
      device["busy_percent"] = use->second.busy;
      device["power_watts"] = use->second.power;
    }
  }
}

supervise::Judge judge_of(const plan::Plan& plan) {
  return [names = names_of(plan)](const std::string& folder, const watch::Progress& progress) {
    return judge(names, folder, progress);
  };
}

}  // namespace nlaunch::session
