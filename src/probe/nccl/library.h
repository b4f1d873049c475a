#pragma once
#include <nccl.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "probe/dynamic_library.h"

namespace nlaunch::probe {

/// The functions of one libnccl, found at run time. Only those that exist since 2.4 are required.
struct NcclLibrary {
  DynamicLibrary library;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRank) comm_init_rank;
  decltype(&ncclCommGetAsyncError) comm_get_async_error;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclSend) send;                    ///< null before 2.7
  decltype(&ncclRecv) recv;                    ///< null before 2.7
  decltype(&ncclGetLastError) get_last_error;  ///< null before 2.13
  void (*reset_debug)();                       ///< null if the debug settings are read only once per process

  static Result<NcclLibrary> open(const std::string& path);
  /// NCCL's description of its last error; empty if there is none.
  [[nodiscard]] std::string last_error() const;
  /// "ncclAllReduce: unhandled system error: Connection refused"
  [[nodiscard]] std::string describe(const char* call, ncclResult_t error) const;
};

}  // namespace nlaunch::probe
