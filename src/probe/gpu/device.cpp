#include <array>
#include <optional>
#include <thread>
#include <utility>

#include "probe/gpu/busy.h"
#include "probe/gpu/rank.h"
#include "probe/gpu/staging.h"
#include "probe/library.h"
#include "probe/nccl/rehearsal.h"
#include "probe/nvml/nvml.h"
#include "probe/output.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;

/// "GPU-6b1f...", as NVML and nvidia-smi write it.
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

class CudaRank : public GpuRank {
 public:
  CudaRank(json gpu, std::optional<NcclLibrary> nccl, json library)
      : gpu_(std::move(gpu)), nccl_(std::move(nccl)), library_(std::move(library)) {}

  [[nodiscard]] json gpu() const override { return gpu_; }
  [[nodiscard]] json library() const override { return library_; }
  [[nodiscard]] std::string last_error() const override { return nccl_ ? nccl_->last_error() : ""; }

  Result<std::unique_ptr<Communicator>> join(const JoinRequest& request) override {
    if (auto there = library_there(); !there) return std::unexpected(there.error());
    return join_nccl(*nccl_, buffers_, request);
  }

  Result<std::unique_ptr<Rehearsal>> rehearse(const Drill& drill,
                                              const std::vector<JoinRequest>& requests) override {
    if (auto there = library_there(); !there) return std::unexpected(there.error());
    return rehearse_nccl(*nccl_, buffers_, drill, requests);
  }

  std::unique_ptr<DeviceCopies> make_copies() override { return make_device_copies(); }
  Result<std::unique_ptr<GpuLoad>> keep_busy() override { return start_load(gpu_["device"].get<int>()); }

  bool reread_debug_settings() override {
    if (!nccl_ || nccl_->reset_debug == nullptr) return false;
    nccl_->reset_debug();
    return true;
  }

 private:
  [[nodiscard]] Result<void> library_there() const {
    if (nccl_) return {};
    return failure("probe.unavailable", "no libnccl: {}",
                   library_.is_null() ? "none was requested" : library_.value("error", "not loaded"));
  }

  json gpu_;
  std::optional<NcclLibrary> nccl_;
  json library_;
  GpuBuffers buffers_;
};

/// Loading a libnccl and querying NVML take tens of milliseconds, the CUDA context a second: done in
/// parallel.
struct Meanwhile {
  std::optional<Result<NcclLibrary>> nccl;
  Result<NvmlFacts> nvml = NvmlFacts{};
};

Meanwhile load(const std::string& library) {
  Meanwhile out;
  if (!library.empty()) {
    const Phase phase("load libnccl");
    out.nccl = NcclLibrary::open(library);
  }
  const Phase phase("ask NVML");
  out.nvml = ask_nvml();
  return out;
}

void add_nvml(json& gpu, const Result<NvmlFacts>& nvml) {
  if (!nvml) {
    gpu["nvml_error"] = text_of(nvml.error());
    return;
  }
  const auto bus_id = gpu["bus_id"].get<std::string>();
  for (const auto& known : nvml->gpus) {
    if (full_bus_id(known.bus_id) != bus_id) continue;
    gpu["nvml_uuid"] = known.uuid;
    gpu["domain"] = known.domain;
  }
  if (!gpu.contains("nvml_uuid")) {
    gpu["nvml_error"] = fmt::format("NVML has no GPU at {}", bus_id);
  }
}

Result<json> describe_gpu(int device, int visible) {
  std::array<char, 32> bus{};
  cudaDeviceProp properties{};
  std::size_t free = 0;
  std::size_t total = 0;
  auto error = cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device);
  if (error == cudaSuccess) error = cudaGetDeviceProperties(&properties, device);
  if (error == cudaSuccess) error = cudaMemGetInfo(&free, &total);
  if (error != cudaSuccess) {
    return failure("probe.cuda", "CUDA device {} cannot be described: {}", device, cudaGetErrorString(error));
  }
  return json{{"device", device},
              {"bus_id", full_bus_id(bus.data())},
              {"uuid", uuid_text(properties.uuid)},
              {"name", properties.name},
              {"free_bytes", free},
              {"total_bytes", total},
              {"visible", visible}};
}

/// Creates the context; the error tells a machine without a driver from a GPU that does not work.
Result<json> take_gpu(int device) {
  const Phase phase("open the GPU");
  int visible = 0;
  auto error = cudaGetDeviceCount(&visible);
  if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice) {
    return failure("probe.unavailable", "CUDA has no device here: {}", cudaGetErrorString(error));
  }
  if (error == cudaSuccess && device >= visible) {
    return failure("probe.cuda", "CUDA device {} does not exist: {} visible here", device, visible);
  }
  if (error == cudaSuccess) error = cudaSetDevice(device);
  if (error == cudaSuccess) error = cudaFree(nullptr);
  if (error != cudaSuccess) {
    return failure("probe.cuda", "CUDA device {} cannot be used: {}", device, cudaGetErrorString(error));
  }
  return describe_gpu(device, visible);
}

}  // namespace

Result<std::unique_ptr<GpuRank>> open_gpu_rank(int device, const std::string& library) {
  Meanwhile meanwhile;
  std::thread loader([&] { meanwhile = load(library); });
  auto gpu = take_gpu(device);
  loader.join();
  if (!gpu) return std::unexpected(gpu.error());
  add_nvml(*gpu, meanwhile.nvml);
  json description;
  std::optional<NcclLibrary> nccl;
  if (meanwhile.nccl && *meanwhile.nccl) {
    nccl = **meanwhile.nccl;
    auto said = describe_nccl(nccl->library);
    description = said ? *said : json{{"error", text_of(said.error())}};
  } else if (meanwhile.nccl) {
    description = {{"error", text_of(meanwhile.nccl->error())}};
  }
  if (!library.empty()) description["asked"] = library;
  return std::make_unique<CudaRank>(std::move(*gpu), std::move(nccl), std::move(description));
}

}  // namespace nlaunch::probe
