#include "probe/gpu/busy.h"

#include <array>
#include <atomic>
#include <thread>

#include "probe/gpu/call.h"
#include "probe/gpu/product.h"

namespace nlaunch::probe {
namespace {

/// The GPU has two batches of products at a time: it is never idle, and finishes soon.
constexpr int kProductsAtOnce = 4;

class Products : public GpuLoad {
 public:
  ~Products() override { static_cast<void>(end()); }

  Result<void> start(int device) {
    if (auto ready = product_.prepare(device, 0); !ready) return ready;
    for (auto& batch : batches_) {
      // A thread that waits for such an event sleeps: the CPUs are reserved for the measurement.
      auto made = cuda("cudaEventCreateWithFlags",
                       cudaEventCreateWithFlags(&batch, cudaEventDisableTiming | cudaEventBlockingSync));
      if (made) made = launch(batch);
      if (!made) return made;
    }
    thread_ = std::thread([this, device] { feed(device); });
    return {};
  }

  Result<void> end() override {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    if (result_) result_ = product_.settle();
    for (auto& batch : batches_) {
      if (batch != nullptr) cudaEventDestroy(batch);
      batch = nullptr;
    }
    return result_;
  }

 private:
  Result<void> launch(cudaEvent_t batch) {
    Result<void> done;
    for (int i = 0; i < kProductsAtOnce && done; ++i) done = product_.multiply();
    if (done) done = cuda("cudaEventRecord", cudaEventRecord(batch, product_.stream()));
    return done;
  }

  void feed(int device) {
    result_ = cuda("cudaSetDevice", cudaSetDevice(device));
    for (std::size_t i = 0; !stop_ && result_; i = (i + 1) % batches_.size()) {
      result_ = cuda("matrix product", cudaEventSynchronize(batches_[i]));
      if (result_) result_ = launch(batches_[i]);
    }
  }

  Product product_;
  std::array<cudaEvent_t, 2> batches_{};
  std::atomic<bool> stop_{false};
  Result<void> result_;  ///< of the thread, once it has finished
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<GpuLoad>> start_load(int device) {
  auto load = std::make_unique<Products>();
  if (auto started = load->start(device); !started) return std::unexpected(started.error());
  return load;
}

}  // namespace nlaunch::probe
