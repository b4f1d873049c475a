#pragma once
#include <cuda_runtime_api.h>
#include <stdint.h>

/// Kernels that write and compare the pattern of pattern.h. Compiled by nvcc, called from C++.
namespace nlaunch::probe {

struct DeviceVerdict {
  unsigned long long wrong;
  unsigned long long first_wrong;  ///< all bits set if there is none
};

/// data[i] = term(rank, i), asynchronously on the stream.
cudaError_t fill_terms(uint32_t* data, uint64_t count, uint32_t rank, cudaStream_t stream);

/// Compares data[i] with expected_element(weight, first + i) and adds the mismatches to `verdict` in device
/// memory, whose `first_wrong` counts from data[-offset].
cudaError_t compare_elements(const uint32_t* data, uint64_t count, uint64_t first, uint32_t weight,
                             uint64_t offset, DeviceVerdict* comparison, cudaStream_t stream);
cudaError_t clear_verdict(DeviceVerdict* comparison, cudaStream_t stream);

}  // namespace nlaunch::probe
