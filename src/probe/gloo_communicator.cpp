#include "probe/gloo_communicator.h"

#include <array>
#include <chrono>
#include <cstdlib>

#include "probe/dynamic_library.h"
#include "probe/gloo/gloo_module.h"
#include "probe/pattern.h"
#include "sys/files.h"

namespace nlaunch::probe {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint32_t kPoison = 0xA5A5A5A5;

struct Module {
  decltype(&nlaunch_gloo_join) join;
  decltype(&nlaunch_gloo_all_reduce) all_reduce;
  decltype(&nlaunch_gloo_broadcast) broadcast;
};

Result<Module> open_module() {
  const auto file = sys::executable_folder() / ".." / "lib" / "libnlaunch-gloo.so";
  const auto library = DynamicLibrary::open(file.lexically_normal().string());
  if (!library) {
    return failure("probe.unavailable", "nlaunch's Gloo module: {}", library.error().items().front().message);
  }
  return Module{library->find<decltype(&nlaunch_gloo_join)>("nlaunch_gloo_join"),
                library->find<decltype(&nlaunch_gloo_all_reduce)>("nlaunch_gloo_all_reduce"),
                library->find<decltype(&nlaunch_gloo_broadcast)>("nlaunch_gloo_broadcast")};
}

/// The mail of a rank, as the module calls for it.
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

class GlooCommunicator : public Communicator {
 public:
  GlooCommunicator(const Module& module, nlaunch_gloo_context* context, const JoinRequest& request)
      : module_(module), context_(context), request_(request) {}

  Result<Verdict> check(Op op, std::uint64_t bytes) override {
    fill(op, bytes / sizeof(std::uint32_t));
    if (auto done = run(op); !done) return std::unexpected(done.error());
    return compare(op);
  }

  Result<double> time(Op op, std::uint64_t bytes) override {
    data_.assign(bytes / sizeof(std::uint32_t), 1);
    const auto first = timed(op);
    if (!first) return std::unexpected(first.error());
    const auto repeats = agree(*first);
    if (!repeats) return std::unexpected(repeats.error());
    data_.assign(bytes / sizeof(std::uint32_t), 1);
    std::vector<double> seconds;
    for (std::uint32_t i = 0; i < *repeats; ++i) {
      const auto one = timed(op);
      if (!one) return std::unexpected(one.error());
      seconds.push_back(*one);
    }
    return median(std::move(seconds));
  }

 private:
  void fill(Op op, std::size_t count) {
    data_.resize(count);
    const auto rank = static_cast<std::uint32_t>(request_.rank);
    const bool sends = op == Op::all_reduce || rank == 0;
    for (std::size_t i = 0; i < count; ++i) data_[i] = sends ? term(rank, i) : kPoison;
  }

  [[nodiscard]] Verdict compare(Op op) const {
    const auto ranks = static_cast<std::uint32_t>(request_.size);
    const auto weight = op == Op::all_reduce ? sum_weight(ranks) : 1U;
    Verdict verdict;
    verdict.elements = data_.size();
    for (std::size_t i = data_.size(); i-- > 0;) {
      if (data_[i] == expected_element(weight, i)) continue;
      ++verdict.wrong;
      verdict.first_wrong = i;
    }
    if (verdict.wrong == 0) return verdict;
    verdict.expected = expected_element(weight, verdict.first_wrong);
    verdict.found = data_[verdict.first_wrong];
    if (op == Op::all_reduce) {
      verdict.missing = missing_rank(ranks, verdict.first_wrong, verdict.expected, verdict.found);
    }
    return verdict;
  }

  Result<void> run(Op op) {
    std::array<char, 512> why{};
    const auto function = op == Op::all_reduce ? module_.all_reduce : module_.broadcast;
    const int failed =
        function(context_, data_.data(), data_.size(), request_.op.count(), why.data(), why.size());
    if (failed != 0) return failure("probe.gloo", "Gloo: {}", why.data());
    return {};
  }

  Result<double> timed(Op op) {
    const auto begin = Clock::now();
    if (auto done = run(op); !done) return std::unexpected(done.error());
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  /// How often to repeat, as rank 0 sees it: all ranks must do the same.
  Result<std::uint32_t> agree(double seconds) {
    constexpr double kBudget = 0.05;  // seconds
    constexpr double kLeast = 3;
    constexpr double kMost = 50;
    data_.assign(1, static_cast<std::uint32_t>(std::clamp(kBudget / seconds, kLeast, kMost)));
    if (auto done = run(Op::broadcast); !done) return std::unexpected(done.error());
    return data_[0];
  }

  Module module_;
  nlaunch_gloo_context* context_;
  JoinRequest request_;
  std::vector<std::uint32_t> data_;
};

}  // namespace

Result<std::unique_ptr<Communicator>> join_gloo(const JoinRequest& request) {
  const auto module = open_module();
  if (!module) return std::unexpected(module.error());
  Post post{request, {}};
  const nlaunch_gloo_mail mail{&post, Post::give, Post::take};
  // The role's own choice, else the way to the other nodes, else none is needed but this machine's own.
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
  return std::make_unique<GlooCommunicator>(*module, context, request);
}

}  // namespace nlaunch::probe
