#pragma once
#include <filesystem>
#include <string>
#include <vector>

/// The network adapters of a machine for its jobs' traffic, according to the kernel.
namespace nlaunch::sys {

struct Nic {
  std::string name{};     ///< "cxi0", "mlx5_0"
  std::string kind{};     ///< "cxi", "ib", "roce", "efa"
  std::string driver{};   ///< "mlx5_core"
  std::string bus_id{};   ///< "0000:3b:00.0"; empty if it is not a PCI device
  std::string interface;  ///< "hsn0"; empty if it has none
  std::string state{};    ///< state of the link, as the kernel reports it: "ACTIVE", "DOWN, Polling", "down"
  bool up = false;        ///< a job can use the link
  double gbits = 0;       ///< of the link, in 10^9 bit/s; 0: unknown
  std::string device{};   ///< device file for programs: "/dev/cxi0"; empty: unknown
  std::string device_error{};  ///< why this user cannot open it; empty: they can
};

/// Slingshot NICs (class/cxi) and all others that RDMA can use (class/infiniband) below `sys` ("/sys"), with
/// their device files below `dev` ("/dev"). For a card with several ports, the best port counts.
std::vector<Nic> find_nics(const std::filesystem::path& sys, const std::filesystem::path& dev);

/// A card of those kinds on the PCI bus without a driver.
struct IdleCard {
  std::string bus_id;  ///< "0000:3b:00.0"
  std::string kind{};  ///< "cxi", "efa", or "mlx5" (which is "ib" or "roce")
  std::string id;      ///< "15b3:1021"
};
std::vector<IdleCard> cards_without_driver(const std::filesystem::path& sys);

}  // namespace nlaunch::sys
