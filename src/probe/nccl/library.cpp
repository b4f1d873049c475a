#include "probe/nccl/library.h"

#include "base/text.h"

namespace nlaunch::probe {

Result<NcclLibrary> NcclLibrary::open(const std::string& path) {
  auto opened = DynamicLibrary::open(path);
  if (!opened) return std::unexpected(opened.error());
  NcclLibrary nccl{*opened,
                   opened->find<decltype(&ncclGetUniqueId)>("ncclGetUniqueId"),
                   opened->find<decltype(&ncclCommInitRank)>("ncclCommInitRank"),
                   opened->find<decltype(&ncclCommGetAsyncError)>("ncclCommGetAsyncError"),
                   opened->find<decltype(&ncclAllReduce)>("ncclAllReduce"),
                   opened->find<decltype(&ncclBroadcast)>("ncclBroadcast"),
                   opened->find<decltype(&ncclAllGather)>("ncclAllGather"),
                   opened->find<decltype(&ncclReduceScatter)>("ncclReduceScatter"),
                   opened->find<decltype(&ncclGroupStart)>("ncclGroupStart"),
                   opened->find<decltype(&ncclGroupEnd)>("ncclGroupEnd"),
                   opened->find<decltype(&ncclGetErrorString)>("ncclGetErrorString"),
                   opened->find<decltype(&ncclSend)>("ncclSend"),
                   opened->find<decltype(&ncclRecv)>("ncclRecv"),
                   opened->find<decltype(&ncclGetLastError)>("ncclGetLastError"),
                   opened->find<void (*)()>("ncclResetDebugInit")};
  if (nccl.get_unique_id == nullptr || nccl.comm_init_rank == nullptr ||
      nccl.comm_get_async_error == nullptr || nccl.all_reduce == nullptr || nccl.broadcast == nullptr ||
      nccl.all_gather == nullptr || nccl.reduce_scatter == nullptr || nccl.group_start == nullptr ||
      nccl.group_end == nullptr || nccl.get_error_string == nullptr) {
    return failure("probe.library", "{} is not NCCL: functions of NCCL 2.4 are missing", opened->path());
  }
  return nccl;
}

std::string NcclLibrary::last_error() const {
  const char* text = get_last_error == nullptr ? nullptr : get_last_error(nullptr);
  return text == nullptr ? std::string() : std::string(text::trim(text));
}

std::string NcclLibrary::describe(const char* call, ncclResult_t error) const {
  const auto last = last_error();
  return fmt::format("{}: {}{}{}", call, get_error_string(error), last.empty() ? "" : ": ", last);
}

}  // namespace nlaunch::probe
