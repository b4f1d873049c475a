#pragma once
#include <cstddef>
#include <vector>

#include "base/diagnostic.h"
#include "probe/gpu/gemm.h"

namespace nlaunch::probe {

/// The matrices of one product on the GPU that is current in the calling thread, with a stream for it. Used
/// from one thread at a time.
class Product {
 public:
  Product() = default;
  ~Product();
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  /// The failure has the id "probe.unavailable" where the GPU has no bf16.
  Result<void> prepare(int device, std::size_t hashes);
  /// One product, asynchronously.
  Result<void> multiply();
  /// The hash of what is there then, to place `slot`, asynchronously.
  Result<void> hash(std::size_t slot);
  /// Waits for all of them.
  Result<void> settle();
  /// The first `count` of them.
  Result<std::vector<unsigned long long>> hashes(std::size_t count);
  /// Elements, of some, that are no sum of the inputs' products.
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
