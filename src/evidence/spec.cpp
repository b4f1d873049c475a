#include "evidence/spec.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace nlaunch::evidence {
namespace {

using nlohmann::json;

Subject subject_from(const json& object) {
  Subject subject;
  subject.name = object.at("name").get<std::string>();
  if (object.contains("rank") && object.at("rank").is_number()) subject.rank = object.at("rank").get<int>();
  subject.pid = object.value("pid", 0);
  subject.ended = object.value("ended", "");
  subject.ended_at = object.value("ended_at", 0.0);
  subject.killed_parts = object.value("killed_parts", std::vector<std::string>{});
  subject.log = object.value("log", "");
  subject.url = object.value("url", "");
  subject.ras = object.value("ras", "");
  subject.recorder_pipe = object.value("recorder_pipe", "");
  subject.recorder_dump = object.value("recorder_dump", "");
  subject.nccl_logs = object.value("nccl_logs", "");
  subject.gpus = object.value("gpus", std::vector<std::string>{});
  return subject;
}

json to_json(const Subject& subject) {
  json object{{"name", subject.name},
              {"pid", subject.pid},
              {"ended", subject.ended},
              {"ended_at", subject.ended_at},
              {"killed_parts", subject.killed_parts},
              {"log", subject.log},
              {"url", subject.url},
              {"ras", subject.ras},
              {"recorder_pipe", subject.recorder_pipe},
              {"recorder_dump", subject.recorder_dump},
              {"nccl_logs", subject.nccl_logs},
              {"gpus", subject.gpus}};
  if (subject.rank) object["rank"] = *subject.rank;
  return object;
}

}  // namespace

Result<Spec> spec_from(const std::string& text) {
  try {
    const auto object = parse_json_or_throw(text);
    Spec spec;
    spec.folder = object.at("folder").get<std::string>();
    spec.host = object.at("host").get<std::string>();
    spec.deadline = std::chrono::milliseconds(static_cast<Duration::rep>(
        object.value("deadline_s", static_cast<double>(spec.deadline.count()) / 1e3) * 1e3));
    spec.probe = object.value("probe", "");
    spec.gpu_use = object.value("gpu_use", "");
    spec.secrets = object.value("secrets", std::vector<std::string>{});
    spec.ending = object.value("ending", "");
    for (const auto& process : object.at("processes")) spec.processes.push_back(subject_from(process));
    return spec;
  } catch (const json::exception& error) {
    return failure("evidence.spec", "cannot read what to collect: {}", error.what());
  }
}

json to_json(const Spec& spec) {
  json object{{"folder", spec.folder},
              {"host", spec.host},
              {"deadline_s", static_cast<double>(spec.deadline.count()) / 1e3},
              {"probe", spec.probe},
              {"gpu_use", spec.gpu_use},
              {"secrets", spec.secrets},
              {"ending", spec.ending},
              {"processes", json::array()}};
  for (const auto& subject : spec.processes) object["processes"].push_back(to_json(subject));
  return object;
}

}  // namespace nlaunch::evidence
