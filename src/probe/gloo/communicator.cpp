#include "probe/gloo/communicator.h"

#include <array>
#include <chrono>
#include <cstdlib>

#include "probe/dynamic_library.h"
#include "probe/gloo/gloo_module.h"
#include "probe/rank/expected.h"
#include "sys/files.h"

namespace nlaunch::probe {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint32_t kGlooPoison = 0xA5A5A5A5;

struct Module {
  decltype(&nlaunch_gloo_join) join;
  decltype(&nlaunch_gloo_run) run;
};

Result<Module> open_module() {
  const auto file = sys::executable_folder() / ".." / "lib" / "libnlaunch-gloo.so";
  const auto library = DynamicLibrary::open(file.lexically_normal().string());
  if (!library) {
    return failure("probe.unavailable", "nlaunch's Gloo module: {}", library.error().first_message());
  }
  return Module{library->find<decltype(&nlaunch_gloo_join)>("nlaunch_gloo_join"),
                library->find<decltype(&nlaunch_gloo_run)>("nlaunch_gloo_run")};
}

/// Relays a rank's messages, as the module requests.
struct Post {
  const JoinRequest& request;
  std::string taken;

  static void give(void* self, const char* key, const void* data, std::size_t size) {
    static_cast<Post*>(self)->request.give(key, {static_cast<const char*>(data), size});
  }
  static const void* take(void* self, const char* key, std::size_t* size) {
    auto& post = *static_cast<Post*>(self);
    auto bytes = post.request.take(key);
    if (!bytes) return nullptr;
    post.taken = std::move(*bytes);
    *size = post.taken.size();
    return post.taken.data();
  }
};

std::optional<nlaunch_gloo_op> gloo_op(Collective op) {
  switch (op) {
    case Collective::all_reduce:
      return NLAUNCH_GLOO_ALL_REDUCE;
    case Collective::broadcast:
      return NLAUNCH_GLOO_BROADCAST;
    case Collective::all_gather:
      return NLAUNCH_GLOO_ALL_GATHER;
    case Collective::send_recv:
      return NLAUNCH_GLOO_SEND_RECV;
    case Collective::reduce_scatter:
      return std::nullopt;
  }
  return std::nullopt;
}

class GlooCommunicator : public Communicator {
 public:
  GlooCommunicator(const Module& module, nlaunch_gloo_context* context, const JoinRequest& request,
                   std::unique_ptr<DeviceCopies> device)
      : module_(module), context_(context), request_(request), device_(std::move(device)) {}

  Result<Comparison> check(Collective op, std::uint64_t bytes) override {
    const auto elements = bytes / sizeof(std::uint32_t);
    if (auto room = reserve(elements); !room) return std::unexpected(room.error());
    const auto rank = static_cast<std::uint32_t>(request_.rank);
    for (std::size_t i = 0; i < elements; ++i) memory_.send[i] = term(rank, i);
    std::fill_n(memory_.receive, elements, kGlooPoison);
    if (auto done = run_once(op, elements); !done) return std::unexpected(done.error());
    return compare(op, elements);
  }

  Result<double> time(Collective op, std::uint64_t bytes) override {
    const auto elements = bytes / sizeof(std::uint32_t);
    if (auto room = reserve(elements); !room) return std::unexpected(room.error());
    const auto first = timed(op, elements);
    if (!first) return std::unexpected(first.error());
    const auto repeats = agree(*first);
    if (!repeats) return std::unexpected(repeats.error());
    std::vector<double> seconds;
    for (std::uint32_t i = 0; i < *repeats; ++i) {
      const auto one = timed(op, elements);
      if (!one) return std::unexpected(one.error());
      seconds.push_back(*one);
    }
    return median(std::move(seconds));
  }

  Result<std::vector<double>> run(const Workload& workload) override {
    std::vector<double> seconds;
    for (std::uint32_t step = 0; step < workload.warm_up + workload.steps; ++step) {
      const auto begin = Clock::now();
      if (auto done = run_step(workload.step); !done) return std::unexpected(done.error());
      if (step >= workload.warm_up) seconds.push_back(seconds_since(begin));
    }
    return seconds;
  }

 private:
  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  /// Room for a message, which is never freed.
  Result<void> reserve(std::size_t elements) {
    if (room_ >= elements) return {};
    if (device_) {
      const auto pinned = device_->reserve(elements * sizeof(std::uint32_t));
      if (!pinned) return std::unexpected(pinned.error());
      memory_ = *pinned;
    } else {
      for (auto& one : own_) one.resize(elements);
      memory_ = {own_[0].data(), own_[1].data()};
    }
    room_ = elements;
    std::fill_n(memory_.send, room_, 1U);
    std::fill_n(memory_.receive, room_, kGlooPoison);
    return {};
  }

  [[nodiscard]] Comparison compare(Collective op, std::uint64_t elements) const {
    const auto ranks = static_cast<unsigned>(request_.size);
    const auto stretches = expected_in(op, elements, static_cast<unsigned>(request_.rank), ranks);
    std::uint64_t wrong = 0;
    std::uint64_t first_wrong = 0;
    for (const auto& one : stretches) {
      for (std::uint64_t i = 0; i < one.count; ++i) {
        if (memory_.receive[one.offset + i] == expected_element(one.weight, one.first + i)) continue;
        if (wrong++ == 0) first_wrong = one.offset + i;
      }
    }
    return judge(stretches, wrong, first_wrong, wrong == 0 ? 0 : memory_.receive[first_wrong], ranks);
  }

  Result<void> run_step(const std::vector<Operation>& step) {
    for (const auto& operation : step) {
      const auto elements = operation.bytes / sizeof(std::uint32_t);
      if (auto room = reserve(elements); !room) return room;
      for (std::uint32_t i = 0; i < operation.count; ++i) {
        if (auto done = run_from_device(operation.op, elements); !done) return done;
      }
    }
    return {};
  }

  /// Only the root of a broadcast sends, and it alone receives nothing.
  Result<void> run_from_device(Collective op, std::size_t elements) {
    if (!device_) return run_once(op, elements);
    const auto shape = shape_of(op, elements, static_cast<unsigned>(request_.size));
    const bool broadcast = op == Collective::broadcast;
    Result<void> done;
    if (!broadcast || request_.rank == 0) done = device_->to_host(shape.send * sizeof(std::uint32_t));
    if (done) done = run_once(op, elements);
    if (done && (!broadcast || request_.rank != 0))
      done = device_->to_device(shape.receive * sizeof(std::uint32_t));
    return done;
  }

  Result<void> run_once(Collective op, std::size_t elements) {
    const auto what = gloo_op(op);
    if (!what) return failure("probe.unavailable", "Gloo has no {}", name_of(op));
    const auto shape = shape_of(op, elements, static_cast<unsigned>(request_.size));
    std::array<char, 512> why{};
    const int failed = module_.run(context_, *what, memory_.send, memory_.receive, shape.receive,
                                   request_.op.count(), why.data(), why.size());
    if (failed != 0) return failure("probe.gloo", "Gloo: {}", why.data());
    return {};
  }

  Result<double> timed(Collective op, std::size_t elements) {
    const auto begin = Clock::now();
    if (auto done = run_once(op, elements); !done) return std::unexpected(done.error());
    return seconds_since(begin);
  }

  /// How often to repeat, decided by rank 0: all ranks must do the same.
  Result<std::uint32_t> agree(double seconds) {
    constexpr double kBudget = 0.05;  // seconds
    constexpr double kLeast = 3;
    constexpr double kMost = 50;
    memory_.send[0] = static_cast<std::uint32_t>(std::clamp(kBudget / seconds, kLeast, kMost));
    if (auto done = run_once(Collective::broadcast, 1); !done) return std::unexpected(done.error());
    return memory_.receive[0];
  }

  Module module_;
  nlaunch_gloo_context* context_;
  JoinRequest request_;
  std::unique_ptr<DeviceCopies> device_;           ///< null: the rank has no GPU
  std::array<std::vector<std::uint32_t>, 2> own_;  ///< the memory of a rank without a GPU
  DeviceCopies::Memory memory_;
  std::size_t room_ = 0;  ///< elements
};

}  // namespace

Result<std::unique_ptr<Communicator>> join_gloo(const JoinRequest& request,
                                                std::unique_ptr<DeviceCopies> device) {
  const auto module = open_module();
  if (!module) return std::unexpected(module.error());
  Post post{request, {}};
  const nlaunch_gloo_mail mail{&post, Post::give, Post::take};
  // The role's own choice, else the interface to the other nodes, else only this machine's own is needed.
  const char* wished = std::getenv("GLOO_SOCKET_IFNAME");
  const bool chosen = wished != nullptr && *wished != 0;
  const std::string interface = chosen ? wished : "lo";
  const std::string address = chosen ? "" : request.address;
  std::array<char, 512> why{};
  auto* context = module->join(&mail, interface.c_str(), address.c_str(), request.rank, request.size,
                               request.join.count(), why.data(), why.size());
  if (context == nullptr) {
    return failure("probe.gloo", "Gloo on {}: {}", address.empty() ? "interface " + interface : address,
                   why.data());
  }
  return std::make_unique<GlooCommunicator>(*module, context, request, std::move(device));
}

}  // namespace nlaunch::probe
