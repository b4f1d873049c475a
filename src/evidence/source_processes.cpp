#include <nlohmann/json.hpp>

#include "base/json.h"
#include "evidence/source.h"

// /proc of every process in the tree.
namespace nlaunch::evidence {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const ProcessState& process) {
  ordered_json threads = ordered_json::array();
  for (const auto& thread : process.threads) {
    threads.push_back({{"tid", thread.tid},
                       {"name", thread.name},
                       {"state", std::string(1, thread.state)},
                       {"wait_channel", thread.wait_channel}});
  }
  ordered_json object{{"pid", process.pid},
                      {"parent", process.parent},
                      {"name", process.name},
                      {"state", std::string(1, process.state)},
                      {"cpu", process.cpu},
                      {"main_cpu", process.main_cpu},
                      {"command", process.command},
                      {"program", process.program},
                      {"python", process.python},
                      {"cuda", process.cuda},
                      {"system_call", process.system_call},
                      {"kernel_stack", process.kernel_stack},
                      {"files", process.files},
                      {"threads", std::move(threads)}};
  if (process.rank) object["rank"] = *process.rank;
  return object;
}

}  // namespace

Found collect_processes(const CollectContext& context) {
  const auto& subject = *context.subject;
  ordered_json object{{"name", subject.name},
                      {"host", context.spec.host},
                      {"pid", subject.pid},
                      {"ended", subject.ended},
                      {"ended_at", subject.ended_at},
                      {"gpus", subject.gpus},
                      {"processes", ordered_json::array()}};
  if (subject.rank) object["rank"] = *subject.rank;
  for (const auto& process : context.tree) object["processes"].push_back(to_json(process));
  Found found;
  constexpr auto kFile = "processes.json";
  if (context.write(kFile, json_text(object, 1) + "\n")) found.got.emplace_back(kFile);
  return found;
}

}  // namespace nlaunch::evidence
