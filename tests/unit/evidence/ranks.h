#pragma once
#include <fmt/format.h>

#include <string>
#include <vector>

#include "evidence/verdict.h"

/// Evidence of a few ranks, made by hand.
namespace nlaunch::evidence {

inline constexpr auto kC10d = "torch/distributed/distributed_c10d.py";

/// A rank that waits in an all-reduce over Gloo.
inline Member waiting(int rank) {
  Member member;
  member.process = fmt::format("learner.{}", rank);
  member.role = "learner";
  member.rank = rank;
  member.host = "node0";
  member.pid = 100 + rank;
  member.state = 'S';
  member.wait_channel = "futex_do_wait";
  member.python = {{"all_reduce", kC10d, 1541}, {"step", "train.py", 12}, {"<module>", "train.py", 18}};
  return member;
}

inline Member in(int rank, Stack python, std::string wait_channel, char state = 'S') {
  auto member = waiting(rank);
  member.python = std::move(python);
  member.wait_channel = std::move(wait_channel);
  member.state = state;
  return member;
}

inline Evidence of(std::vector<Member> members) {
  return {std::move(members), {}, {}, {}, {}, {}};
}

inline std::vector<int> culprits(const Verdict& verdict, const Evidence& evidence) {
  std::vector<int> ranks;
  for (const auto& one : verdict.culprits) ranks.push_back(evidence.members[one.member].rank.value_or(-1));
  return ranks;
}

using Ranks = std::vector<int>;

inline RecordedOperation operation(std::int64_t sequence, const std::string& state,
                                   const std::string& name = "all_reduce",
                                   const std::string& sizes = "[[1024]] Float") {
  return {sequence, false, -1, name, sizes, sizes, state};
}

inline Recording recording(int rank, std::vector<RecordedOperation> operations,
                           const std::string& group = "0", std::vector<int> ranks = {0, 1, 2}) {
  Recording one;
  one.rank = rank;
  one.groups[group] = {"default_pg", std::move(ranks), std::move(operations)};
  return one;
}

/// Members whose stacks say nothing: each waits for its GPU.
inline Evidence on_gpus(std::vector<Recording> recordings) {
  std::vector<Member> members;
  for (const auto& one : recordings) {
    members.push_back(in(one.rank, {{"step", "train.py", 9}}, ""));
    members.back().cuda = true;
    members.back().native = {{"cuStreamSynchronize", "", 0}};
  }
  auto evidence = of(members);
  evidence.recordings["learner"] = std::move(recordings);
  return evidence;
}

/// It is not in the GPU's driver, nor in a collective.
inline void put_elsewhere(Member& member) {
  member.python = {{"load", "train.py", 5}};
  member.native = {{"_PyEval_EvalFrameDefault", "", 0}};
  member.state = 'R';
}

inline RasRank counted(int rank, std::int64_t reduces, std::int64_t gathers) {
  RasRank one;
  one.rank = rank;
  one.pid = 100 + rank;
  one.address = "10.0.0.1";
  one.launched = {{"AllReduce", reduces}, {"AllGather", gathers}};
  one.status = "RUNNING";
  return one;
}

inline Evidence told(std::vector<RasRank> ranks) {
  auto evidence = on_gpus({recording(0, {}), recording(1, {}), recording(2, {})});
  evidence.recordings.clear();
  evidence.ras = {{"2.28.9", {{"0xd1f2", 3, std::move(ranks), {}}}, {}}};
  return evidence;
}

}  // namespace nlaunch::evidence
