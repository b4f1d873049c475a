#pragma once
#include <cuda_runtime_api.h>
#include <stdint.h>

/// Kernels that write and compare the pattern of pattern.h. Compiled by nvcc, called from C++.
namespace nlaunch::probe {

struct DeviceVerdict {
  unsigned long long wrong;
  unsigned long long first_wrong;  ///< all bits set when none is
};

/// data[i] = term(rank, i), asynchronously on the stream.
cudaError_t fill_terms(uint32_t* data, uint64_t count, uint32_t rank, cudaStream_t stream);

/// Compares every element with expected_element(weight, i). `verdict` is device memory, set by this call.
cudaError_t compare_elements(const uint32_t* data, uint64_t count, uint32_t weight, DeviceVerdict* verdict,
                             cudaStream_t stream);

}  // namespace nlaunch::probe
