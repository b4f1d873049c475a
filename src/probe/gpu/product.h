#pragma once
#include <cstddef>
#include <vector>

#include "base/diagnostic.h"
#include "probe/gpu/gemm.h"

namespace nlaunch::probe {

/// The matrices of one product on the current GPU of the calling thread, with a stream for it. Used from one
/// thread at a time.
class Product {
 public:
  Product() = default;
  ~Product();
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  /// The error has the id "probe.unavailable" if the GPU has no bf16.
  Result<void> prepare(int device, std::size_t hashes);
  /// One product, asynchronously.
  Result<void> multiply();
  /// The hash of the current result, to slot `slot`, asynchronously.
  Result<void> hash(std::size_t slot);
  /// Waits for all of them.
  Result<void> settle();
  /// The first `count` of them.
  Result<std::vector<unsigned long long>> hashes(std::size_t count);
  /// The number of sampled elements that are not a sum of the inputs' products.
  Result<unsigned> wrong_samples();

  [[nodiscard]] cudaStream_t stream() const { return stream_; }

 private:
  Result<bool> right(std::size_t row, std::size_t column);

  int device_ = 0;
  GemmMatrices matrices_;
  unsigned long long* hashes_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace nlaunch::probe
