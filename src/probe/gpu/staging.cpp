#include "probe/gpu/staging.h"

#include "probe/gpu/call.h"

namespace nlaunch::probe {
namespace {

class Staging : public DeviceCopies {
 public:
  Staging() = default;
  ~Staging() override { release(); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  Result<Memory> reserve(std::uint64_t bytes) override {
    release();
    auto done = stream_ != nullptr ? Result<void>()
                                   : cuda("cudaStreamCreateWithFlags",
                                          cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    for (auto** host : {&host_.send, &host_.receive}) {
      if (done) done = cuda("cudaHostAlloc", cudaHostAlloc(host, bytes, cudaHostAllocDefault));
    }
    if (done) done = cuda("cudaMalloc", cudaMalloc(&device_, bytes));
    if (done) done = cuda("cudaMemsetAsync", cudaMemsetAsync(device_, 0, bytes, stream_));
    if (done) done = cuda("cudaStreamSynchronize", cudaStreamSynchronize(stream_));
    if (!done) return std::unexpected(done.error());
    return host_;
  }

  Result<void> to_host(std::uint64_t bytes) override {
    return copy(host_.send, device_, bytes, cudaMemcpyDeviceToHost);
  }
  Result<void> to_device(std::uint64_t bytes) override {
    return copy(device_, host_.receive, bytes, cudaMemcpyHostToDevice);
  }

 private:
  Result<void> copy(void* to, const void* from, std::uint64_t bytes, cudaMemcpyKind kind) {
    auto done = cuda("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, kind, stream_));
    if (done) done = cuda("cudaStreamSynchronize", cudaStreamSynchronize(stream_));
    return done;
  }

  void release() {
    for (auto** host : {&host_.send, &host_.receive}) {
      if (*host != nullptr) cudaFreeHost(*host);
      *host = nullptr;
    }
    if (device_ != nullptr) cudaFree(device_);
    device_ = nullptr;
  }

  Memory host_;
  void* device_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceCopies> make_device_copies() {
  return std::make_unique<Staging>();
}

}  // namespace nlaunch::probe
