#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "evidence/member.h"
#include "evidence/readers/flight_recorder.h"
#include "evidence/readers/gpu_use.h"
#include "evidence/readers/ras.h"

namespace nlaunch::evidence {

/// Everything that was collected, from all hosts.
struct Evidence {
  std::vector<Member> members;
  /// By role: its recordings, by the ranks of the role.
  std::map<std::string, std::vector<Recording>> recordings;
  std::vector<RasReport> ras;
  std::map<std::string, std::string> hosts;                        ///< IP address → host
  std::map<std::string, std::map<std::string, GpuUse>> gpu_use{};  ///< by host, by bus id
  std::vector<std::string> missing;  ///< "python stacks on nid002: py-spy is ...", each once
  std::string ending{};              ///< why the run was being stopped then; empty: it continued
};

/// A member that is considered the cause.
struct Accused {
  std::size_t member = 0;  ///< index into Evidence::members
  std::string why;         ///< "sleeps in load (train.py:12), outside of any collective"
  bool is_late = false;    ///< it did not come to where the others wait: something may hold it up
  bool operator==(const Accused& other) const { return member == other.member; }
};

/// What one source says about members that wait, and members that do not arrive. Nothing accused: it says
/// nothing.
struct Analysis {
  std::string source;  ///< "stacks", "flight recorder", "NCCL RAS", "processes", "connections", "GPUs"
  bool sure = false;
  std::vector<Accused> accused;
  std::vector<std::string> says;  ///< lines for people
  bool weak = false;              ///< does not count against one that is sure
};

/// Whether a member that does not arrive may itself be waiting for one that the source does not see: it waits
/// for its GPU or in a collective (of a library with its own communicators, with another role), or its
/// activity is unknown and there are other roles.
bool may_wait_unseen(const Evidence& evidence, std::size_t member);

/// One source's view. Each registers itself in its file in evidence/analyzers/.
struct Analyzer {
  int order;              ///< of Verdict::analyses
  std::string_view name;  ///< Analysis::source
  Analysis (*analyze)(const Evidence& evidence);
};

struct Verdict {
  /// False: the accused are candidates, likely ones first. A member that waits in a collective is a victim
  /// until something shows otherwise.
  bool sure = false;
  std::vector<Accused> culprits;
  std::vector<std::size_t> victims;  ///< indices into Evidence::members
  std::string sentence;              ///< the first line for people
  std::vector<Analysis> analyses;
};

/// Weighs what the sources say. Pure.
Verdict judge(const Evidence& evidence);

/// verdict.json:
///   {"format", "version", "sure", "sentence",
///    "culprits": [{"process", "rank", "host", "pid", "program", "doing", "why"}],
///    "victims": [{"process", "rank", "host", "pid"}],
///    "sources": [{"source", "sure", "accused": [names], "says": [lines]}], "missing": [lines]}
nlohmann::ordered_json to_json(const Verdict& verdict, const Evidence& evidence);

}  // namespace nlaunch::evidence
