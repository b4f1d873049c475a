#include "evidence/source.h"

#include <algorithm>

#include "sys/files.h"

namespace nlaunch::evidence {

using namespace std::chrono_literals;

const std::vector<Source> kProcessSources{
    {"processes", 5s, 0, collect_processes},
    {"Python stacks", 10s, 0, collect_python_stacks},
    {"native stacks", 20s, 0, collect_native_stacks},
    {"sockets", 5s, 1, collect_sockets},
    {"libraries", 5s, 1, collect_libraries},
    {"log", 5s, 2, collect_log},
    {"NCCL log", 5s, 2, collect_nccl_logs},
    {"environment", 5s, 2, collect_environment},
    {"NCCL RAS", 15s, 3, collect_ras},
    {"flight recorder", 15s, 4, collect_flight_recorder},
};
const std::vector<Source> kHostSources{
    {"GPUs", 15s, 0, collect_gpus},
    {"kernel log", 5s, 1, collect_kernel_log},
    {"use of the GPUs", 5s, 1, collect_gpu_use},
};

Duration CollectContext::left() const {
  return std::max(Duration(0), std::chrono::duration_cast<Duration>(deadline - Clock::now()));
}

bool CollectContext::write(const std::string& name, const std::string& text) const {
  return sys::write_file_atomically(folder / name, masker.mask(text)).has_value();
}

}  // namespace nlaunch::evidence
