#include <algorithm>
#include <barrier>
#include <charconv>
#include <chrono>
#include <thread>

#include "probe/gpu/call.h"
#include "probe/gpu/measurements.h"
#include "probe/gpu/node.h"
#include "probe/gpu/product.h"
#include "probe/output.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr double kSeconds = 2;
/// Products between two clock checks, and the maximum in total.
constexpr std::size_t kProductsInBatch = 64;
constexpr std::size_t kMost = kProductsInBatch * 1024;

struct Load {
  std::size_t repetitions = 0;
  double seconds = 0;  ///< of the products only
};

/// One batch after another, with a separate slot for the hash of each product.
Result<Load> work(Product& product, double seconds) {
  Marks marks(kProductsInBatch);
  Load load;
  auto done = marks.create();
  const auto begin = Clock::now();
  const auto time_is_up = [&] {
    return std::chrono::duration<double>(Clock::now() - begin).count() >= seconds;
  };
  do {
    for (std::size_t i = 0; i < kProductsInBatch && done; ++i) {
      done = marks.begin(i, product.stream());
      if (done) done = product.multiply();
      if (done) done = marks.end(i, product.stream());
      if (done) done = product.hash(load.repetitions + i);
    }
    if (done) done = product.settle();
    for (std::size_t i = 0; i < kProductsInBatch && done; ++i) {
      const auto one = marks.seconds(i);
      if (!one) return std::unexpected(one.error());
      load.seconds += *one;
    }
    load.repetitions += kProductsInBatch;
  } while (done && load.repetitions < kMost && !time_is_up());
  if (!done) return std::unexpected(done.error());
  return load;
}

Result<json> judge(Product& product, const Load& load) {
  const auto hashes = product.hashes(load.repetitions);
  if (!hashes) return std::unexpected(hashes.error());
  const auto differs = [&](unsigned long long hash) { return hash != hashes->front(); };
  const auto first = std::ranges::find_if(*hashes, differs);
  const auto samples = product.wrong_samples();
  if (!samples) return std::unexpected(samples.error());
  json out{{"hash", fmt::format("{:016x}", hashes->front())},
           {"repetitions", load.repetitions},
           {"differing", std::ranges::count_if(*hashes, differs)},
           {"wrong_samples", *samples},
           {"flops", static_cast<double>(load.repetitions) * kGemmFlop / load.seconds}};
  if (first != hashes->end()) out["first_differing"] = first - hashes->begin();
  return out;
}

/// One GPU; all start at the same time, which is when a weak power supply or cooler shows.
json multiply_on(int device, double seconds, std::barrier<>& together) {
  auto about = describe_device(device);
  Product product;
  auto ready = product.prepare(device, kMost);
  together.arrive_and_wait();
  auto result = [&]() -> Result<json> {
    if (!ready) return std::unexpected(ready.error());
    const auto load = work(product, seconds);
    if (!load) return std::unexpected(load.error());
    return judge(product, *load);
  }();
  if (result) {
    about.update(*result);
  } else {
    const bool unavailable = result.error().items().front().id == "probe.unavailable";
    about[unavailable ? "unavailable" : "error"] = text_of(result.error());
  }
  return about;
}

}  // namespace

json measure_gemm(std::span<const std::string> arguments) {
  const auto count = take_devices(option_in(arguments, "--devices"));
  if (!count) return {{"event", "gemm"}, {"error", text_of(count.error())}};
  double seconds = kSeconds;
  const auto asked = option_in(arguments, "--seconds");
  std::from_chars(asked.data(), asked.data() + asked.size(), seconds);
  std::barrier<> together(*count);
  std::vector<json> found(static_cast<std::size_t>(*count));
  std::vector<std::thread> threads;
  for (int device = 0; device < *count; ++device) {
    threads.emplace_back([&found, &together, device, seconds] {
      found[static_cast<std::size_t>(device)] = multiply_on(device, seconds, together);
    });
  }
  for (auto& thread : threads) thread.join();
  return {{"event", "gemm"}, {"size", kGemmSize}, {"gpus", found}};
}

}  // namespace nlaunch::probe
