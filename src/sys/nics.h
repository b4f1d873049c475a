#pragma once
#include <filesystem>
#include <string>
#include <vector>

/// The network adapters of a machine for its jobs' traffic, as the kernel shows them.
namespace nlaunch::sys {

struct Nic {
  std::string name{};          ///< "cxi0", "mlx5_0"
  std::string kind{};          ///< "cxi", "ib", "roce", "efa"
  std::string driver{};        ///< "mlx5_core"
  std::string bus_id{};        ///< "0000:3b:00.0"; empty where it is no PCI device
  std::string interface;       ///< "hsn0"; empty where it has none
  std::string state{};         ///< of the link, in the kernel's words: "ACTIVE", "DOWN, Polling", "down"
  bool up = false;             ///< a job can use the link
  double gbits = 0;            ///< of the link, in 10^9 bit/s; 0: not known
  std::string device{};        ///< file by which a program reaches it: "/dev/cxi0"; empty: not known
  std::string device_error{};  ///< why this user cannot open that; empty: they can
};

/// Slingshot's NICs (class/cxi) and all others that RDMA can use (class/infiniband) below `sys` ("/sys"),
/// with their files below `dev` ("/dev"). Of a card with several ports the best one counts.
std::vector<Nic> find_nics(const std::filesystem::path& sys, const std::filesystem::path& dev);

/// A card of those kinds on the PCI bus that no driver has taken.
struct IdleCard {
  std::string bus_id;  ///< "0000:3b:00.0"
  std::string kind{};  ///< "cxi", "efa", or "mlx5" (which is "ib" or "roce")
  std::string id;      ///< "15b3:1021"
};
std::vector<IdleCard> cards_without_driver(const std::filesystem::path& sys);

}  // namespace nlaunch::sys
