#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace nlaunch::probe {

/// `nics [ROOT]`: the network adapters below ROOT ("/"), from sysfs, without libfabric:
///   event "nics"; nics [{name, kind ("cxi", "ib", "roce", "efa"), driver, interface, state, up, gbits,
///   device, device_error (text, where this user cannot open the device)}], idle [{bus_id, kind, id}]: cards
///   of those kinds without a driver.
nlohmann::json examine_nics(const std::filesystem::path& root);

}  // namespace nlaunch::probe
