#include "sys/nics.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "sys/files.h"

namespace nlaunch::sys {
namespace {

namespace fs = std::filesystem;

/// The line in a sysfs file. Some cannot be read at times, such as the speed of an interface that is down.
std::string line_of(const fs::path& file) {
  constexpr std::uint64_t kPage = 1U << 16U;
  const auto text = read_regular_file(file, kPage);
  return text ? std::string(text::trim(*text)) : "";
}

std::string driver_of(const fs::path& device) {
  std::error_code error;
  return fs::read_symlink(device / "driver", error).filename().string();
}

std::string bus_id_of(const fs::path& device) {
  std::error_code error;
  const auto name = fs::canonical(device, error).filename().string();
  return !error && name.contains(':') ? name : "";
}

/// The interface of the same PCI device.
std::string interface_of(const fs::path& sys, const fs::path& device) {
  std::error_code error;
  const auto wanted = fs::canonical(device, error);
  if (error) return "";
  for (const auto& name : names_in(sys / "class" / "net")) {
    const auto there = fs::canonical(sys / "class" / "net" / name / "device", error);
    if (!error && there == wanted) return name;
  }
  return "";
}

void set_device(Nic& nic, const fs::path& file) {
  nic.device = file.string();
  if (::access(file.c_str(), R_OK | W_OK) != 0) nic.device_error = std::strerror(errno);
}

/// As libfabric's cxi provider does: "unknown" counts as up if there is a carrier.
void read_interface(const fs::path& folder, Nic& nic) {
  nic.state = line_of(folder / "operstate");
  nic.up = nic.state == "up" || (nic.state == "unknown" && line_of(folder / "carrier") == "1");
  constexpr double kMegabits = 1000;  // sysfs has 10^6 bit/s, and -1 for "unknown"
  nic.gbits = std::max(0.0, std::strtod(line_of(folder / "speed").c_str(), nullptr) / kMegabits);
}

Nic slingshot_nic(const fs::path& sys, const fs::path& dev, const std::string& name) {
  const auto device = sys / "class" / "cxi" / name / "device";
  Nic nic{.name = name,
          .kind = "cxi",
          .driver = driver_of(device),
          .bus_id = bus_id_of(device),
          .interface = interface_of(sys, device)};
  if (!nic.interface.empty()) read_interface(sys / "class" / "net" / nic.interface, nic);
  set_device(nic, dev / name);
  return nic;
}

/// "ACTIVE" of "4: ACTIVE".
std::string word_of(const fs::path& file) {
  const auto line = line_of(file);
  const auto colon = line.find(": ");
  return colon == std::string::npos ? line : line.substr(colon + 2);
}

void read_port(const fs::path& port, Nic& nic) {
  const auto state = word_of(port / "state");
  const auto physical = word_of(port / "phys_state");
  const bool up = state == "ACTIVE";
  if (nic.up && !up) return;                                                // the card's other port is enough
  const auto gbits = std::strtod(line_of(port / "rate").c_str(), nullptr);  // "400 Gb/sec (4X NDR)"
  nic.gbits = up == nic.up ? std::max(nic.gbits, gbits) : gbits;
  nic.up = up;
  nic.state = up || physical.empty() ? state : state + ", " + physical;
}

/// EFA devices are of class infiniband, too; their driver identifies them.
Nic rdma_nic(const fs::path& sys, const fs::path& dev, const std::string& name) {
  const auto folder = sys / "class" / "infiniband" / name;
  Nic nic{.name = name,
          .kind = "ib",
          .driver = driver_of(folder / "device"),
          .bus_id = bus_id_of(folder / "device"),
          .interface = interface_of(sys, folder / "device")};
  if (line_of(folder / "ports" / "1" / "link_layer") == "Ethernet") nic.kind = "roce";
  if (nic.driver == "efa") nic.kind = "efa";
  for (const auto& port : names_in(folder / "ports")) read_port(folder / "ports" / port, nic);
  for (const auto& verbs : names_in(folder / "device" / "infiniband_verbs"))
    set_device(nic, dev / "infiniband" / verbs);
  return nic;
}

/// By vendor, and for Amazon (which has many other cards) also by device.
std::string kind_of_card(const std::string& vendor, const std::string& device) {
  if (vendor == "0x17db") return "cxi";  // Cray
  if (vendor == "0x15b3") return "mlx5";
  return vendor == "0x1d0f" && device.starts_with("0xefa") ? "efa" : "";
}

}  // namespace

std::vector<Nic> find_nics(const fs::path& sys, const fs::path& dev) {
  std::vector<Nic> nics;
  for (const auto& name : names_in(sys / "class" / "cxi")) nics.push_back(slingshot_nic(sys, dev, name));
  for (const auto& name : names_in(sys / "class" / "infiniband")) nics.push_back(rdma_nic(sys, dev, name));
  return nics;
}

std::vector<IdleCard> cards_without_driver(const fs::path& sys) {
  constexpr auto kNetwork = "0x02";  // PCI's class of network controllers
  std::vector<IdleCard> out;
  const auto bus = sys / "bus" / "pci" / "devices";
  for (const auto& bus_id : names_in(bus)) {
    if (!line_of(bus / bus_id / "class").starts_with(kNetwork) || !driver_of(bus / bus_id).empty()) continue;
    const auto vendor = line_of(bus / bus_id / "vendor");
    const auto device = line_of(bus / bus_id / "device");
    const auto kind = kind_of_card(vendor, device);
    if (!kind.empty()) out.push_back({bus_id, kind, vendor.substr(2) + ":" + device.substr(2)});
  }
  return out;
}

}  // namespace nlaunch::sys
