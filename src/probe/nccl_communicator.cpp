#include "probe/nccl_communicator.h"

#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "probe/pattern.h"

namespace nlaunch::probe {
namespace {

using namespace std::chrono_literals;

constexpr int kPoison = 0xA5;
constexpr unsigned kWarmUp = 20;
constexpr int kBatches = 3;

Result<void> cuda(const char* call, cudaError_t error) {
  if (error == cudaSuccess) return {};
  return failure("probe.cuda", "{}: {}", call, cudaGetErrorString(error));
}

/// The id that rank 0 makes and tells the others.
Result<ncclUniqueId> exchange_id(const NcclLibrary& nccl, const JoinRequest& request) {
  ncclUniqueId id{};
  if (request.rank == 0) {
    if (const auto error = nccl.get_unique_id(&id); error != ncclSuccess) {
      return failure("probe.nccl", "{}", nccl.describe("ncclGetUniqueId", error));
    }
    request.give("id", std::string(id.internal, sizeof(id.internal)));
    return id;
  }
  const auto bytes = request.take("id");
  if (!bytes) return failure("probe.input", "standard input ended before the communicator's id came");
  std::memcpy(id.internal, bytes->data(), std::min(bytes->size(), sizeof(id.internal)));
  return id;
}

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(const NcclLibrary& nccl, GpuBuffers& buffers, ncclComm_t comm, const JoinRequest& request)
      : nccl_(nccl), buffers_(buffers), comm_(comm), request_(request) {}

  Result<Verdict> check(Op op, std::uint64_t bytes) override;
  Result<double> time(Op op, std::uint64_t bytes) override;

 private:
  Result<void> launch(Op op, std::uint64_t count);
  Result<void> launch_many(Op op, std::uint64_t count, unsigned times);
  Result<void> wait();
  Result<void> settle(const char* call, ncclResult_t result);
  Result<double> rough(Op op, std::uint64_t count);
  Result<unsigned> agree(double seconds);
  Result<double> batches(Op op, std::uint64_t count, unsigned iterations);
  Result<Verdict> compare(Op op, std::uint64_t count);

  const NcclLibrary& nccl_;
  GpuBuffers& buffers_;
  ncclComm_t comm_;
  JoinRequest request_;
};

/// A communicator that the environment made non-blocking (NCCL_COMM_BLOCKING=0) says "in progress".
Result<void> NcclCommunicator::settle(const char* call, ncclResult_t result) {
  while (result == ncclInProgress) {
    if (const auto asked = nccl_.comm_get_async_error(comm_, &result); asked != ncclSuccess) result = asked;
    if (result == ncclInProgress) std::this_thread::sleep_for(100us);
  }
  if (result == ncclSuccess) return {};
  return failure("probe.nccl", "{}", nccl_.describe(call, result));
}

Result<void> NcclCommunicator::launch(Op op, std::uint64_t count) {
  if (op == Op::all_reduce) {
    return settle("ncclAllReduce", nccl_.all_reduce(buffers_.send, buffers_.receive, count, ncclUint32,
                                                    ncclSum, comm_, buffers_.stream));
  }
  return settle("ncclBroadcast", nccl_.broadcast(buffers_.send, buffers_.receive, count, ncclUint32, 0, comm_,
                                                 buffers_.stream));
}

Result<void> NcclCommunicator::launch_many(Op op, std::uint64_t count, unsigned times) {
  for (unsigned i = 0; i < times; ++i) {
    if (auto launched = launch(op, count); !launched) return launched;
  }
  return {};
}

/// Waits for the stream, and gives up when NCCL reports an error, as it does when another rank is gone.
Result<void> NcclCommunicator::wait() {
  for (;;) {
    const auto state = cudaStreamQuery(buffers_.stream);
    if (state != cudaErrorNotReady) return cuda("collective", state);
    ncclResult_t error = ncclSuccess;
    nccl_.comm_get_async_error(comm_, &error);
    if (error != ncclSuccess && error != ncclInProgress) {
      return failure("probe.nccl", "{}", nccl_.describe("collective", error));
    }
    std::this_thread::sleep_for(50us);
  }
}

Result<Verdict> NcclCommunicator::check(Op op, std::uint64_t bytes) {
  const auto count = bytes / sizeof(std::uint32_t);
  const auto rank = static_cast<std::uint32_t>(request_.rank);
  auto done = cuda("fill kernel", fill_terms(buffers_.send, count, rank, buffers_.stream));
  if (done)
    done = cuda("cudaMemsetAsync", cudaMemsetAsync(buffers_.receive, kPoison, bytes, buffers_.stream));
  if (done) done = launch(op, count);
  if (done) done = wait();
  if (!done) return std::unexpected(done.error());
  return compare(op, count);
}

Result<Verdict> NcclCommunicator::compare(Op op, std::uint64_t count) {
  const auto ranks = static_cast<std::uint32_t>(request_.size);
  const auto weight = op == Op::all_reduce ? sum_weight(ranks) : 1U;
  DeviceVerdict seen{};
  auto done = cuda("compare kernel",
                   compare_elements(buffers_.receive, count, weight, buffers_.verdict, buffers_.stream));
  if (done)
    done = cuda("cudaMemcpyAsync", cudaMemcpyAsync(&seen, buffers_.verdict, sizeof(seen),
                                                   cudaMemcpyDeviceToHost, buffers_.stream));
  if (done) done = cuda("cudaStreamSynchronize", cudaStreamSynchronize(buffers_.stream));
  Verdict verdict;
  verdict.elements = count;
  verdict.wrong = seen.wrong;
  if (done && seen.wrong > 0) {
    verdict.first_wrong = seen.first_wrong;
    verdict.expected = expected_element(weight, seen.first_wrong);
    done = cuda("cudaMemcpy", cudaMemcpy(&verdict.found, buffers_.receive + seen.first_wrong,
                                         sizeof(verdict.found), cudaMemcpyDeviceToHost));
    if (op == Op::all_reduce) {
      verdict.missing = missing_rank(ranks, seen.first_wrong, verdict.expected, verdict.found);
    }
  }
  if (!done) return std::unexpected(done.error());
  return verdict;
}

/// Seconds of one operation, from two after a first one that pays for the connections.
Result<double> NcclCommunicator::rough(Op op, std::uint64_t count) {
  auto done = launch(op, count);
  if (done) done = wait();
  const auto begin = std::chrono::steady_clock::now();
  if (done) done = launch_many(op, count, 2);
  if (done) done = wait();
  if (!done) return std::unexpected(done.error());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 2;
}

/// How many operations a batch has, as rank 0 sees it: all ranks must launch the same.
Result<unsigned> NcclCommunicator::agree(double seconds) {
  constexpr double kBatch = 0.010;  // seconds
  constexpr double kLeast = 3;
  constexpr double kMost = 200;
  auto value = static_cast<std::uint32_t>(std::clamp(kBatch / seconds, kLeast, kMost));
  auto done = cuda("cudaMemcpy", cudaMemcpy(buffers_.send, &value, sizeof(value), cudaMemcpyHostToDevice));
  if (done) done = launch(Op::broadcast, 1);
  if (done) done = wait();
  if (done)
    done = cuda("cudaMemcpy", cudaMemcpy(&value, buffers_.receive, sizeof(value), cudaMemcpyDeviceToHost));
  if (!done) return std::unexpected(done.error());
  return value;
}

/// All batches are launched without a pause: the GPU is never waited for in between.
Result<double> NcclCommunicator::batches(Op op, std::uint64_t count, unsigned iterations) {
  std::array<cudaEvent_t, kBatches + 1> marks{};
  Result<void> done;
  for (auto& mark : marks) {
    if (done) done = cuda("cudaEventCreate", cudaEventCreate(&mark));
  }
  if (done) done = launch_many(op, count, std::min(kWarmUp, iterations));
  if (done) done = cuda("cudaEventRecord", cudaEventRecord(marks[0], buffers_.stream));
  for (std::size_t i = 1; i < marks.size() && done; ++i) {
    done = launch_many(op, count, iterations);
    if (done) done = cuda("cudaEventRecord", cudaEventRecord(marks[i], buffers_.stream));
  }
  if (done) done = wait();
  std::vector<double> seconds;
  for (std::size_t i = 1; i < marks.size() && done; ++i) {
    float milliseconds = 0;
    done = cuda("cudaEventElapsedTime", cudaEventElapsedTime(&milliseconds, marks[i - 1], marks[i]));
    seconds.push_back(static_cast<double>(milliseconds) / 1e3 / iterations);
  }
  for (auto* mark : marks) cudaEventDestroy(mark);
  if (!done) return std::unexpected(done.error());
  return median(std::move(seconds));
}

Result<double> NcclCommunicator::time(Op op, std::uint64_t bytes) {
  const auto count = bytes / sizeof(std::uint32_t);
  const auto seconds = rough(op, count);
  if (!seconds) return std::unexpected(seconds.error());
  const auto iterations = agree(*seconds);
  if (!iterations) return std::unexpected(iterations.error());
  return batches(op, count, *iterations);
}

}  // namespace

Result<void> GpuBuffers::reserve(std::uint64_t largest) {
  if (bytes >= largest) return {};
  auto done = cuda("cudaStreamCreate", stream == nullptr ? cudaStreamCreate(&stream) : cudaSuccess);
  if (done) done = cuda("cudaMalloc", cudaMalloc(&verdict, sizeof(*verdict)));
  for (auto** buffer : {&send, &receive}) {
    if (!done) return done;
    cudaFree(*buffer);
    if (const auto error = cudaMalloc(buffer, largest); error != cudaSuccess) {
      std::size_t free = 0;
      std::size_t total = 0;
      cudaMemGetInfo(&free, &total);
      return failure("probe.cuda", "cudaMalloc of {}: {} ({} of {} are free)", format_size(largest),
                     cudaGetErrorString(error), format_size(free), format_size(total));
    }
  }
  bytes = largest;
  return done;
}

Result<std::unique_ptr<Communicator>> join_nccl(const NcclLibrary& nccl, GpuBuffers& buffers,
                                                const JoinRequest& request) {
  if (auto room = buffers.reserve(request.largest); !room) return std::unexpected(room.error());
  const auto id = exchange_id(nccl, request);
  if (!id) return std::unexpected(id.error());
  ncclComm_t comm = nullptr;
  auto result = nccl.comm_init_rank(&comm, request.size, *id, request.rank);
  while (result == ncclInProgress && comm != nullptr) {
    if (nccl.comm_get_async_error(comm, &result) != ncclSuccess) break;
    std::this_thread::sleep_for(1ms);
  }
  if (result != ncclSuccess) return failure("probe.nccl", "{}", nccl.describe("ncclCommInitRank", result));
  return std::make_unique<NcclCommunicator>(nccl, buffers, comm, request);
}

}  // namespace nlaunch::probe
