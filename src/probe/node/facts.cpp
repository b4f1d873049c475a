#include "probe/node/facts.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>

#include "base/text.h"
#include "base/version.h"
#include "probe/nvml/nvml.h"
#include "probe/output.h"
#include "probe/question.h"
#include "sys/files.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

std::string boot_id() {
  constexpr std::uint64_t kEnough = 4096;
  const auto text = sys::read_regular_file("/proc/sys/kernel/random/boot_id", kEnough);
  return text ? std::string(text::trim(*text)) : std::string();
}

json limit(int resource) {
  rlimit value{};
  // glibc's prototype requires its own enumeration under C++.
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &value) != 0) return nullptr;
  return value.rlim_cur == RLIM_INFINITY ? json(nullptr) : json(value.rlim_cur);
}

bool opens_userfaultfd(unsigned long flags) {
  const sys::UniqueFd fd(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags)));
  return bool(fd);
}

/// What this user is permitted: without a privilege (CAP_SYS_PTRACE, or vm.unprivileged_userfaultfd=1) only
/// user mode faults can be handled, and only since Linux 5.11.
const char* userfaultfd() {
  constexpr unsigned long kUserModeOnly = 1;  // UFFD_USER_MODE_ONLY
  return opens_userfaultfd(0) ? "all" : opens_userfaultfd(kUserModeOnly) ? "user mode" : "none";
}

json limits() {
  json out{{"memlock", limit(RLIMIT_MEMLOCK)},
           {"nofile", limit(RLIMIT_NOFILE)},
           {"nproc", limit(RLIMIT_NPROC)},
           {"core", limit(RLIMIT_CORE)},
           {"userfaultfd", userfaultfd()}};
  struct statvfs shm {};
  if (::statvfs("/dev/shm", &shm) == 0) {
    out["shm_size"] = std::uint64_t{shm.f_blocks} * shm.f_frsize;
    out["shm_free"] = std::uint64_t{shm.f_bavail} * shm.f_frsize;
  }
  return out;
}

/// NVML can hang if a GPU is faulty, and everything else about the machine is known. Without persistence mode
/// it wakes one GPU after the other, which takes a second each.
Result<NvmlFacts> ask_nvml_in_time() {
  constexpr std::chrono::seconds kLimit{15};
  auto answer = std::make_shared<std::promise<Result<NvmlFacts>>>();
  auto arrives = answer->get_future();
  std::thread([answer] { answer->set_value(ask_nvml()); }).detach();
  if (arrives.wait_for(kLimit) == std::future_status::ready) return arrives.get();
  return failure("probe.nvml", "NVML did not answer within {} s: the driver hangs", kLimit.count());
}

void add_gpus(json& out) {
  out["gpus"] = json::array();
  const auto nvml = ask_nvml_in_time();
  if (!nvml) {
    out["nvml_error"] = text_of(nvml.error());
    const auto& id = nvml.error().items().front().id;
    out["no_driver"] = id == "probe.library" || id == "probe.no-driver";
    return;
  }
  out["driver"] = nvml->driver;
  out["cuda_driver"] = nvml->cuda_driver;
  out["gpu_errors"] = nvml->errors;
  for (const auto& gpu : nvml->gpus) {
    out["gpus"].push_back({{"index", gpu.index},
                           {"bus_id", gpu.bus_id},
                           {"uuid", gpu.uuid},
                           {"name", gpu.name},
                           {"memory_total", gpu.memory_total},
                           {"memory_used", gpu.memory_used}});
    if (!gpu.domain.empty()) out["gpus"].back()["domain"] = gpu.domain;
  }
}

json feature(const char* version) {
  return *version == 0 ? json(nullptr) : json(version);
}

}  // namespace

HostIdentity host_identity() {
  const char* given = std::getenv("NCCL_HOSTID");
  if (given != nullptr && *given != 0) return {given, "NCCL_HOSTID"};
  return {host_name() + "/" + boot_id(), "hostname and boot id"};
}

namespace {

/// `facts`: everything about this machine that needs no CUDA context, as one object:
///   event "facts"; hostname, boot_id, host_id, host_id_source, arch, kernel;
///   driver, cuda_driver ("13.0"), gpus [{index, bus_id, uuid, name, memory_total, memory_used}],
///   gpu_errors [text], nvml_error (text, if NVML could not be queried; gpus is then empty), no_driver
///   (bool, with nvml_error: because there is no driver here, and not because it fails); limits {memlock,
///   nofile, nproc, core (null: unlimited), shm_size, shm_free (bytes), userfaultfd ("all", "user mode",
///   "none": what this user can open)}.
json machine_facts(Arguments /*arguments*/) {
  const auto identity = host_identity();
  utsname kernel{};
  ::uname(&kernel);
  json out{{"event", "facts"},
           {"hostname", host_name()},
           {"boot_id", boot_id()},
           {"host_id", identity.id},
           {"host_id_source", identity.source},
           {"arch", kernel.machine},
           {"kernel", kernel.release},
           {"limits", limits()}};
  add_gpus(out);
  return out;
}

const Registered<Question> facts_question{{
    .order = 10,
    .name = "facts",
    .what = "this machine: host, GPUs (from NVML), limits",
    .answer = machine_facts,
}};

/// `version`: the features that were built in; null for those that were not.
///   {"event":"version","nlaunch":"0.1.0","cuda":"13.0","nccl_header":"2.28.9","gloo":"0.5.0","libfabric":"1.17"}
json built_in(Arguments /*arguments*/) {
  return {{"event", "version"},
          {"nlaunch", version()},
          {"cuda", feature(NLAUNCH_CUDA_VERSION)},
          {"nccl_header", feature(NLAUNCH_NCCL_HEADER_VERSION)},
          {"gloo", feature(NLAUNCH_GLOO_VERSION)},
          {"libfabric", feature(NLAUNCH_LIBFABRIC_VERSION)}};
}

const Registered<Question> version_question{{
    .order = 180,
    .name = "version",
    .what = "which features were built in",
    .answer = built_in,
}};

}  // namespace
}  // namespace nlaunch::probe
