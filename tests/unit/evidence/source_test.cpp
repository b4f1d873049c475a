#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "evidence/source.h"
#include "evidence/verdict.h"

// What a file of evidence/sources/ or evidence/analyzers/ has: it is all that a new one takes.
namespace nlaunch::evidence {
namespace {

using Names = std::vector<std::string_view>;

const Registered<Source> spot_source{{
    .order = 25,
    .name = "spot",
    .of = Source::Of::process,
    .bound = std::chrono::seconds(1),
    .lane = 0,
    .collect =
        [](const CollectContext&) {
          return Found{{"spot.txt"}, {}};
        },
}};

const Registered<Analyzer> spot_analyzer{{
    .order = 35,
    .name = "spot",
    .analyze = [](const Evidence&) { return Analysis{}; },
}};

TEST(Sources, OneFileAddsASource) {
  Names names;
  for (const auto* source : sources(Source::Of::process)) names.push_back(source->name);
  EXPECT_EQ(names,
            (Names{"processes", "server", "Python stacks", "spot", "native stacks", "sockets", "libraries",
                   "log", "NCCL log", "environment", "NCCL RAS", "flight recorder", "slow", "broken"}));
  names.clear();
  for (const auto* source : sources(Source::Of::host)) names.push_back(source->name);
  EXPECT_EQ(names, (Names{"GPUs", "kernel log", "use of the GPUs"}));
}

TEST(Analyzers, OneFileAddsAnAnalyzer) {
  Names names;
  const auto verdict = judge({});
  for (const auto& analysis : verdict.analyses) names.push_back(analysis.source);
  EXPECT_EQ(names, (Names{"processes", "flight recorder", "collectives as the ranks compared them", "spot",
                          "stacks", "roles", "NCCL RAS", "connections", "servers", "GPUs"}));
}

}  // namespace
}  // namespace nlaunch::evidence
