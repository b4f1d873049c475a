#include "unit/preflight/allocation.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "preflight/checks.h"
#include "preflight/search/suspects.h"

/// 512 nodes, one or two of which are at fault: the right ones are named, and nobody else.
namespace nlaunch::preflight {
namespace {

constexpr std::uint32_t kNodes = 512;
using Names = std::set<std::string>;

/// The nodes that a report blames, and the links that it names.
struct Blamed {
  Names nodes;
  Names links;
  bool operator==(const Blamed&) const = default;
};

Blamed blamed_by(const Report& report, std::size_t nodes) {
  Blamed out;
  for (const auto& one : suspects(report, nodes)) out.nodes.insert(one.host);
  for (const auto& row : report.rows) {
    if (row.check == "suspect" && row.status == Status::fail && row.hosts.empty())
      out.links.insert(row.subject);
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const Blamed& blamed) {
  for (const auto& node : blamed.nodes) out << node << " ";
  for (const auto& link : blamed.links) out << "[" << link << "] ";
  return out;
}

// --- the judgement alone, a thousand times ---

/// What the ranks of all groups say, put into the observations.
void play(const Allocation& allocation, Observations& observations) {
  for (auto& group : observations.groups) {
    if (!group.not_run.empty()) continue;
    const auto ring = allocation.ring_of(group.members);
    const auto rate = allocation.rate(ring);
    const bool hangs = allocation.hangs(ring);
    std::vector<SizeResult> results;
    for (const auto bytes : group.sizes) {
      const auto seconds = allocation.seconds(group.op(), bytes, group.members.size(), rate);
      results.push_back({bytes, bytes / 4, 0, 0, 0, 0, -1, seconds,
                         bus_bandwidth(group.op(), bytes, seconds, group.members.size())});
    }
    for (const auto rank : group.members) {
      auto& report = observations.reports[rank];
      if (!report.errors.empty()) continue;
      auto& progress = report.groups[group.name];
      progress.joining = true;
      if (!hangs) {
        progress.results = results;
      } else {
        report.errors = {{"collective", group.name, "deadline", "not done within 20s"}};
      }
    }
  }
}

/// Rounds as the probes would play them.
std::vector<Round> rounds_of(const Allocation& allocation, const Bisection& what) {
  std::vector<Round> rounds;
  for (;;) {
    const auto pairs = next_round(what.parts.size(), rounds, what.rules);
    if (pairs.empty()) return rounds;
    rounds.emplace_back();
    for (const auto& pair : pairs) {
      const auto trial = pair_trial(what, pair);
      const auto ring = allocation.ring_of(trial.members);
      PairTrial shown{pair, trial.members.size()};
      if (allocation.hangs(ring)) {
        shown.trouble = "not done within 10s";
      } else {
        shown.seconds = allocation.seconds(what.op, what.bytes, trial.members.size(), allocation.rate(ring));
      }
      rounds.back().push_back(std::move(shown));
    }
  }
}

/// All checks of the job, in the order of an examination, and the search.
Report judge(const Allocation& allocation) {
  Observations observations{.plan = allocation.plan, .hosts = allocation.hosts};
  for (std::uint32_t node = 0; node < allocation.nodes; ++node)
    std::ranges::move(allocation.ranks_of(node), std::back_inserter(observations.ranks));
  observations.groups = make_trials(observations);
  observations.reports.resize(observations.ranks.size());
  for (std::uint32_t node = 0; node < allocation.nodes; ++node) {
    for (std::uint32_t gpu = 0; gpu < allocation.gpus; ++gpu) {
      if (!allocation.mute.contains(node))
        observations.reports[node * allocation.gpus + gpu].identity = allocation.identity(node, gpu);
    }
  }
  Report report;
  bool fit = true;
  for (const auto stage : {Stage::before, Stage::identity, Stage::after}) {
    if (stage == Stage::after) {
      observations.went = fit;
      if (fit) play(allocation, observations);
    }
    for (const auto* check : checks()) {
      if (check->stage != stage) continue;
      for (auto& row : check->judge(observations)) {
        if (stage == Stage::identity && row.status == Status::fail) fit = false;
        report.rows.push_back(std::move(row));
      }
    }
  }
  for (const auto& complaint : complaints(observations)) {
    const auto what = dissect(observations, complaint);
    std::ranges::move(suspect_rows(what, rounds_of(allocation, what)), std::back_inserter(report.rows));
  }
  return report;
}

/// Makes a random fault, and adds who is to be named for it.
void spoil(Allocation& allocation, std::mt19937& random, Blamed& expected) {
  const auto among = [&](std::uint32_t count) {
    return std::uniform_int_distribution<std::uint32_t>(0, count - 1)(random);
  };
  const auto node = among(allocation.nodes);
  const auto& host = allocation.hosts[node];
  const double factor = std::uniform_real_distribution<double>(2.2, 10)(random);
  switch (among(6)) {
    case 0:
      allocation.slow_network[node] = factor;
      expected.nodes.insert(host);
      break;
    case 1:
      allocation.slow_gpus[node] = factor;
      expected.nodes.insert(host);
      break;
    case 2: {
      const auto next = (node + 1) % allocation.nodes;
      allocation.slow_link[{std::min(node, next), std::max(node, next)}] = factor;
      expected.links.insert(std::min(host, allocation.hosts[next]) + " - " +
                            std::max(host, allocation.hosts[next]));
      break;
    }
    case 3:
      allocation.hang.insert(node);
      expected.nodes.insert(host);
      break;
    case 4:
      allocation.version[node] = "2.27.7";
      expected.nodes.insert(host);
      break;
    default: {
      const auto other = (node + 1 + among(allocation.nodes - 1)) % allocation.nodes;
      allocation.looks_like[node] = other;
      expected.nodes.insert({host, allocation.hosts[other]});
    }
  }
}

/// What is found first ends the examination, or hides the other fault, which the next one finds: nobody is
/// named who is not at fault, and somebody is.
bool is_right(const Blamed& blamed, const Blamed& expected, unsigned faults) {
  if (faults == 1) return blamed == expected;
  return !(blamed.nodes.empty() && blamed.links.empty()) &&
         std::ranges::includes(expected.nodes, blamed.nodes) &&
         std::ranges::includes(expected.links, blamed.links);
}

TEST(Allocation, NamesTheRightNodesInAThousandTrials) {
  std::mt19937 random(20);
  for (unsigned trial = 0; trial < 1000; ++trial) {
    Allocation allocation(kNodes, 2);
    allocation.random.seed(trial);
    Blamed expected;
    const unsigned faults = 1 + trial % 2;
    for (unsigned i = 0; i < faults; ++i) spoil(allocation, random, expected);
    const auto blamed = blamed_by(judge(allocation), kNodes);
    ASSERT_TRUE(is_right(blamed, expected, faults))
        << "trial " << trial << ": blamed " << blamed << " for " << expected;
  }
}

// --- the whole examination, with probes that play ---

class Examined : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "nlaunch-allocation.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Report examine(const Allocation& allocation, PreflightLevel level = PreflightLevel::standard) {
    using namespace std::chrono_literals;
    sys::Loop loop;
    const Options options{.level = level};
    const Examination request{.plan = allocation.plan,
                              .options = options,
                              .deadlines = {300ms, 300ms},
                              .folder = folder_,
                              .hosts = allocation.hosts,
                              .addresses = allocation.hosts,
                              .probes = [&](const ProbeStart& start) {
                                return std::make_unique<PlayedProbes>(loop, allocation, start);
                              }};
    return preflight::examine(loop, request, allocation.findings());
  }
  static Names row_texts(const Report& report, const std::string& check) {
    Names out;
    for (const auto& row : report.rows) {
      if (row.check == check && row.status != Status::pass)
        out.insert(fmt::format("{} | {} | {}", name_of(row.status), row.subject, row.value));
    }
    return out;
  }

  std::string folder_;
};

TEST_F(Examined, AHealthyAllocationBlamesNobody) {
  const Allocation allocation(kNodes, 4);
  const auto report = examine(allocation);
  EXPECT_EQ(report.verdict, Status::pass);
  EXPECT_EQ(blamed_by(report, kNodes), Blamed{});
}

TEST_F(Examined, ASlowNodeIsNamed) {
  Allocation allocation(kNodes, 4);
  allocation.slow_network[77] = 5;
  const auto report = examine(allocation);
  EXPECT_EQ(blamed_by(report, kNodes), (Blamed{{"nid001077"}, {}}));
}

TEST_F(Examined, ANodeWithASlowGpuIsNamedByItsPeers) {
  Allocation allocation(kNodes, 4);
  allocation.slow_gpus[0] = 2;
  EXPECT_EQ(blamed_by(examine(allocation), kNodes), (Blamed{{"nid001000"}, {}}));
}

TEST_F(Examined, ADeadNodeIsNamed) {
  Allocation allocation(kNodes, 4);
  allocation.mute.insert(511);
  EXPECT_EQ(blamed_by(examine(allocation), kNodes), (Blamed{{"nid001511"}, {}}));
}

TEST_F(Examined, ANodeWithWhichNothingEndsIsNamed) {
  Allocation allocation(kNodes, 4);
  allocation.hang = {100, 101};
  EXPECT_EQ(blamed_by(examine(allocation), kNodes), (Blamed{{"nid001100", "nid001101"}, {}}));
}

TEST_F(Examined, ASlowLinkIsNamedAndNoNodeIs) {
  Allocation allocation(kNodes, 4);
  allocation.slow_link[{0, 511}] = 4;
  EXPECT_EQ(blamed_by(examine(allocation), kNodes), (Blamed{{}, {"nid001000 - nid001511"}}));
}

TEST_F(Examined, AWrongVersionOnOneNodeIsNamed) {
  Allocation allocation(kNodes, 4);
  allocation.version[9] = "2.27.7";
  const auto report = examine(allocation);
  EXPECT_EQ(blamed_by(report, kNodes), (Blamed{{"nid001009"}, {}}));
  EXPECT_EQ(row_texts(report, "nccl-version"),
            (Names{"fail | learner world | learner on nid001009 loads 2.27.7 (/venv/libnccl.so.2, NCCL "
                   "wheel); learner on nid001000, nid001001, nid001002, nid001003 and 507 more loads 2.28.9 "
                   "(/venv/libnccl.so.2, NCCL wheel)"}));
}

TEST_F(Examined, TwoNodesWithOneIdentityAreBothNamed) {
  Allocation allocation(kNodes, 4);
  allocation.looks_like[300] = 5;
  EXPECT_EQ(blamed_by(examine(allocation), kNodes), (Blamed{{"nid001005", "nid001300"}, {}}));
}

TEST_F(Examined, WhereAllAreSlowNobodyIsBlamed) {
  Allocation allocation(16, 4);
  for (std::uint32_t node = 0; node < 16; ++node) allocation.slow_network[node] = 10;
  const auto report = examine(allocation);
  EXPECT_EQ(blamed_by(report, 16), Blamed{});
  const auto said = row_texts(report, "suspect");
  ASSERT_EQ(said.size(), 1);
  EXPECT_TRUE(said.begin()->starts_with(
      "unknown | learner world | all pairs are slow, none more than the others; the median is "))
      << *said.begin();
}

TEST_F(Examined, OfTwoNodesNeitherIsBlamed) {
  Allocation allocation(2, 4);
  allocation.slow_network[1] = 5;
  const auto report = examine(allocation);
  EXPECT_EQ(blamed_by(report, 2), Blamed{});
  EXPECT_EQ(
      row_texts(report, "suspect"),
      (Names{
          "unknown | nid001000 or nid001001 | two are not enough to tell which one breaks 'learner world'"}));
}

TEST_F(Examined, AtLevelDeepPairsAreTimedEvenIfAllIsWell) {
  const Allocation allocation(8, 4);
  const auto report = examine(allocation, PreflightLevel::deep);
  EXPECT_EQ(report.verdict, Status::pass);
  EXPECT_EQ(std::ranges::count(report.figures, "pair", &Figure::what), 8);
  EXPECT_EQ(report.figures.front().from, "nid001000");
  EXPECT_EQ(report.figures.front().to, "nid001001");
  // Of the largest group alone: 8 B to 4 GiB.
  const auto sizes = [&](const std::string& group) {
    return std::ranges::count(report.measurements, group, &Measurement::group);
  };
  EXPECT_EQ(sizes("learner world"), 19);
  EXPECT_EQ(sizes("node 0"), 4);
}

}  // namespace
}  // namespace nlaunch::preflight
