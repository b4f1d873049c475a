#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "lint/lint_input.h"

/// What NCCL itself reports that it read: the only place where an ineffective setting shows.
namespace nlaunch::lint {

/// A setting as reported in NCCL's log.
struct NcclReportedSetting {
  std::string name;
  std::string value;
};

/// The lines "NAME set by environment to VALUE" of a log at NCCL_DEBUG=INFO with the subsystem ENV, each
/// setting once.
std::vector<NcclReportedSetting> read_nccl_log(std::string_view log);

/// How what NCCL read differs from what the environment sets, one sentence each: a value that arrived
/// differently, a setting that NCCL has but the environment does not, and finally, in one sentence, the
/// settings that NCCL always reports when it reads them but did not report.
std::vector<std::string> compare(const Environment& environment,
                                 const std::vector<NcclReportedSetting>& heard);

}  // namespace nlaunch::lint
