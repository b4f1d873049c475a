#include "shell/mpirun.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace nlaunch::shell {
namespace {

Mpirun read(const std::string& line) {
  return read_mpirun(text::split(line, ' '));
}

TEST(MpirunOptions, HaveTheirValues) {
  const auto call = read(
      "mpirun --allow-run-as-root -np 4 --machinefile hf -wdir /a -x A=1 -x B --mca btl ^openib "
      "--timeout=600 "
      "python t.py -n 3");
  EXPECT_EQ(call.program, (Words{"python", "t.py", "-n", "3"}));
  EXPECT_EQ(call.processes, 4U);
  EXPECT_EQ(call.hostfile, "hf");
  EXPECT_EQ(call.folder, "/a");
  EXPECT_EQ(call.variables, Words{"A=1"});
  EXPECT_EQ(call.unknown, std::vector<std::string>{});
  for (const auto* one :
       {"--output-filename out", "--prefix /opt", "--rankfile rf", "-cpus-per-proc 4", "-c 2", "--stdin none",
        "--gmca a b", "-iface ib0", "-genvlist A,B", "-launcher ssh", "--tune F"})
    EXPECT_EQ(read(std::string("mpirun ") + one + " python a.py").program, (Words{"python", "a.py"})) << one;
}

TEST(MpirunOptions, OnesThatAreNotKnownAreTold) {
  EXPECT_EQ(read("mpirun --gugus hf python t.py").unknown, std::vector<std::string>{"--gugus"});
}

TEST(MpirunOptions, SayHowProcessesArePlaced) {
  EXPECT_EQ(read("mpirun --map-by ppr:4:node a").per_node, 4U);
  EXPECT_EQ(read("mpirun --pernode a").per_node, 1U);
  EXPECT_EQ(read("mpirun --map-by node a").mapping, Mapping::cyclic);
  EXPECT_EQ(read("mpirun --map-by slot:pe=2 a").mapping, Mapping::fill);
  EXPECT_EQ(read("mpirun --map-by socket a").mapping, Mapping::spread);
}

TEST(HostFiles, OfBothKinds) {
  const std::vector<HostSlots> expected{{"a", 4}, {"b", 2}, {"c", std::nullopt}};
  EXPECT_EQ(hosts_in_file("# nodes\na slots=4 max_slots=8\nb:2\n\nc\n"), expected);
}

}  // namespace
}  // namespace nlaunch::shell
