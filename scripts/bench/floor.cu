// The least that a check of NCCL can do: one process a GPU, a CUDA context, a communicator, one all-reduce
// whose every element is checked, then 200 of them timed. What nlaunch's preflight takes is judged against
// the whole of this with one size; more sizes are for comparing the times of an all-reduce.
//   nvcc -O2 -std=c++17 floor.cu -o floor -lnccl && ./floor GPUS BYTES...
#include <cuda_runtime.h>
#include <nccl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

namespace {

constexpr int kWarmUp = 20;
constexpr int kTimed = 200;

/// In memory that all ranks share.
struct Shared {
  ncclUniqueId id;
  std::atomic<bool> ready{false};
};

void check(int rank, const char* what, bool good, const char* why) {
  if (good) return;
  std::fprintf(stderr, "rank %d: %s: %s\n", rank, what, why);
  _exit(1);
}
#define CUDA(call)                                                           \
  do {                                                                       \
    cudaError_t status_ = (call);                                            \
    check(rank, #call, status_ == cudaSuccess, cudaGetErrorString(status_)); \
  } while (0)
#define NCCL(call)                                                           \
  do {                                                                       \
    ncclResult_t status_ = (call);                                           \
    check(rank, #call, status_ == ncclSuccess, ncclGetErrorString(status_)); \
  } while (0)

/// What rank `rank` contributes at `i`; small integers, so that the sum is exact.
float element(int rank, size_t i) {
  return static_cast<float>((i % 251) + static_cast<size_t>(rank));
}

void check_sum(int rank, int ranks, const std::vector<float>& values) {
  const float ranks_sum = static_cast<float>(ranks * (ranks - 1) / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    const float expected = static_cast<float>(ranks) * static_cast<float>(i % 251) + ranks_sum;
    check(rank, "all-reduce", values[i] == expected, "an element is wrong");
  }
}

void measure(int rank, int ranks, size_t bytes, ncclComm_t communicator, cudaStream_t stream) {
  std::vector<float> host(bytes / sizeof(float));
  for (size_t i = 0; i < host.size(); ++i) host[i] = element(rank, i);
  float *send = nullptr, *receive = nullptr;
  CUDA(cudaMalloc(&send, bytes));
  CUDA(cudaMalloc(&receive, bytes));
  CUDA(cudaMemcpy(send, host.data(), bytes, cudaMemcpyHostToDevice));
  const auto reduce = [&] {
    NCCL(ncclAllReduce(send, receive, host.size(), ncclFloat, ncclSum, communicator, stream));
  };
  reduce();
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaMemcpy(host.data(), receive, bytes, cudaMemcpyDeviceToHost));
  check_sum(rank, ranks, host);

  cudaEvent_t begin, end;
  CUDA(cudaEventCreate(&begin));
  CUDA(cudaEventCreate(&end));
  for (int i = 0; i < kWarmUp; ++i) reduce();
  CUDA(cudaEventRecord(begin, stream));
  for (int i = 0; i < kTimed; ++i) reduce();
  CUDA(cudaEventRecord(end, stream));
  CUDA(cudaStreamSynchronize(stream));
  float milliseconds = 0;
  CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
  const double seconds = milliseconds / 1e3 / kTimed;
  const double bus = 2.0 * (ranks - 1) / ranks * static_cast<double>(bytes) / seconds;
  if (rank == 0) std::printf("%zu %.1f %.1f\n", bytes, seconds * 1e6, bus / 1e9);
}

int run_rank(int rank, int ranks, const std::vector<size_t>& sizes, Shared& shared) {
  alarm(120);  // a rank whose peer has died would wait for ever
  CUDA(cudaSetDevice(rank));
  CUDA(cudaFree(nullptr));
  if (rank == 0) {
    NCCL(ncclGetUniqueId(&shared.id));
    shared.ready = true;
  }
  while (!shared.ready) usleep(1000);
  ncclComm_t communicator = nullptr;
  NCCL(ncclCommInitRank(&communicator, ranks, shared.id, rank));
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  for (const size_t bytes : sizes) measure(rank, ranks, bytes, communicator, stream);
  std::fflush(stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 0;
  std::vector<size_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (ranks < 2 || sizes.empty()) {
    std::fprintf(
        stderr,
        "usage: %s GPUS BYTES...   (two GPUs or more; prints bytes, microseconds, GB/s of bus bandwidth)\n",
        argv[0]);
    return 64;
  }
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 70;
  auto& shared = *new (memory) Shared;
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() == 0) _exit(run_rank(rank, ranks, sizes, shared));
  }
  bool good = true;
  int status = 0;
  while (wait(&status) > 0) good = good && status == 0;
  return good ? 0 : 1;
}
