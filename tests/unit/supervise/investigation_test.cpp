#include "supervise/investigation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

namespace nlaunch::supervise {
namespace {

using Lines = std::vector<std::string>;

/// Asks two nodes, and notes what happens in the order in which it does.
class InvestigationTest : public ::testing::Test {
 protected:
  Investigation::Options options() {
    Investigation::Options options;
    options.evidence = "/run/evidence";
    options.nodes = 2;
    options.progress = [] {
      watch::Progress progress;
      progress.steps = 17;
      return progress;
    };
    options.say = [this](const std::string& sentence) { happened.push_back("say " + sentence); };
    options.record = [this](std::string_view event, const Json& fields) {
      happened.push_back("record " + std::string(event) + " " + fields.dump());
    };
    options.collect = [this](const action::Collect& collect) {
      folder = collect.folder;
      happened.emplace_back("collect");
    };
    return options;
  }
  Investigation::Done done() {
    return [this](const std::string& where, const Judgement& judgement) {
      EXPECT_EQ(where, folder);
      happened.push_back("done " + judgement.sentence);
    };
  }

  sys::Loop loop;
  std::string folder;
  Lines happened;
};

TEST_F(InvestigationTest, IsOverWhenEveryNodeHasAnswered) {
  auto with_judge = options();
  with_judge.judge = [this](const std::string& where, const watch::Progress& progress) {
    EXPECT_EQ(where, folder);
    EXPECT_EQ(progress.steps, 17U);
    Judgement judgement;
    judgement.sentence = "learner.1 sleeps";
    judgement.lines = {"one", "two"};
    return judgement;
  };
  Investigation investigation(loop, std::move(with_judge));
  EXPECT_FALSE(investigation.goes_on());
  investigation.begin(done());
  EXPECT_TRUE(investigation.goes_on());
  EXPECT_TRUE(std::regex_match(folder, std::regex(R"(/run/evidence/\d{8}T\d{6}Z)"))) << folder;
  investigation.on({"node1: no py-spy"});
  EXPECT_TRUE(investigation.goes_on());
  EXPECT_EQ(happened, (Lines{"collect", "say evidence: node1: no py-spy"}));
  happened.clear();
  investigation.on({});
  EXPECT_FALSE(investigation.goes_on());
  const Lines judged{"record evidence {\"folder\":\"" + folder + "\",\"verdict\":\"learner.1 sleeps\"}",
                     "say learner.1 sleeps",
                     "say   one",
                     "say   two",
                     "say evidence: " + folder,
                     "done learner.1 sleeps"};
  EXPECT_EQ(happened, judged);
  investigation.on({"too late"});
  EXPECT_EQ(happened, judged);
}

TEST_F(InvestigationTest, WithoutAJudgeTheFolderIsSaidAlone) {
  auto of_one_node = options();
  of_one_node.nodes = 1;
  Investigation investigation(loop, std::move(of_one_node));
  for (int i = 0; i < 2; ++i) {
    happened.clear();
    investigation.begin(done());
    investigation.on({});
    EXPECT_EQ(happened, (Lines{"collect", "record evidence {\"folder\":\"" + folder + "\",\"verdict\":\"\"}",
                               "say evidence: " + folder, "done "}));
  }
}

TEST_F(InvestigationTest, OneThatIsGivenUpTellsNothing) {
  Investigation investigation(loop, options());
  investigation.stop();
  investigation.begin(done());
  investigation.on({});
  investigation.stop();
  EXPECT_FALSE(investigation.goes_on());
  investigation.on({"late"});
  investigation.on({"late"});
  EXPECT_EQ(happened, Lines{"collect"});
  investigation.begin(done());
  investigation.on({});
  EXPECT_TRUE(investigation.goes_on()) << "two nodes are to answer again";
}

TEST_F(InvestigationTest, MayBeginAgainWhenOneIsDone) {
  Investigation investigation(loop, options());
  investigation.begin([&](const std::string&, const Judgement&) { investigation.begin(done()); });
  for (int i = 0; i < 2; ++i) investigation.on({});
  EXPECT_TRUE(investigation.goes_on());
  for (int i = 0; i < 2; ++i) investigation.on({});
  EXPECT_EQ(happened.back(), "done ");
}

}  // namespace
}  // namespace nlaunch::supervise
