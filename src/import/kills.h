#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "import/parts.h"
#include "shell/recorder.h"

/// What a script stops without saying by its process id which program that is: only the cluster knows.
namespace nlaunch::import {

/// `kill -9 $(nvidia-smi --query-compute-apps=pid …)`, `kill %1`, `fuser -k 8000/tcp`, `ray stop`.
struct UnknownKill {
  std::string text;
  std::string file;  ///< that contains it
  std::uint32_t line = 0;
  std::optional<std::size_t> command{};  ///< its index, if it is a program of its own
};

std::vector<UnknownKill> unknown_kills(const shell::Recording& recording);
/// True if the script stops something behind a program, and what that is only the cluster knows.
bool stops_others_behind(const shell::Recording& recording, const Part& part);

}  // namespace nlaunch::import
