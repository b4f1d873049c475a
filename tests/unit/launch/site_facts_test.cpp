#include "launch/site_facts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

class FakeSys : public testing::Test {
 protected:
  FakeSys() {
    std::string name = (fs::temp_directory_path() / "nlaunch-sys-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~FakeSys() override { fs::remove_all(path_); }

  void add(const std::string& device, const std::string& driver, const std::string& link_layer) const {
    const auto folder = path_ / "class" / "infiniband" / device;
    fs::create_directories(folder / "device");
    fs::create_directory_symlink("../../../../bus/pci/drivers/" + driver, folder / "device" / "driver");
    if (link_layer.empty()) return;
    fs::create_directories(folder / "ports" / "1");
    std::ofstream(folder / "ports" / "1" / "link_layer") << link_layer << "\n";
  }

  [[nodiscard]] std::string nics() const {
    std::string all;
    for (const auto& nic : find_nics(path_)) all += nic.name + ":" + nic.kind + " ";
    return all;
  }

  fs::path path_;
};

TEST_F(FakeSys, TellsAdaptersApart) {
  EXPECT_EQ(nics(), "");
  add("mlx5_0", "mlx5_core", "InfiniBand");
  add("mlx5_1", "mlx5_core", "Ethernet");
  add("rdmap16s27", "efa", "Unspecified");
  fs::create_directories(path_ / "class" / "cxi" / "cxi0");
  EXPECT_EQ(nics(), "cxi0:cxi mlx5_0:ib mlx5_1:roce rdmap16s27:efa ");
}

TEST(DefaultInterface, IsThatOfTheRouteToEverywhere) {
  EXPECT_EQ(default_interface("Iface\tDestination\tGateway\nnmn0\t0000010A\t0\nhsn0\t00000000\t0101010A\n"),
            "hsn0");
  EXPECT_EQ(default_interface("Iface\tDestination\tGateway\n"), "");
  EXPECT_EQ(default_interface(""), "");
}

TEST(ParseSinfo, TakesTheMostNodesOfAPartition) {
  const auto partitions = parse_sinfo(
      "gpu*|1-00:00:00|4|64|gpu:a100:4\ngpu*|1-00:00:00|40|128|gpu:a100:8\ncpu|infinite|8|64|(null)"
      "\nnoise\n");
  ASSERT_EQ(partitions.size(), 2U);
  EXPECT_EQ(partitions[0].name, "gpu");
  EXPECT_TRUE(partitions[0].is_default);
  EXPECT_EQ(partitions[0].nodes, 40U);
  EXPECT_EQ(partitions[0].gres, "gpu:a100:8");
  EXPECT_EQ(partitions[1].time, "infinite");
  EXPECT_EQ(partitions[1].gres, "");
  EXPECT_FALSE(partitions[1].is_default);
  EXPECT_TRUE(parse_sinfo("").empty());
}

}  // namespace
}  // namespace nlaunch::launch
