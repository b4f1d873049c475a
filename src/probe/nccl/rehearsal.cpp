#include "probe/nccl/rehearsal.h"

#include <array>
#include <thread>

#include "probe/gpu/call.h"

namespace nlaunch::probe {
namespace {

constexpr int kPoisonOfDrill = 0xA5;
constexpr std::uint64_t kParts = 2;

class NcclRehearsal : public Rehearsal {
 public:
  NcclRehearsal(const NcclLibrary& nccl, GpuBuffers& buffers, const Drill& drill, const JoinRequest& request)
      : nccl_(nccl),
        buffers_(buffers),
        captured_(drill.captured),
        elements_(drill.bytes / sizeof(std::uint32_t)),
        rank_(static_cast<std::uint32_t>(request.rank)),
        ranks_(static_cast<std::uint32_t>(request.size)) {}

  Result<void> join(const std::vector<JoinRequest>& requests) {
    auto done = buffers_.reserve(kParts * elements_ * sizeof(std::uint32_t));
    if (done)
      done = cuda("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&second_, cudaStreamNonBlocking));
    for (const auto& request : requests) {
      if (!done) break;
      const auto comm = init_nccl(nccl_, request);
      if (!comm) return std::unexpected(comm.error());
      comms_.push_back(*comm);
    }
    return done;
  }

  /// NCCL connects at the first use of an algorithm, which waits for every rank on the host.
  Result<void> prepare() override {
    for (unsigned i = 0; i < comms_.size(); ++i) {
      auto done = launch(DrillLaunch{i, 0, 0});
      if (done) done = wait();
      if (!done) return done;
    }
    const auto all = kParts * elements_;
    auto done = cuda("fill kernel", fill_terms(buffers_.send, all, rank_, buffers_.stream));
    if (done)
      done = cuda("cudaMemsetAsync", cudaMemsetAsync(buffers_.receive, kPoisonOfDrill,
                                                     all * sizeof(std::uint32_t), buffers_.stream));
    if (done) done = wait();
    return done;
  }

  Result<void> launch(const std::vector<DrillLaunch>& launches) override {
    done_elements_ = launches.size() * elements_;
    if (launches.empty()) return {};
    if (captured_) return launch_captured(launches);
    return launch_all(launches);
  }

  Result<bool> finished() override {
    for (auto* stream : {buffers_.stream, second_}) {
      const auto state = cudaStreamQuery(stream);
      if (state == cudaErrorNotReady) {
        cudaGetLastError();
        if (auto well = ask_communicators(); !well) return std::unexpected(well.error());
        return false;
      }
      if (auto done = cuda("collective", state); !done) return std::unexpected(done.error());
    }
    return true;
  }

  Result<std::uint64_t> wrong() override {
    auto done = cuda("clear kernel", clear_verdict(buffers_.comparison, buffers_.stream));
    if (done)
      done = cuda("compare kernel", compare_elements(buffers_.receive, done_elements_, 0, sum_weight(ranks_),
                                                     0, buffers_.comparison, buffers_.stream));
    DeviceVerdict seen{};
    if (done)
      done = cuda("cudaMemcpyAsync", cudaMemcpyAsync(&seen, buffers_.comparison, sizeof(seen),
                                                     cudaMemcpyDeviceToHost, buffers_.stream));
    if (done) done = cuda("cudaStreamSynchronize", cudaStreamSynchronize(buffers_.stream));
    if (!done) return std::unexpected(done.error());
    return seen.wrong;
  }

 private:
  Result<void> launch(const DrillLaunch& one) {
    const auto offset = one.part * elements_;
    auto* comm = comms_.at(one.communicator);
    auto result = nccl_.all_reduce(buffers_.send + offset, buffers_.receive + offset, elements_, ncclUint32,
                                   ncclSum, comm, one.stream == 0 ? buffers_.stream : second_);
    while (result == ncclInProgress) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      if (const auto asked = nccl_.comm_get_async_error(comm, &result); asked != ncclSuccess) result = asked;
    }
    if (result == ncclSuccess) return {};
    return failure("probe.nccl", "{}", nccl_.describe("ncclAllReduce", result));
  }

  Result<void> launch_all(const std::vector<DrillLaunch>& launches) {
    for (const auto& one : launches) {
      if (auto done = launch(one); !done) return done;
    }
    return {};
  }

  /// A capture that has started is always ended, even on failure.
  Result<void> launch_captured(const std::vector<DrillLaunch>& launches) {
    auto done = cuda("cudaStreamBeginCapture",
                     cudaStreamBeginCapture(buffers_.stream, cudaStreamCaptureModeThreadLocal));
    if (!done) return done;
    const auto launched = launch_all(launches);
    cudaGraph_t graph = nullptr;
    done = cuda("cudaStreamEndCapture", cudaStreamEndCapture(buffers_.stream, &graph));
    if (!launched) return launched;
    cudaGraphExec_t executable = nullptr;
    if (done) done = cuda("cudaGraphInstantiate", cudaGraphInstantiate(&executable, graph, 0));
    if (done) done = cuda("cudaGraphLaunch", cudaGraphLaunch(executable, buffers_.stream));
    return done;
  }

  Result<void> ask_communicators() {
    for (auto* comm : comms_) {
      ncclResult_t error = ncclSuccess;
      nccl_.comm_get_async_error(comm, &error);
      if (error != ncclSuccess && error != ncclInProgress)
        return failure("probe.nccl", "{}", nccl_.describe("collective", error));
    }
    return {};
  }

  Result<void> wait() {
    for (;;) {
      const auto done = finished();
      if (!done) return std::unexpected(done.error());
      if (*done) return {};
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  const NcclLibrary& nccl_;
  GpuBuffers& buffers_;
  bool captured_;
  std::uint64_t elements_;  ///< of one all-reduce
  std::uint32_t rank_;
  std::uint32_t ranks_;
  std::uint64_t done_elements_ = 0;
  cudaStream_t second_ = nullptr;
  std::vector<ncclComm_t> comms_;
};

}  // namespace

Result<std::unique_ptr<Rehearsal>> rehearse_nccl(const NcclLibrary& nccl, GpuBuffers& buffers,
                                                 const Drill& drill,
                                                 const std::vector<JoinRequest>& requests) {
  auto made = std::make_unique<NcclRehearsal>(nccl, buffers, drill, requests.front());
  if (auto joined = made->join(requests); !joined) return std::unexpected(joined.error());
  return made;
}

}  // namespace nlaunch::probe
