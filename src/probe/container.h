#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

namespace nlaunch::probe {

/// `container FILE...`: what a program finds where this one runs.
///   event "container"; os ("Debian GNU/Linux 12 (bookworm)", from /etc/os-release), glibc ("2.36"), gpus
///   (true: the driver's device files are there), unreadable (of the files: path → why).
nlohmann::json examine_container(std::span<const std::string> files);

}  // namespace nlaunch::probe
