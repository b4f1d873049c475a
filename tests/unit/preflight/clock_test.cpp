#include "preflight/clocks.h"

#include <gtest/gtest.h>

#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

const std::string kFix =
    "synchronize the clocks with NTP (chronyc tracking shows their state): files and logs have wrong times, "
    "and expiry times are wrong | admin";

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

TEST(CheckClock, TheLimitsAreFiftyMillisecondsAndTwoSeconds) {
  const Machine machine(1, 1);
  const auto apart = [&](double seconds) {
    return worst(run_check("clock", nodes(machine, {0, 0, 0, seconds}, 0)));
  };
  EXPECT_EQ(apart(0.05), Status::pass);
  EXPECT_EQ(apart(0.051), Status::warn);
  EXPECT_EQ(apart(-0.051), Status::warn);
  EXPECT_EQ(apart(2), Status::warn);
  EXPECT_EQ(apart(2.01), Status::fail);
}

TEST(CheckClock, DoubtsByHalfOfBothRoundTrips) {
  const Machine machine(1, 1);
  auto observations = nodes(machine, {0, 0, 0.2}, 0.1);
  EXPECT_EQ(worst(run_check("clock", observations)), Status::warn);
  observations.clocks[2]->round_trip = 0.21;
  EXPECT_EQ(worst(run_check("clock", observations)), Status::pass);
  observations.clocks[2]->seconds = 2.2;
  EXPECT_EQ(worst(run_check("clock", observations)), Status::fail);
  observations.clocks[2]->seconds = 2.1;
  EXPECT_EQ(worst(run_check("clock", observations)), Status::warn);
  EXPECT_EQ(run_check("clock", observations).at(0).hosts, Lines{"n2"}) << "of three the other two agree";
}

TEST(CheckClock, TheOneInTheMiddleIsTheMeasure) {
  const Machine machine(1, 1);
  auto figures = clock_figures(nodes(machine, {5, 1, 3, 4}));
  ASSERT_EQ(figures.size(), 4U);
  EXPECT_EQ(figures[0].what, "clock");
  EXPECT_EQ(figures[0].host, "n0");
  EXPECT_EQ(figures[0].from, "n0");
  EXPECT_EQ(figures[0].to, "n2");
  EXPECT_DOUBLE_EQ(figures[0].value, 2);
  EXPECT_DOUBLE_EQ(figures[1].value, -2);
  EXPECT_EQ(figures[0].unit, "s");
  EXPECT_EQ(clock_figures(nodes(machine, {5, 1, 3}))[0].to, "n2");
  EXPECT_TRUE(clock_figures(machine.observations()).empty());
}

TEST(CheckClock, WhereNobodyAnswersAllAreUnknown) {
  const Machine machine(1, 1);
  auto observations = nodes(machine, {0, 0});
  for (auto& clock : observations.clocks) clock.reset();
  EXPECT_EQ(run_check("clock", observations).size(), 2U);
  EXPECT_TRUE(clock_figures(observations).empty());
}

TEST(ClockExchange, AsksEachNodeThreeTimes) {
  ClockExchange exchange(2);
  const auto answer = ClockExchange::answer(ClockExchange::question());
  EXPECT_TRUE(exchange.on_answer(0, answer));
  EXPECT_TRUE(exchange.on_answer(0, answer));
  EXPECT_FALSE(exchange.on_answer(0, answer));
  EXPECT_FALSE(exchange.complete());
  EXPECT_FALSE(exchange.offsets().at(1));
  for (int i = 0; i < 3; ++i) exchange.on_answer(1, answer);
  EXPECT_TRUE(exchange.complete());
}

TEST(ClockExchange, TellsHowFarAheadANodeIsAndHowLongTheMessageTook) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  ClockExchange exchange(1);
  const auto heard = ClockExchange::question().asked;  // so long ago that the time of this test is nothing
  exchange.on_answer(0, {heard - 10 * kSecond, heard + 96 * kSecond, heard + 98 * kSecond});
  auto offset = exchange.offsets().at(0);
  ASSERT_TRUE(offset);
  EXPECT_NEAR(offset->seconds, 102, 0.1);
  EXPECT_NEAR(offset->round_trip, 8, 0.1);
  exchange.on_answer(0, {heard - 20 * kSecond, heard + 96 * kSecond, heard + 98 * kSecond});
  EXPECT_NEAR(exchange.offsets().at(0)->round_trip, 8, 0.1) << "the fastest answer counts";
}

}  // namespace
}  // namespace nlaunch::preflight
