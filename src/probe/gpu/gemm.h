#pragma once
#include <cuda_runtime_api.h>
#include <stdint.h>

/// A matrix product as in training: C = A B with bf16 inputs and 32-bit sums, on the tensor cores. Every
/// element is summed in one order whatever else the GPU does, so equal GPUs must get equal bits. Compiled by
/// nvcc, called from C++; everything is for the current device and asynchronous on the stream.
namespace nlaunch::probe {

/// Rows and columns of all three matrices.
constexpr int kGemmSize = 4096;
constexpr uint64_t kGemmElements = uint64_t{kGemmSize} * kGemmSize;
/// Multiplications and additions of one product.
constexpr double kGemmFlop = 2.0 * kGemmSize * kGemmSize * kGemmSize;

/// Gives the kernel the shared memory that it needs. cudaErrorNotSupported before compute capability 8.0,
/// which has no bf16.
cudaError_t prepare_gemm();

/// Device memory: bf16 `a` and `b` (the latter transposed), 32-bit floats `c`; kGemmElements each.
struct GemmMatrices {
  void* a = nullptr;
  void* b = nullptr;
  float* c = nullptr;
};
/// The same numbers between -1 and 1 on every GPU.
cudaError_t fill_gemm(const GemmMatrices& matrices, cudaStream_t stream);
cudaError_t launch_gemm(const GemmMatrices& matrices, cudaStream_t stream);
/// Adds a hash of all bits of `c` and their positions to `hash` in device memory, which starts at 0.
cudaError_t hash_gemm(const GemmMatrices& matrices, unsigned long long* hash, cudaStream_t stream);

}  // namespace nlaunch::probe
