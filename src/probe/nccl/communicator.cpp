#include "probe/nccl/communicator.h"

#include <chrono>
#include <cstring>
#include <thread>

#include "probe/gpu/call.h"
#include "probe/rank/expected.h"

namespace nlaunch::probe {
namespace {

using namespace std::chrono_literals;

constexpr int kPoison = 0xA5;
constexpr unsigned kWarmUp = 20;
constexpr unsigned kBatches = 3;

ncclDataType_t nccl_type(DataType type) {
  switch (type) {
    case DataType::f32:
      return ncclFloat32;
    case DataType::f16:
      return ncclFloat16;
    case DataType::bf16:
      return ncclBfloat16;
    case DataType::i32:
      return ncclUint32;
  }
  return ncclUint32;
}

/// The id that rank 0 creates and sends to the others.
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
  if (!bytes) return failure("probe.input", "standard input closed before the communicator id arrived");
  std::memcpy(id.internal, bytes->data(), std::min(bytes->size(), sizeof(id.internal)));
  return id;
}

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(const NcclLibrary& nccl, GpuBuffers& buffers, ncclComm_t comm, const JoinRequest& request)
      : nccl_(nccl), buffers_(buffers), comm_(comm), request_(request) {}

  Result<Comparison> check(Collective op, std::uint64_t bytes) override;
  Result<double> time(Collective op, std::uint64_t bytes) override;
  Result<std::vector<double>> run(const Workload& workload) override;

 private:
  Result<void> launch(const Operation& operation);
  Result<void> launch_step(const std::vector<Operation>& step);
  Result<void> exchange(std::uint64_t count, ncclDataType_t type);
  Result<void> wait();
  Result<void> settle(const char* call, ncclResult_t result);
  Result<double> rough(Operation operation);
  Result<unsigned> agree(double seconds);
  Result<std::vector<double>> timed(const std::vector<Operation>& warm_up, const std::vector<Operation>& step,
                                    unsigned steps);
  Result<Comparison> compare(Collective op, std::uint64_t elements);

  const NcclLibrary& nccl_;
  GpuBuffers& buffers_;
  ncclComm_t comm_;
  JoinRequest request_;
};

/// A communicator that the environment made non-blocking (NCCL_COMM_BLOCKING=0) returns "in progress".
Result<void> NcclCommunicator::settle(const char* call, ncclResult_t result) {
  while (result == ncclInProgress) {
    if (const auto asked = nccl_.comm_get_async_error(comm_, &result); asked != ncclSuccess) result = asked;
    if (result == ncclInProgress) std::this_thread::sleep_for(100us);
  }
  if (result == ncclSuccess) return {};
  return failure("probe.nccl", "{}", nccl_.describe(call, result));
}

/// All ranks at the same time: to the next, from the previous.
Result<void> NcclCommunicator::exchange(std::uint64_t count, ncclDataType_t type) {
  if (nccl_.send == nullptr || nccl_.recv == nullptr) {
    return failure("probe.unavailable", "this libnccl has no ncclSend");
  }
  const int next = (request_.rank + 1) % request_.size;
  const int before = (request_.rank + request_.size - 1) % request_.size;
  nccl_.group_start();
  const auto sent = nccl_.send(buffers_.send, count, type, next, comm_, buffers_.stream);
  const auto received = nccl_.recv(buffers_.receive, count, type, before, comm_, buffers_.stream);
  const auto ended = nccl_.group_end();
  if (auto done = settle("ncclSend", sent); !done) return done;
  if (auto done = settle("ncclRecv", received); !done) return done;
  return settle("ncclGroupEnd", ended);
}

Result<void> NcclCommunicator::launch(const Operation& operation) {
  const auto type = nccl_type(operation.type);
  const auto shape =
      shape_of(operation.op, operation.bytes / size_of(operation.type), static_cast<unsigned>(request_.size));
  auto* const send = buffers_.send;
  auto* const receive = buffers_.receive;
  auto* const stream = buffers_.stream;
  switch (operation.op) {
    case Collective::all_reduce:
      return settle("ncclAllReduce",
                    nccl_.all_reduce(send, receive, shape.send, type, ncclSum, comm_, stream));
    case Collective::broadcast:
      return settle("ncclBroadcast", nccl_.broadcast(send, receive, shape.send, type, 0, comm_, stream));
    case Collective::all_gather:
      return settle("ncclAllGather", nccl_.all_gather(send, receive, shape.send, type, comm_, stream));
    case Collective::reduce_scatter:
      return settle("ncclReduceScatter",
                    nccl_.reduce_scatter(send, receive, shape.receive, type, ncclSum, comm_, stream));
    case Collective::send_recv:
      return exchange(shape.send, type);
  }
  return {};
}

Result<void> NcclCommunicator::launch_step(const std::vector<Operation>& step) {
  for (const auto& operation : step) {
    for (std::uint32_t i = 0; i < operation.count; ++i) {
      if (auto launched = launch(operation); !launched) return launched;
    }
  }
  return {};
}

/// Waits for the stream, and gives up if NCCL reports an error, as it does if another rank has exited.
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

Result<Comparison> NcclCommunicator::check(Collective op, std::uint64_t bytes) {
  const auto elements = bytes / sizeof(std::uint32_t);
  const auto rank = static_cast<std::uint32_t>(request_.rank);
  auto done = cuda("fill kernel", fill_terms(buffers_.send, elements, rank, buffers_.stream));
  if (done)
    done = cuda("cudaMemsetAsync", cudaMemsetAsync(buffers_.receive, kPoison, bytes, buffers_.stream));
  if (done) done = launch({op, bytes, DataType::i32, 1});
  if (done) done = wait();
  if (!done) return std::unexpected(done.error());
  return compare(op, elements);
}

Result<Comparison> NcclCommunicator::compare(Collective op, std::uint64_t elements) {
  const auto ranks = static_cast<unsigned>(request_.size);
  const auto stretches = expected_in(op, elements, static_cast<unsigned>(request_.rank), ranks);
  auto done = cuda("clear kernel", clear_verdict(buffers_.comparison, buffers_.stream));
  for (const auto& one : stretches) {
    if (!done) break;
    done = cuda("compare kernel",
                compare_elements(buffers_.receive + one.offset, one.count, one.first, one.weight, one.offset,
                                 buffers_.comparison, buffers_.stream));
  }
  DeviceVerdict seen{};
  if (done)
    done = cuda("cudaMemcpyAsync", cudaMemcpyAsync(&seen, buffers_.comparison, sizeof(seen),
                                                   cudaMemcpyDeviceToHost, buffers_.stream));
  if (done) done = cuda("cudaStreamSynchronize", cudaStreamSynchronize(buffers_.stream));
  std::uint32_t found = 0;
  if (done && seen.wrong > 0)
    done = cuda("cudaMemcpy", cudaMemcpy(&found, buffers_.receive + seen.first_wrong, sizeof(found),
                                         cudaMemcpyDeviceToHost));
  if (!done) return std::unexpected(done.error());
  if (seen.wrong == 0) return judge(stretches, 0, 0, 0, ranks);
  return judge(stretches, seen.wrong, seen.first_wrong, found, ranks);
}

/// Seconds of one operation, from two after a first one that sets up the connections.
Result<double> NcclCommunicator::rough(Operation operation) {
  operation.count = 1;
  auto done = launch(operation);
  if (done) done = wait();
  operation.count = 2;
  const auto begin = std::chrono::steady_clock::now();
  if (done) done = launch_step({operation});
  if (done) done = wait();
  if (!done) return std::unexpected(done.error());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 2;
}

/// How many operations a batch has, decided by rank 0: all ranks must launch the same number.
Result<unsigned> NcclCommunicator::agree(double seconds) {
  constexpr double kBatch = 0.010;  // seconds
  constexpr double kLeast = 1;
  constexpr double kMost = 200;
  auto value = static_cast<std::uint32_t>(std::clamp(kBatch / seconds, kLeast, kMost));
  auto done = cuda("cudaMemcpy", cudaMemcpy(buffers_.send, &value, sizeof(value), cudaMemcpyHostToDevice));
  if (done) done = launch({Collective::broadcast, sizeof(value), DataType::i32, 1});
  if (done) done = wait();
  if (done)
    done = cuda("cudaMemcpy", cudaMemcpy(&value, buffers_.receive, sizeof(value), cudaMemcpyDeviceToHost));
  if (!done) return std::unexpected(done.error());
  return value;
}

/// All steps are launched without a pause: no wait for the GPU in between.
Result<std::vector<double>> NcclCommunicator::timed(const std::vector<Operation>& warm_up,
                                                    const std::vector<Operation>& step, unsigned steps) {
  std::vector<cudaEvent_t> marks(steps + 1);
  Result<void> done;
  for (auto& mark : marks) {
    if (done) done = cuda("cudaEventCreate", cudaEventCreate(&mark));
  }
  if (done) done = launch_step(warm_up);
  if (done) done = cuda("cudaEventRecord", cudaEventRecord(marks[0], buffers_.stream));
  for (std::size_t i = 1; i < marks.size() && done; ++i) {
    done = launch_step(step);
    if (done) done = cuda("cudaEventRecord", cudaEventRecord(marks[i], buffers_.stream));
  }
  if (done) done = wait();
  std::vector<double> seconds;
  for (std::size_t i = 1; i < marks.size() && done; ++i) {
    float milliseconds = 0;
    done = cuda("cudaEventElapsedTime", cudaEventElapsedTime(&milliseconds, marks[i - 1], marks[i]));
    seconds.push_back(static_cast<double>(milliseconds) / 1e3);
  }
  for (auto* mark : marks) cudaEventDestroy(mark);
  if (!done) return std::unexpected(done.error());
  return seconds;
}

Result<double> NcclCommunicator::time(Collective op, std::uint64_t bytes) {
  Operation operation{op, bytes, DataType::i32, 1};
  const auto seconds = rough(operation);
  if (!seconds) return std::unexpected(seconds.error());
  const auto iterations = agree(*seconds);
  if (!iterations) return std::unexpected(iterations.error());
  auto warm_up = operation;
  warm_up.count = std::min(kWarmUp, *iterations);
  operation.count = *iterations;
  auto batches = timed({warm_up}, {operation}, kBatches);
  if (!batches) return std::unexpected(batches.error());
  return median(std::move(*batches)) / *iterations;
}

Result<std::vector<double>> NcclCommunicator::run(const Workload& workload) {
  std::vector<Operation> warm_up;
  for (std::uint32_t i = 0; i < workload.warm_up; ++i)
    warm_up.insert(warm_up.end(), workload.step.begin(), workload.step.end());
  return timed(warm_up, workload.step, workload.steps);
}

}  // namespace

Result<void> GpuBuffers::reserve(std::uint64_t largest) {
  if (bytes >= largest) return {};
  auto done = cuda("cudaStreamCreate", stream == nullptr ? cudaStreamCreate(&stream) : cudaSuccess);
  if (done) done = cuda("cudaMalloc", cudaMalloc(&comparison, sizeof(*comparison)));
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

Result<ncclComm_t> init_nccl(const NcclLibrary& nccl, const JoinRequest& request) {
  const auto id = exchange_id(nccl, request);
  if (!id) return std::unexpected(id.error());
  ncclComm_t comm = nullptr;
  auto result = nccl.comm_init_rank(&comm, request.size, *id, request.rank);
  while (result == ncclInProgress && comm != nullptr) {
    if (nccl.comm_get_async_error(comm, &result) != ncclSuccess) break;
    std::this_thread::sleep_for(1ms);
  }
  if (result != ncclSuccess) return failure("probe.nccl", "{}", nccl.describe("ncclCommInitRank", result));
  return comm;
}

Result<std::unique_ptr<Communicator>> join_nccl(const NcclLibrary& nccl, GpuBuffers& buffers,
                                                const JoinRequest& request) {
  if (auto room = buffers.reserve(request.largest); !room) return std::unexpected(room.error());
  const auto comm = init_nccl(nccl, request);
  if (!comm) return std::unexpected(comm.error());
  return std::make_unique<NcclCommunicator>(nccl, buffers, *comm, request);
}

}  // namespace nlaunch::probe
