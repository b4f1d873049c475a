#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "preflight/ask/inquiries.h"
#include "unit/preflight/fixture.h"

// What a file of preflight/checks/ has: it is all that a new check takes.
namespace nlaunch::preflight {
namespace {

constexpr auto kSpot = "spot";

bool is_asked_for(const NodeObservations& observations) {
  return observations.plan.name == kSpot;
}

const Registered<Inquiry> spot_inquiry{{.name = kSpot, .applies = is_asked_for}};

std::vector<Row> check_spot(const NodeObservations& observations) {
  const auto* answer = observations.answer(kSpot);
  if (answer == nullptr) return {};
  return {passed(kSpot, "this machine", answer->said.get<std::string>())};
}

const Registered<NodeCheck> spot_check{{
    .order = 115,
    .name = kSpot,
    .what = "a check of this test",
    .judge = check_spot,
}};

std::vector<Row> check_spots(const Observations& observations) {
  if (observations.plan.name != kSpot) return {};
  return {passed("spots", "all nodes", "the same")};
}

const Registered<Check> spots_check{{
    .order = 15,
    .name = "spots",
    .what = "another one",
    .stage = Stage::before,
    .judge = check_spots,
}};

template <class Entry>
Lines neighbours(const std::vector<const Entry*>& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Entry::name);
  return {std::string((*std::prev(found))->name), std::string((*std::next(found))->name)};
}

TEST(Checks, OneFileAddsACheckAndItsQuestion) {
  EXPECT_EQ(neighbours(node_checks(), kSpot), (Lines{"nics", "fabric"}));
  EXPECT_EQ(neighbours(checks(), "spots"), (Lines{"nccl-version", "clock"}));

  Machine machine(2, 0);
  EXPECT_FALSE(inquiry_of(kSpot).applies(machine.of_node()));
  machine.plan.name = kSpot;
  EXPECT_TRUE(inquiry_of(kSpot).applies(machine.of_node()));
  auto observations = machine.of_node();
  observations.answers[kSpot] = {"in the corner", ""};
  EXPECT_EQ(lines(run_check(kSpot, observations)), (Lines{"pass | this machine | in the corner |  |  | "}));
  EXPECT_EQ(lines(run_check("spots", machine.observations())),
            (Lines{"pass | all nodes | the same |  |  | "}));
}

TEST(Checks, StandInTheirOrder) {
  Lines names;
  for (const auto* check : node_checks()) names.emplace_back(check->name);
  EXPECT_EQ(names,
            (Lines{"gpus",          "gpu-health", "nvlink",  "gpu-mode",       "gpu-processes", "kernel-log",
                   "shared-memory", "container",  "nccl",    "nccl-known-bad", "nics",          "spot",
                   "fabric",        "interfaces", "names",   "interpreter",    "torch",         "limits",
                   "ports",         "space",      "weights", "copies",         "gemm"}));
  names.clear();
  for (const auto* check : checks()) names.emplace_back(check->name);
  EXPECT_EQ(names, (Lines{"nccl-version", "spots", "clock", "gemm-agreement", "identity", "together",
                          "collectives", "bandwidth", "slow-node", "transport", "leftovers", "peers"}));
}

}  // namespace
}  // namespace nlaunch::preflight
