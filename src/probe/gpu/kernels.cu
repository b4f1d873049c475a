#include "probe/gpu/kernels.h"
#include "probe/rank/pattern.h"

namespace nlaunch::probe {
/// nvcc would name an anonymous namespace after the path of the source; a release must have the same bytes in
/// every directory.
inline namespace kernels {

constexpr unsigned kThreads = 256;
constexpr uint64_t kMostBlocks = 4096;

unsigned blocks_for(uint64_t count) {
  const uint64_t wanted = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
}

__device__ uint64_t first_index() {
  return uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ uint64_t stride() {
  return uint64_t{gridDim.x} * blockDim.x;
}

__global__ void fill(uint32_t* data, uint64_t count, uint32_t rank) {
  for (uint64_t i = first_index(); i < count; i += stride()) data[i] = term(rank, i);
}

__global__ void clear(DeviceVerdict* comparison) {
  *comparison = {0, ~0ULL};
}

__global__ void compare(const uint32_t* data, uint64_t count, uint64_t first, uint32_t weight,
                        uint64_t offset, DeviceVerdict* comparison) {
  unsigned long long wrong = 0;
  unsigned long long first_wrong = ~0ULL;
  for (uint64_t i = first_index(); i < count; i += stride()) {
    if (data[i] == expected_element(weight, first + i)) continue;
    if (wrong++ == 0) first_wrong = offset + i;
  }
  if (wrong == 0) return;
  atomicAdd(&comparison->wrong, wrong);
  atomicMin(&comparison->first_wrong, first_wrong);
}

}  // namespace kernels

cudaError_t fill_terms(uint32_t* data, uint64_t count, uint32_t rank, cudaStream_t stream) {
  fill<<<blocks_for(count), kThreads, 0, stream>>>(data, count, rank);
  return cudaGetLastError();
}

cudaError_t compare_elements(const uint32_t* data, uint64_t count, uint64_t first, uint32_t weight,
                             uint64_t offset, DeviceVerdict* comparison, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  compare<<<blocks_for(count), kThreads, 0, stream>>>(data, count, first, weight, offset, comparison);
  return cudaGetLastError();
}

cudaError_t clear_verdict(DeviceVerdict* comparison, cudaStream_t stream) {
  clear<<<1, 1, 0, stream>>>(comparison);
  return cudaGetLastError();
}

}  // namespace nlaunch::probe
