#include "evidence/readers/flight_recorder.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "evidence/readers/pickle.h"

namespace nlaunch::evidence {
namespace {

using nlohmann::json;

/// "[0, 1, 2]", as pg_config has it.
std::vector<int> ranks_in(const std::string& text) {
  std::vector<int> ranks;
  for (auto part : text::split(text, ',')) {
    const auto digits = part.find_first_of("0123456789");
    if (digits == std::string::npos) continue;
    int rank = 0;
    std::from_chars(part.data() + digits, part.data() + part.size(), rank);
    ranks.push_back(rank);
  }
  return ranks;
}

std::string shape(const json& entry, const char* sizes, const char* types) {
  std::string text = json_text(entry.value(sizes, json::array()));
  for (const auto& type : entry.value(types, json::array())) {
    if (type.is_string()) text += fmt::format(" {}", type.get<std::string>());
  }
  return text;
}

/// "nccl:all_reduce" is all_reduce, "nccl:send 1->2" send.
std::string operation_name(const std::string& profiled) {
  const auto colon = profiled.find(':');
  const auto name = colon == std::string::npos ? profiled : profiled.substr(colon + 1);
  return name.substr(0, name.find(' '));
}

/// "nccl:send 1->2" is to 2, "nccl:recv 1<-2" from 2; -1 for others.
int peer_of(const std::string& profiled) {
  const auto arrow = profiled.find_first_of("<-", profiled.find(' '));
  if (arrow == std::string::npos || arrow + 2 > profiled.size()) return -1;
  int peer = -1;
  std::from_chars(profiled.data() + arrow + 2, profiled.data() + profiled.size(), peer);
  return peer;
}

RecordedOperation operation_from(const json& entry) {
  RecordedOperation operation;
  operation.sequence = entry.value("collective_seq_id", entry.value("seq_id", std::int64_t{0}));
  operation.point_to_point = entry.value("is_p2p", false);
  if (operation.point_to_point) operation.peer = peer_of(entry.value("profiling_name", ""));
  operation.name = operation_name(entry.value("profiling_name", ""));
  operation.inputs = shape(entry, "input_sizes", "input_dtypes");
  operation.outputs = shape(entry, "output_sizes", "output_dtypes");
  operation.state = entry.value("state", "");
  return operation;
}

/// [name, description]; before 2.4 only the number of the group.
std::pair<std::string, std::string> group_of(const json& entry) {
  const auto group = entry.find("process_group");
  if (group != entry.end() && group->is_array() && group->size() == 2) {
    return {group->at(0).get<std::string>(), group->at(1).get<std::string>()};
  }
  return {std::to_string(entry.value("pg_id", 0)), ""};
}

Recording recording_from(const json& dump, int rank) {
  Recording recording;
  recording.rank = rank;
  recording.version = dump.value("version", "");
  const auto configs = dump.value("pg_config", json::object());
  for (const auto& [name, config] : configs.items()) {
    recording.groups[name] = {config.value("desc", ""), ranks_in(config.value("ranks", "")), {}};
  }
  for (const auto& entry : dump.value("entries", json::array())) {
    const auto [name, description] = group_of(entry);
    auto& group = recording.groups[name];
    if (group.description.empty()) group.description = description;
    group.operations.push_back(operation_from(entry));
  }
  return recording;
}

}  // namespace

Result<Recording> read_recording(std::string_view bytes, int rank) {
  const bool is_json = text::trim(bytes).starts_with('{');
  auto dump = is_json ? parse_json(bytes) : json();
  if (!is_json) {
    auto value =
        read_pickle(bytes, "frames");  // of Python, of each operation: most of a dump, and not needed
    if (!value) return std::unexpected(value.error());
    dump = std::move(*value);
  }
  if (!dump.is_object()) return failure("evidence.recorder", "not a flight recorder dump");
  try {
    return recording_from(dump, rank);
  } catch (const json::exception& error) {
    return failure("evidence.recorder", "not a flight recorder dump: {}", error.what());
  }
}

}  // namespace nlaunch::evidence
