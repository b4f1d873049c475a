#include "preflight/clocks.h"

#include <gtest/gtest.h>

#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

const std::string kFix =
    "set the clocks by NTP (chronyc tracking says how it stands): files and logs have wrong times, and what "
    "expires "
    "expires at the wrong one | admin";

/// Nodes n0, n1, ... with clocks so many seconds ahead.
Observations nodes(const Machine& machine, const std::vector<double>& ahead, double round_trip = 1e-4) {
  auto observations = machine.observations();
  for (const auto seconds : ahead) {
    observations.hosts.push_back(fmt::format("n{}", observations.hosts.size()));
    observations.clocks.push_back(ClockOffset{seconds, round_trip});
  }
  return observations;
}

TEST(CheckClock, PassesThoseThatAgree) {
  const Machine machine(1, 1);
  EXPECT_EQ(lines(run_check("clock", nodes(machine, {0, 0.002, -0.001}))),
            (Lines{"pass | all nodes | at most 2.00 ms apart |  |  | "}));
  EXPECT_EQ(lines(run_check("clock", machine.observations())), Lines{}) << "one machine has one clock";
}

TEST(CheckClock, NamesTheOneThatIsAlone) {
  const Machine machine(1, 1);
  const auto rows = run_check("clock", nodes(machine, {10.0, 10.08, 6.5, 10.001}));
  EXPECT_EQ(
      lines(rows),
      (Lines{"warn | n1 | its clock is 80.00 ms ahead of that of n0 | less than 50 ms between two nodes | " +
                 kFix,
             "fail | n2 | its clock is 3.50 s behind that of n0 | less than 50 ms between two nodes | " +
                 kFix}));
  EXPECT_EQ(rows[1].hosts, (Lines{"n2"})) << "whoever decides may be the one who is wrong";
}

TEST(CheckClock, OfTwoBlamesNeither) {
  const auto rows = run_check("clock", nodes(Machine(1, 1), {0, 4}));
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].value, "its clock is 4.00 s ahead of that of n0");
  EXPECT_EQ(rows[0].hosts, Lines{});
}

TEST(CheckClock, DoesNotBlameWhatASlowAnswerCouldExplain) {
  EXPECT_EQ(worst(run_check("clock", nodes(Machine(1, 1), {0, 0, 0.2}, 0.3))), Status::pass);
}

TEST(CheckClock, SaysWhoDidNotAnswer) {
  const Machine machine(1, 1);
  auto observations = nodes(machine, {0, 0, 0});
  observations.clocks[1].reset();
  EXPECT_EQ(lines(run_check("clock", observations)),
            (Lines{"unknown | n1 | its agent did not answer in time |  |  | "}));
  EXPECT_EQ(clock_figures(observations).size(), 2);
}

TEST(ClockExchange, TakesTheFastestOfThreeAnswers) {
  ClockExchange exchange(1);
  constexpr std::int64_t kAhead = 7'000'000'000;
  for (const int slow : {0, 1, 0}) {
    auto question = ClockExchange::question();
    if (slow == 1) question.asked -= 500'000'000;
    auto answer = ClockExchange::answer(question);
    answer.received += kAhead;
    answer.answered += kAhead;
    EXPECT_FALSE(exchange.complete());
    exchange.on_answer(0, answer);
  }
  EXPECT_TRUE(exchange.complete());
  const auto offset = exchange.offsets().at(0);
  ASSERT_TRUE(offset);
  EXPECT_NEAR(offset->seconds, 7, 0.02);
  EXPECT_LT(offset->round_trip, 0.1);
}

}  // namespace
}  // namespace nlaunch::preflight
