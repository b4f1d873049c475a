#include "preflight/search/suspects.h"

#include <gtest/gtest.h>

#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

Row failing(const std::string& check, std::vector<std::string> hosts,
            Responsible responsible = Responsible::user) {
  auto row = failed(check, "memlock", "8.0 MiB", "more", {"raise it", responsible});
  row.hosts = std::move(hosts);
  return row;
}

Lines names(const std::vector<Row>& rows, std::size_t nodes) {
  Report report;
  report.rows = rows;
  Lines out;
  for (const auto& one : suspects(report, nodes)) {
    out.push_back(fmt::format("{} | {} | {}", one.host, one.reason, name_of(one.responsible)));
  }
  return out;
}

TEST(Suspects, AreTheNodesThatFailWhereOthersDoNot) {
  EXPECT_EQ(names({failing("limits", {"b"}, Responsible::admin), failing("identity", {"b"}),
                   failing("space", {"c"})},
                  4),
            (Lines{"b | limits memlock: 8.0 MiB | admin", "c | space memlock: 8.0 MiB | user"}));
}

TEST(Suspects, AreNotAllNodes) {
  EXPECT_EQ(
      names({failing("limits", {"a"}, Responsible::admin), failing("limits", {"b"}, Responsible::admin)}, 2),
      Lines{});
  EXPECT_EQ(
      names({failing("limits", {"a"}, Responsible::admin), failing("space", {"b"}, Responsible::admin)}, 2)
          .size(),
      2);
}

TEST(Suspects, AGpuOfEveryNodeIsTheSitesFault) {
  auto first = failing("identity", {"a"}, Responsible::admin);
  auto second = failing("identity", {"b"}, Responsible::admin);
  first.subject = "learner rank 0 (a GPU 0)";
  second.subject = "learner rank 1 (b GPU 0)";
  EXPECT_EQ(names({first, second}, 2), Lines{});
  EXPECT_EQ(names({first, second}, 3).size(), 2);
}

TEST(Suspects, OfOneNodeOnlyWhatItsAdministratorMustMendCounts) {
  EXPECT_EQ(names({failing("limits", {"a"}, Responsible::user)}, 1), Lines{});
  EXPECT_EQ(names({failing("limits", {"a"}, Responsible::admin)}, 1).size(), 1);
}

TEST(Suspects, WarningsAndGroupsBlameNobody) {
  auto warning = failing("limits", {"a"});
  warning.status = Status::warn;
  EXPECT_EQ(names({warning, failing("bandwidth", {})}, 2), Lines{});
}

TEST(Suspects, OneReasonOfTheAdministratorsMakesANodeTheirs) {
  EXPECT_EQ(names({failing("limits", {"b"}), failing("gpus", {"b"}, Responsible::admin)}, 4),
            Lines{"b | limits memlock: 8.0 MiB | admin"});
  EXPECT_EQ(names({failing("limits", {"b"}), failing("gpus", {"b"})}, 4),
            Lines{"b | limits memlock: 8.0 MiB | user"});
}

TEST(Suspects, OneRowMayNameSeveralNodes) {
  EXPECT_EQ(names({failing("identity", {"a", "b"})}, 4),
            (Lines{"a | identity memlock: 8.0 MiB | user", "b | identity memlock: 8.0 MiB | user"}));
}

}  // namespace
}  // namespace nlaunch::preflight
