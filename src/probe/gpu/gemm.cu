#include <cuda_bf16.h>
#include <cuda_pipeline_primitives.h>
#include <mma.h>

#include "probe/gpu/gemm.h"
#include "probe/rank/pattern.h"

namespace nlaunch::probe {
/// nvcc would name an anonymous namespace after the path of the source; a release must have the same bytes in
/// every directory.
inline namespace gemm {

using Element = __nv_bfloat16;

// A block of eight warps computes a tile of 128 x 256, each warp 64 x 64 of it. Three stages of 32 columns of
// A and B are in flight in shared memory: 90 KiB, which every GPU since compute capability 8.0 has.
constexpr int kTileRows = 128;
constexpr int kTileColumns = 256;
constexpr int kTileDepth = 32;
constexpr int kStages = 3;
constexpr int kThreads = 256;
/// Elements from one row of a stage to the next: eight rows start in different banks, and fragments at
/// multiples of 32 bytes, as load_matrix_sync requires.
constexpr int kStride = kTileDepth + 8;
constexpr int kStageElements = (kTileRows + kTileColumns) * kStride;
constexpr int kSharedBytes = kStages * kStageElements * static_cast<int>(sizeof(Element));

__global__ void fill_inputs(Element* a, Element* b) {
  const uint64_t stride = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < 2 * kGemmElements; i += stride) {
    const int number = static_cast<int>((element_seed(i) >> 8U) & 0xffffU) - 0x8000;
    Element* to = i < kGemmElements ? a + i : b + (i - kGemmElements);
    *to = __float2bfloat16_rn(static_cast<float>(number) / 0x8000);
  }
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
using namespace nvcuda;

constexpr int kWarpTile = 64;
constexpr int kFragment = 16;
constexpr int kFragments = kWarpTile / kFragment;

/// Copies 32 columns of the block's rows of A and of B (which is transposed) to a stage, 16 bytes at a time.
__device__ void load_stage(Element* stage, const Element* a, const Element* b, int depth) {
  constexpr int kPerCopy = 16 / sizeof(Element);
  constexpr int kCopiesPerRow = kTileDepth / kPerCopy;
  constexpr int kCopies = (kTileRows + kTileColumns) * kCopiesPerRow;
#pragma unroll
  for (int copy = static_cast<int>(threadIdx.x); copy < kCopies; copy += kThreads) {
    const int row = copy / kCopiesPerRow;
    const int column = copy % kCopiesPerRow * kPerCopy;
    const Element* from =
        row < kTileRows ? a + uint64_t(row) * kGemmSize : b + uint64_t(row - kTileRows) * kGemmSize;
    __pipeline_memcpy_async(stage + row * kStride + column, from + depth + column, 16);
  }
}

using Sum = wmma::fragment<wmma::accumulator, kFragment, kFragment, kFragment, float>;

__device__ void multiply_stage(const Element* a, const Element* b, Sum (&sums)[kFragments][kFragments]) {
#pragma unroll
  for (int depth = 0; depth < kTileDepth; depth += kFragment) {
    wmma::fragment<wmma::matrix_a, kFragment, kFragment, kFragment, Element, wmma::row_major>
        left[kFragments];
    wmma::fragment<wmma::matrix_b, kFragment, kFragment, kFragment, Element, wmma::col_major>
        right[kFragments];
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
      wmma::load_matrix_sync(left[i], a + i * kFragment * kStride + depth, kStride);
      wmma::load_matrix_sync(right[i], b + i * kFragment * kStride + depth, kStride);
    }
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
#pragma unroll
      for (int j = 0; j < kFragments; ++j) wmma::mma_sync(sums[i][j], left[i], right[j], sums[i][j]);
    }
  }
}
#endif

__global__ void __launch_bounds__(kThreads, 1) multiply(const Element* a, const Element* b, float* c) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  extern __shared__ __align__(128) unsigned char shared[];
  auto* const stages = reinterpret_cast<Element*>(shared);
  const int row = static_cast<int>(blockIdx.y) * kTileRows;
  const int column = static_cast<int>(blockIdx.x) * kTileColumns;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / (kTileColumns / kWarpTile) * kWarpTile;
  const int warp_column = warp % (kTileColumns / kWarpTile) * kWarpTile;
  a += uint64_t(row) * kGemmSize;
  b += uint64_t(column) * kGemmSize;

  Sum sums[kFragments][kFragments];
#pragma unroll
  for (int i = 0; i < kFragments; ++i) {
#pragma unroll
    for (int j = 0; j < kFragments; ++j) wmma::fill_fragment(sums[i][j], 0.0F);
  }
  for (int step = 0; step < kStages - 1; ++step) {
    load_stage(stages + step * kStageElements, a, b, step * kTileDepth);
    __pipeline_commit();
  }
  constexpr int kSteps = kGemmSize / kTileDepth;
  for (int step = 0; step < kSteps; ++step) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();  // all have this stage, and are done with the one that is filled next
    const int next = step + kStages - 1;
    if (next < kSteps) load_stage(stages + next % kStages * kStageElements, a, b, next * kTileDepth);
    __pipeline_commit();
    const Element* stage = stages + step % kStages * kStageElements;
    multiply_stage(stage + warp_row * kStride, stage + (kTileRows + warp_column) * kStride, sums);
  }
  c += uint64_t(row + warp_row) * kGemmSize + column + warp_column;
#pragma unroll
  for (int i = 0; i < kFragments; ++i) {
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
      wmma::store_matrix_sync(c + uint64_t(i * kFragment) * kGemmSize + j * kFragment, sums[i][j], kGemmSize,
                              wmma::mem_row_major);
    }
  }
#endif
}

/// Sums of 64-bit integers do not depend on their order.
__global__ void hash_bits(const uint32_t* bits, unsigned long long* hash) {
  const uint64_t stride = uint64_t{gridDim.x} * blockDim.x;
  unsigned long long sum = 0;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < kGemmElements; i += stride) {
    uint64_t x = (i << 32U | bits[i]) * 0x9E3779B97F4A7C15ULL;
    x ^= x >> 32U;
    sum += x * 0xBF58476D1CE4E5B9ULL;
  }
  for (unsigned distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(~0U, sum, distance);
  if (threadIdx.x % 32 == 0) atomicAdd(hash, sum);
}

}  // namespace gemm

cudaError_t prepare_gemm() {
  int device = 0;
  int major = 0;
  auto error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (error != cudaSuccess) return error;
  if (major < 8) return cudaErrorNotSupported;
  return cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
}

cudaError_t fill_gemm(const GemmMatrices& matrices, cudaStream_t stream) {
  fill_inputs<<<1024, kThreads, 0, stream>>>(static_cast<Element*>(matrices.a),
                                             static_cast<Element*>(matrices.b));
  return cudaGetLastError();
}

cudaError_t launch_gemm(const GemmMatrices& matrices, cudaStream_t stream) {
  static_assert(kGemmSize % kTileRows == 0 && kGemmSize % kTileColumns == 0 && kGemmSize % kTileDepth == 0);
  const dim3 grid(kGemmSize / kTileColumns, kGemmSize / kTileRows);
  multiply<<<grid, kThreads, kSharedBytes, stream>>>(static_cast<const Element*>(matrices.a),
                                                     static_cast<const Element*>(matrices.b), matrices.c);
  return cudaGetLastError();
}

cudaError_t hash_gemm(const GemmMatrices& matrices, unsigned long long* hash, cudaStream_t stream) {
  hash_bits<<<1024, kThreads, 0, stream>>>(reinterpret_cast<const uint32_t*>(matrices.c), hash);
  return cudaGetLastError();
}

}  // namespace nlaunch::probe
