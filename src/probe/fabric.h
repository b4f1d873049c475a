#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace nlaunch::probe {

/// `fabric [PROVIDER]`: the libfabric that the loader takes in this environment, and what it offers of a
/// provider
/// ("cxi", "efa", "verbs", "tcp"):
///   event "fabric"; version ("1.17"), path, or error;
///   with a provider: provider, domains [{name (of its NIC, where it has one), fabric, provider
///   ("tcp;ofi_rxm"), opened, and of its NIC, where libfabric knows one: link ("up", "down", "unknown"),
///   gbits}], and provider_error where it offers none. `opened` is false, with `error`, where the domain
///   could not be opened: a provider then has refused this job.
/// Apart from the facts of the machine: one that brings CUDA along takes 0.2 s to load.
nlohmann::json examine_fabric(const std::string& provider);

}  // namespace nlaunch::probe
