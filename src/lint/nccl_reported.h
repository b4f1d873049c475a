#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "lint/lint_input.h"

/// What NCCL itself says that it read: the one place where a setting that had no effect shows.
namespace nlaunch::lint {

/// A setting as NCCL's log tells it.
struct NcclReportedSetting {
  std::string name;
  std::string value;
};

/// The lines "NAME set by environment to VALUE" of a log at NCCL_DEBUG=INFO with the subsystem ENV, each
/// setting once.
std::vector<NcclReportedSetting> read_nccl_log(std::string_view log);

/// How what NCCL read differs from what the environment sets, a sentence each: a value that arrived as
/// another one, a setting that NCCL has and the environment does not, and, last and in one, those that NCCL
/// tells of whenever it reads them and did not tell of.
std::vector<std::string> compare(const Environment& environment,
                                 const std::vector<NcclReportedSetting>& heard);

}  // namespace nlaunch::lint
