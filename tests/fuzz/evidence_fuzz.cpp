// Whatever bytes a process leaves behind as a dump of its flight recorder, an answer of NCCL's RAS or stacks:
// reading them ends, and so does judging. For libFuzzer, or with mutate.cpp for a short run of a fixed seed.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "evidence/readers/flight_recorder.h"
#include "evidence/readers/pickle.h"
#include "evidence/readers/ras.h"
#include "evidence/readers/stacks.h"
#include "evidence/verdict.h"

namespace {

using namespace nlaunch;

evidence::Evidence evidence_of(std::string_view text) {
  evidence::Evidence found;
  for (const auto& [pid, stack] : evidence::python_stacks(text)) {
    auto& member = found.members.emplace_back();
    member.process = "learner.0";
    member.role = "learner";
    member.rank = static_cast<int>(found.members.size());
    member.pid = pid;
    member.state = 'S';
    member.python = stack;
  }
  return found;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                                                             std::size_t size) {
  const std::string text(data, data + size);
  if (const auto value = evidence::read_pickle(text)) json_text(*value);
  auto found = evidence_of(text);
  for (int rank = 0; rank < 2; ++rank) {
    if (auto recording = evidence::read_recording(text, rank))
      found.recordings["learner"].push_back(std::move(*recording));
  }
  if (auto report = evidence::read_ras(text)) found.ras.push_back(std::move(*report));
  evidence::native_stacks(text);
  json_text(evidence::to_json(evidence::judge(found), found));
  return 0;
}
