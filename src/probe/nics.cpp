#include "probe/nics.h"

#include <nlohmann/json.hpp>

#include "sys/nics.h"

namespace nlaunch::probe {

using nlohmann::json;

json examine_nics(const std::filesystem::path& root) {
  json out{{"event", "nics"}, {"nics", json::array()}, {"idle", json::array()}};
  for (const auto& nic : sys::find_nics(root / "sys", root / "dev")) {
    json one{{"name", nic.name},   {"kind", nic.kind}, {"driver", nic.driver}, {"interface", nic.interface},
             {"state", nic.state}, {"up", nic.up},     {"gbits", nic.gbits},   {"device", nic.device}};
    if (!nic.device_error.empty()) one["device_error"] = nic.device_error;
    out["nics"].push_back(std::move(one));
  }
  for (const auto& card : sys::cards_without_driver(root / "sys"))
    out["idle"].push_back({{"bus_id", card.bus_id}, {"kind", card.kind}, {"id", card.id}});
  return out;
}

}  // namespace nlaunch::probe
