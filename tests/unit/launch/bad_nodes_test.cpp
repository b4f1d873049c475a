#include "launch/job/bad_nodes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::int64_t kNow = 1'800'000'000;

std::string line(std::int64_t age, const std::string& rest) {
  return std::to_string(kNow - age) + "\t" + rest + "\n";
}

/// "node since reason user" of each.
std::vector<std::string> shown(const BadNodeList& ledger) {
  std::vector<std::string> out;
  for (const auto& bad : ledger.nodes) {
    out.push_back(bad.node + " " + std::to_string(kNow - bad.since) + " " + bad.reason + " " + bad.user);
  }
  return out;
}

using Lines = std::vector<std::string>;

TEST(ParseLedger, NamesEachNodeOnceAsItsNewestLineSays) {
  const auto ledger = parse_ledger(line(50, "nid2\tslow\tbob") + line(90, "nid1\tECC errors\talice") +
                                       line(10, "nid1\tECC again\tcarol") + line(70, "nid1\tolder\tdave"),
                                   kNow, 7 * 24h);
  EXPECT_EQ(shown(ledger), (Lines{"nid1 10 ECC again carol", "nid2 50 slow bob"}));
  EXPECT_EQ(ledger.broken, 0U);
}

TEST(ParseLedger, ALineHoldsForItsTime) {
  const auto text = line(3600, "old\tr\tu") + line(3599, "young\tr\tu") + line(-60, "clocks-differ\tr\tu");
  EXPECT_EQ(shown(parse_ledger(text, kNow, 1h)), (Lines{"clocks-differ -60 r u", "young 3599 r u"}));
  // The newest line counts, and not the one that would hold longest.
  EXPECT_EQ(shown(parse_ledger(line(7200, "n\tfirst\tu") + line(100, "n\tagain\tu"), kNow, 1h)),
            (Lines{"n 100 again u"}));
}

TEST(ParseLedger, CountsWhatItCannotUnderstand) {
  const auto ledger = parse_ledger(
      "# a comment\n\n" + line(1, "good\tr\tu") + "yesterday\tnid1\tr\tu\n" + line(1, "--wrap=id\tr\tu") +
          line(1, "nid[1-3]\tr\tu") + line(1, "two words\tr\tu") + line(1, "\tr\tu") + "1800000000\n" +
          "1800000000000\tmilliseconds\tr\tu\n" + "18e8\tnid1\tr\tu\n" + std::string("\0\xff\n", 3),
      kNow, 1h);
  EXPECT_EQ(shown(ledger), (Lines{"good 1 r u"}));
  EXPECT_EQ(ledger.broken, 9U);
  EXPECT_EQ(ledger.first_broken, 4U);
}

TEST(ParseLedger, TakesLinesThatSayLessOrMore) {
  const auto ledger = parse_ledger(line(1, "a") + line(2, "b\treason") + line(3, "c\tr\tu\tmore") +
                                       "1799999996\td\tDOS\tu\r\n" + "1799999995\te\tno end\tu",
                                   kNow, 1h);
  EXPECT_EQ(shown(ledger), (Lines{"a 1  ", "b 2 reason ", "c 3 r u", "d 4 DOS u", "e 5 no end u"}));
  EXPECT_EQ(ledger.broken, 0U);
}

TEST(ParseLedger, WhatOthersWroteCannotActOnATerminal) {
  const auto ledger = parse_ledger(line(1, "n\t\x1b[2J\tu\xff"), kNow, 1h);
  EXPECT_EQ(shown(ledger), (Lines{"n 1 \\x1b[2J u\\xff"}));
}

class LedgerFile : public ::testing::Test {
 protected:
  LedgerFile() {
    char name[] = "/tmp/nlaunch-ledger-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ / "bad_nodes.tsv";
  }
  ~LedgerFile() override { fs::remove_all(folder_); }

  void write(const std::string& text) const { std::ofstream(path_) << text; }
  [[nodiscard]] std::string content() const {
    std::stringstream out;
    out << std::ifstream(path_).rdbuf();
    return out.str();
  }
  static std::string said(const Result<void>& result) { return result ? "" : result.error().first_message(); }

  fs::path folder_;
  fs::path path_;
};

TEST_F(LedgerFile, OneThatIsNotThereIsEmpty) {
  const auto ledger = read_ledger(path_, 1h);
  ASSERT_TRUE(ledger);
  EXPECT_TRUE(ledger->nodes.empty());
  EXPECT_EQ(ledger->broken, 0U);
}

TEST_F(LedgerFile, WhatIsRecordedIsRead) {
  ASSERT_TRUE(record_bad_node(path_, "nid001", "a\ttab,\na line\x1b[2J\x7f and \xff", "al\tice"));
  const auto ledger = read_ledger(path_, 1h);
  ASSERT_TRUE(ledger);
  ASSERT_EQ(ledger->nodes.size(), 1U);
  const auto& bad = ledger->nodes.front();
  EXPECT_EQ(bad.node + "|" + bad.reason + "|" + bad.user, "nid001|a tab, a line [2J  and|al ice");
  EXPECT_LT(std::abs(bad.since - std::time(nullptr)), 5);
}

TEST_F(LedgerFile, WhatIsThereStays) {
  write("# ours\n1\tnid1\tr\tu");  // an editor left out the last newline
  ASSERT_TRUE(record_bad_node(path_, "nid2", "slow", "bob"));
  const auto text = content();
  EXPECT_TRUE(text.starts_with("# ours\n1\tnid1\tr\tu\n")) << text;
  EXPECT_TRUE(text.ends_with("\tnid2\tslow\tbob\n")) << text;
}

TEST_F(LedgerFile, ManyAtATimeLoseNothing) {
  constexpr int kWriters = 8;
  constexpr int kEach = 50;
  const std::string reason(3000, 'x');
  {
    std::vector<std::jthread> writers;
    for (int writer = 0; writer < kWriters; ++writer) {
      writers.emplace_back([&, writer] {
        for (int i = 0; i < kEach; ++i) {
          EXPECT_TRUE(
              record_bad_node(path_, "w" + std::to_string(writer) + "n" + std::to_string(i), reason, "u"));
        }
      });
    }
  }
  const auto ledger = read_ledger(path_, 1h);
  ASSERT_TRUE(ledger);
  EXPECT_EQ(ledger->nodes.size(), std::size_t{kWriters * kEach});
  EXPECT_EQ(ledger->broken, 0U);
}

TEST_F(LedgerFile, OneThatCannotBeWrittenSaysWhy) {
  EXPECT_EQ(said(record_bad_node(folder_ / "no/such", "n", "r", "u")),
            "cannot add to the list of bad nodes '" + (folder_ / "no/such").string() +
                "': No such file or directory");
  EXPECT_EQ(said(record_bad_node("/dev/full", "n", "r", "u")),
            "cannot add to the list of bad nodes '/dev/full': it is not a regular file");
  EXPECT_EQ(said(record_bad_node(path_, "a,b", "r", "u")),
            "cannot add to the list of bad nodes '" + path_.string() + "': 'a,b' is not a node name");
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(said(record_bad_node(path_, "n", "r", "u")),
            "cannot add to the list of bad nodes '" + path_.string() + "': it is not a regular file");
  EXPECT_FALSE(read_ledger(path_, 1h));
}

class Exclude : public LedgerFile {
 protected:
  Exclude() {
    slurm_.bad_nodes = path_;
    slurm_.bad_nodes_ttl = 7 * 24h;
    ::setenv("TZ", "UTC", 1);
  }
  plan::Slurm slurm_;
  BadNodeList ledger_{{{"nid1", 1'795'000'000, "ECC errors", "alice"}, {"nid2", 1'795'100'000, "", ""}}};
};

TEST_F(Exclude, SaysWhoAndWhy) {
  const auto exclusion = exclude(slurm_, ledger_);
  EXPECT_EQ(exclusion.options, (Lines{"--exclude=nid1,nid2"}));
  EXPECT_EQ(exclusion.notes,
            (Lines{"excluded nodes (listed in " + path_.string() +
                   "): nid1 (ECC errors; alice, 2026-11-18), nid2 (no reason given; unknown user, "
                   "2026-11-19)"}));
}

TEST_F(Exclude, NothingWithoutABadNode) {
  const auto exclusion = exclude(slurm_, {});
  EXPECT_TRUE(exclusion.options.empty());
  EXPECT_TRUE(exclusion.notes.empty());
}

TEST_F(Exclude, KeepsWhatTheProfileLeavesOut) {
  slurm_.directives = {{"partition", "main", "site.yaml:1:1"}, {"exclude", "nid[7-9]", "site.yaml:2:1"}};
  EXPECT_EQ(exclude(slurm_, ledger_).options, (Lines{"--exclude=nid[7-9],nid1,nid2"}));
  // Without a bad node the script says it.
  EXPECT_TRUE(exclude(slurm_, {}).options.empty());
}

TEST_F(Exclude, AFileOfTheProfileIsNotReplaced) {
  slurm_.directives = {{"exclude", "/etc/bad", "site.yaml:2:1"}};
  const auto exclusion = exclude(slurm_, ledger_);
  EXPECT_TRUE(exclusion.options.empty());
  EXPECT_EQ(exclusion.notes,
            (Lines{"the nodes in " + path_.string() +
                   " are not excluded: `exclude` is the file /etc/bad (site.yaml:2:1), which cannot "
                   "be combined with them"}));
}

TEST_F(Exclude, SaysHowManyLinesAreBroken) {
  ledger_ = {{}, 1, 3};
  EXPECT_EQ(exclude(slurm_, ledger_).notes,
            (Lines{"1 line of " + path_.string() + " cannot be parsed and is ignored; the first is line 3"}));
  ledger_.broken = 2;
  EXPECT_EQ(
      exclude(slurm_, ledger_).notes,
      (Lines{"2 lines of " + path_.string() + " cannot be parsed and are ignored; the first is line 3"}));
}

TEST_F(Exclude, ManyNodesAreNotAllNamed) {
  ledger_.nodes.clear();
  for (int i = 0; i < 12; ++i) ledger_.nodes.push_back({"n" + std::to_string(i), 0, "r", "u"});
  const auto exclusion = exclude(slurm_, ledger_);
  EXPECT_EQ(exclusion.options, (Lines{"--exclude=n0,n1,n2,n3,n4,n5,n6,n7,n8,n9,n10,n11"}));
  EXPECT_TRUE(exclusion.notes.front().ends_with("n7 (r; u, 1970-01-01), and 4 more"))
      << exclusion.notes.front();
}

TEST_F(Exclude, ALedgerThatCannotBeReadLeavesNothingOut) {
  slurm_.bad_nodes = folder_;
  const auto exclusion = exclude_bad_nodes(slurm_);
  EXPECT_TRUE(exclusion.options.empty());
  ASSERT_EQ(exclusion.notes.size(), 1U);
  EXPECT_TRUE(exclusion.notes.front().starts_with("no node is excluded: ")) << exclusion.notes.front();
  slurm_.bad_nodes.clear();
  EXPECT_TRUE(exclude_bad_nodes(slurm_).notes.empty());
}

}  // namespace
}  // namespace nlaunch::launch
