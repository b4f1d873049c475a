#include <sched.h>

#include <utility>

#include "probe/gpu/call.h"
#include "probe/gpu/kernels.h"
#include "probe/gpu/measurements.h"
#include "probe/gpu/node.h"
#include "probe/output.h"
#include "probe/rank/communicator.h"
#include "sys/topology.h"

namespace nlaunch::probe {
namespace {

using nlohmann::json;

constexpr std::uint64_t kBytes = 256U << 20U;
constexpr std::uint64_t kBytesOfMany = 64U << 20U;  // between more GPUs than this
constexpr std::size_t kMany = 8;
constexpr std::size_t kCopies = 3;
constexpr int kPoisonOfCopies = 0xA5;

/// A GPU with a stream and two buffers. Everything is freed with the process.
struct Card {
  int device = 0;
  json about;
  cudaStream_t stream = nullptr;
  std::uint32_t* send = nullptr;  ///< holds the terms of rank `device`
  std::uint32_t* receive = nullptr;
  DeviceVerdict* comparison = nullptr;
  std::vector<unsigned> cpus;  ///< near it; empty: all are
  std::string error;           ///< why it cannot be used; empty: it can
};

Result<void> select(const Card& card) {
  return cuda("cudaSetDevice", cudaSetDevice(card.device));
}

Result<void> settle(const Card& card) {
  return cuda("cudaStreamSynchronize", cudaStreamSynchronize(card.stream));
}

Result<void> prepare(Card& card) {
  auto done = select(card);
  if (done)
    done = cuda("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&card.stream, cudaStreamNonBlocking));
  if (done) done = cuda("cudaMalloc", cudaMalloc(&card.send, kBytes));
  if (done) done = cuda("cudaMalloc", cudaMalloc(&card.receive, kBytes));
  if (done) done = cuda("cudaMalloc", cudaMalloc(&card.comparison, sizeof(*card.comparison)));
  if (done)
    done = cuda("fill kernel", fill_terms(card.send, kBytes / sizeof(std::uint32_t),
                                          static_cast<std::uint32_t>(card.device), card.stream));
  if (done) done = settle(card);
  return done;
}

/// Bytes/s: the median of several copies after a first one. The stream belongs to the current device.
template <class Copy>
Result<double> bandwidth(cudaStream_t stream, std::uint64_t bytes, Copy copy) {
  Marks marks(kCopies);
  auto done = marks.create();
  if (done) done = copy();
  for (std::size_t i = 0; i < kCopies && done; ++i) {
    done = marks.begin(i, stream);
    if (done) done = copy();
    if (done) done = marks.end(i, stream);
  }
  if (done) done = cuda("copy", cudaStreamSynchronize(stream));
  std::vector<double> seconds;
  for (std::size_t i = 0; i < kCopies && done; ++i) {
    const auto one = marks.seconds(i);
    if (!one) return std::unexpected(one.error());
    seconds.push_back(*one);
  }
  if (!done) return std::unexpected(done.error());
  const auto middle = median(std::move(seconds));
  return middle > 0 ? static_cast<double>(bytes) / middle : 0;
}

/// Makes sure that the data found later is the copied data.
Result<void> poison(const Card& card, std::uint64_t bytes) {
  auto done = select(card);
  if (done)
    done = cuda("cudaMemsetAsync", cudaMemsetAsync(card.receive, kPoisonOfCopies, bytes, card.stream));
  if (done) done = settle(card);
  return done;
}

/// How many elements of the card's buffer differ from those of the GPU `owner`.
Result<std::uint64_t> wrong_in(const Card& card, std::uint64_t bytes, int owner) {
  auto done = select(card);
  if (done) done = cuda("clear kernel", clear_verdict(card.comparison, card.stream));
  if (done)
    done = cuda("compare kernel",
                compare_elements(card.receive, bytes / sizeof(std::uint32_t), 0,
                                 static_cast<std::uint32_t>(owner) + 1, 0, card.comparison, card.stream));
  DeviceVerdict seen{};
  if (done)
    done = cuda("cudaMemcpyAsync",
                cudaMemcpyAsync(&seen, card.comparison, sizeof(seen), cudaMemcpyDeviceToHost, card.stream));
  if (done) done = settle(card);
  if (!done) return std::unexpected(done.error());
  return seen.wrong;
}

/// Binds this thread, and with it the memory that it will pin, to these CPUs.
void move_to(const std::vector<unsigned>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const auto cpu : cpus) CPU_SET(cpu, &set);
  if (!cpus.empty()) ::sched_setaffinity(0, sizeof(set), &set);
}

/// To the host, and from there into the other buffer.
Result<json> through_host(const Card& card, void* host) {
  auto about = card.about;
  if (auto done = poison(card, kBytes); !done) return std::unexpected(done.error());
  const auto out = bandwidth(card.stream, kBytes, [&] {
    return cuda("cudaMemcpyAsync",
                cudaMemcpyAsync(host, card.send, kBytes, cudaMemcpyDeviceToHost, card.stream));
  });
  if (!out) return std::unexpected(out.error());
  const auto in = bandwidth(card.stream, kBytes, [&] {
    return cuda("cudaMemcpyAsync",
                cudaMemcpyAsync(card.receive, host, kBytes, cudaMemcpyHostToDevice, card.stream));
  });
  if (!in) return std::unexpected(in.error());
  const auto wrong = wrong_in(card, kBytes, card.device);
  if (!wrong) return std::unexpected(wrong.error());
  about["device_to_host"] = *out;
  about["host_to_device"] = *in;
  about["wrong"] = *wrong;
  return about;
}

Result<json> measure_host(const Card& card) {
  if (!card.error.empty()) return failure("probe.cuda", "{}", card.error);
  move_to(card.cpus);
  void* host = nullptr;
  auto done = select(card);
  if (done) done = cuda("cudaHostAlloc", cudaHostAlloc(&host, kBytes, cudaHostAllocPortable));
  if (!done) return std::unexpected(done.error());
  auto measured = through_host(card, host);
  cudaFreeHost(host);
  return measured;
}

Result<bool> can_reach(const Card& card, const Card& other) {
  int can = 0;
  const auto done = cuda("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(&can, card.device, other.device));
  if (!done) return std::unexpected(done.error());
  return can != 0;
}

Result<void> open_peer(const Card& card, const Card& other) {
  auto done = select(card);
  if (done) done = cuda("cudaDeviceEnablePeerAccess", cudaDeviceEnablePeerAccess(other.device, 0));
  return done;
}

/// A GPU can have only a limited number of peers at a time without an NVSwitch.
void close_peer(const Card& card, const Card& other) {
  if (select(card)) static_cast<void>(cuda("", cudaDeviceDisablePeerAccess(other.device)));
}

Result<json> copy_between(const Card& from, const Card& to, std::uint64_t bytes) {
  if (auto done = poison(to, bytes); !done) return std::unexpected(done.error());
  if (auto done = select(from); !done) return std::unexpected(done.error());
  const auto speed = bandwidth(from.stream, bytes, [&] {
    return cuda("cudaMemcpyPeerAsync",
                cudaMemcpyPeerAsync(to.receive, to.device, from.send, from.device, bytes, from.stream));
  });
  if (!speed) return std::unexpected(speed.error());
  const auto wrong = wrong_in(to, bytes, from.device);
  if (!wrong) return std::unexpected(wrong.error());
  return json{{"bandwidth", *speed}, {"wrong", *wrong}};
}

void add_pair(json& pairs, const Card& from, const Card& to, Result<json> measured, bool peer) {
  json pair{{"from", from.device}, {"to", to.device}};
  if (measured) {
    pair["peer"] = peer;
    pair.update(*measured);
  } else {
    pair["error"] = text_of(measured.error());
  }
  pairs.push_back(std::move(pair));
}

/// Both ways between two GPUs.
void measure_pair(json& pairs, const Card& one, const Card& two, std::uint64_t bytes) {
  const auto there = can_reach(one, two);
  const auto back = can_reach(two, one);
  bool peer = there && back && *there && *back;
  Result<void> ready;
  for (const auto* answer : {&there, &back}) {
    if (!*answer) ready = std::unexpected(answer->error());
  }
  if (peer) ready = open_peer(one, two);
  if (peer && ready) ready = open_peer(two, one);
  const auto measure = [&](const Card& from, const Card& to) -> Result<json> {
    if (!ready) return std::unexpected(ready.error());
    return copy_between(from, to, bytes);
  };
  add_pair(pairs, one, two, measure(one, two), peer);
  add_pair(pairs, two, one, measure(two, one), peer);
  if (!peer) return;
  close_peer(one, two);
  close_peer(two, one);
}

}  // namespace

json measure_copies(std::span<const std::string> arguments) {
  const auto count = take_devices(option_in(arguments, "--devices"));
  if (!count) return {{"event", "copies"}, {"error", text_of(count.error())}};
  std::vector<Card> cards(static_cast<std::size_t>(*count));
  const auto bytes = cards.size() > kMany ? kBytesOfMany : kBytes;
  json out{{"event", "copies"},
           {"bytes", bytes},
           {"host_bytes", kBytes},
           {"gpus", json::array()},
           {"pairs", json::array()}};
  sys::Topology topology;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    cards[i].device = static_cast<int>(i);
    cards[i].about = describe_device(cards[i].device);
    cards[i].cpus = topology.cpus_near({cards[i].about.value("bus_id", "")});
    if (auto ready = prepare(cards[i]); !ready) cards[i].error = text_of(ready.error());
  }
  for (const auto& card : cards) {
    auto measured = measure_host(card);
    auto& line = out["gpus"].emplace_back(measured ? *measured : card.about);
    if (!measured) line["error"] = text_of(measured.error());
  }
  for (auto one = cards.begin(); one != cards.end(); ++one) {
    for (auto two = one + 1; two != cards.end(); ++two) {
      if (one->error.empty() && two->error.empty()) measure_pair(out["pairs"], *one, *two, bytes);
    }
  }
  return out;
}

}  // namespace nlaunch::probe
