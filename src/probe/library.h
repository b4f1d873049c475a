#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "probe/dynamic_library.h"

namespace nlaunch::probe {

/// What a loaded libnccl says of itself:
///   {"event":"library","asked":...,"path":...,"device":"8:1","inode":N,"code":22809,"version":"2.28.9"}
Result<nlohmann::json> describe_nccl(const DynamicLibrary& library);

}  // namespace nlaunch::probe
