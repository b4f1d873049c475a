#include "probe/gpu/product.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "probe/gpu/call.h"

namespace nlaunch::probe {
namespace {

/// bf16 is the upper half of a 32-bit float.
float to_float(std::uint16_t bf16) {
  return std::bit_cast<float>(std::uint32_t{bf16} << 16U);
}

}  // namespace

Product::~Product() {
  if (stream_ == nullptr) return;
  cudaSetDevice(device_);
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
  for (void* memory :
       {matrices_.a, matrices_.b, static_cast<void*>(matrices_.c), static_cast<void*>(hashes_)})
    cudaFree(memory);
  cudaGetLastError();
}

Result<void> Product::prepare(int device, std::size_t hashes) {
  device_ = device;
  auto done = cuda("cudaSetDevice", cudaSetDevice(device));
  const auto error = done ? prepare_gemm() : cudaSuccess;
  if (error == cudaErrorNotSupported)
    return failure("probe.unavailable", "this GPU has no bf16: its compute capability is below 8.0");
  if (done) done = cuda("cudaFuncSetAttribute", error);
  int least = 0;  // the lowest priority
  int greatest = 0;
  if (done)
    done = cuda("cudaDeviceGetStreamPriorityRange", cudaDeviceGetStreamPriorityRange(&least, &greatest));
  if (done)
    done = cuda("cudaStreamCreateWithPriority",
                cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, least));
  constexpr auto kInput = kGemmElements * sizeof(std::uint16_t);
  if (done) done = cuda("cudaMalloc", cudaMalloc(&matrices_.a, kInput));
  if (done) done = cuda("cudaMalloc", cudaMalloc(&matrices_.b, kInput));
  if (done) done = cuda("cudaMalloc", cudaMalloc(&matrices_.c, kGemmElements * sizeof(float)));
  const auto room = std::max<std::size_t>(hashes, 1) * sizeof(*hashes_);
  if (done) done = cuda("cudaMalloc", cudaMalloc(&hashes_, room));
  if (done) done = cuda("cudaMemsetAsync", cudaMemsetAsync(hashes_, 0, room, stream_));
  if (done) done = cuda("fill kernel", fill_gemm(matrices_, stream_));
  if (done) done = multiply();
  if (done) done = settle();
  return done;
}

Result<void> Product::multiply() {
  return cuda("GEMM kernel", launch_gemm(matrices_, stream_));
}

Result<void> Product::hash(std::size_t slot) {
  return cuda("hash kernel", hash_gemm(matrices_, hashes_ + slot, stream_));
}

Result<void> Product::settle() {
  return cuda("matrix product", cudaStreamSynchronize(stream_));
}

Result<std::vector<unsigned long long>> Product::hashes(std::size_t count) {
  std::vector<unsigned long long> out(count);
  const auto done =
      cuda("cudaMemcpy", cudaMemcpy(out.data(), hashes_, count * sizeof(out[0]), cudaMemcpyDeviceToHost));
  if (!done) return std::unexpected(done.error());
  return out;
}

Result<bool> Product::right(std::size_t row, std::size_t column) {
  std::vector<std::uint16_t> left(kGemmSize);
  std::vector<std::uint16_t> right(kGemmSize);
  float found = 0;
  const auto copy = [](void* to, const void* from, std::size_t bytes) {
    return cuda("cudaMemcpy", cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
  };
  const auto bytes = left.size() * sizeof(left[0]);
  auto done = copy(left.data(), static_cast<std::uint16_t*>(matrices_.a) + row * kGemmSize, bytes);
  if (done) done = copy(right.data(), static_cast<std::uint16_t*>(matrices_.b) + column * kGemmSize, bytes);
  if (done) done = copy(&found, matrices_.c + row * kGemmSize + column, sizeof(found));
  if (!done) return std::unexpected(done.error());
  double sum = 0;
  for (std::size_t i = 0; i < left.size(); ++i)
    sum += static_cast<double>(to_float(left[i])) * static_cast<double>(to_float(right[i]));
  // The rounding errors of thousands of additions to 32-bit sums of about twenty; a missing product is far
  // larger.
  constexpr double kRounding = 0.05;
  return std::abs(sum - static_cast<double>(found)) < kRounding;
}

Result<unsigned> Product::wrong_samples() {
  constexpr std::pair<std::size_t, std::size_t> kSamples[] = {
      {0, 0}, {1, 4095}, {127, 255}, {128, 256}, {2047, 1023}, {3000, 2999}, {4095, 0}, {4095, 4095}};
  unsigned wrong = 0;
  for (const auto& [row, column] : kSamples) {
    const auto fine = right(row, column);
    if (!fine) return std::unexpected(fine.error());
    wrong += *fine ? 0U : 1U;
  }
  return wrong;
}

}  // namespace nlaunch::probe
