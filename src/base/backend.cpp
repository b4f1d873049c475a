#include "base/backend.h"

#include <algorithm>
#include <array>

namespace nlaunch {
namespace {

constexpr std::array kBackends{
    BackendTraits{
        .backend = Backend::nccl,
        .name = name_of(Backend::nccl),
        .title = "NCCL",
        .needs_gpu = true,
        .library = "libnccl",
        .steady_times = true,
        .has_streams = true,
        .logs_transport = true,
        .largest_message = std::uint64_t{4} << 30U,
        .drill_message = 64U << 20U,
        .lacks = std::nullopt,
        .remedy =
            "see NCCL's own log: --with nccl-debug writes it to the directory nccl next to preflight.json"},
    BackendTraits{
        .backend = Backend::gloo,
        .name = name_of(Backend::gloo),
        .title = "Gloo",
        .needs_gpu = false,
        .library = "",
        .steady_times = false,
        .has_streams = false,
        .logs_transport = false,
        .largest_message = 64U << 20U,
        .drill_message = 1U << 20U,
        .lacks = Collective::reduce_scatter,
        .remedy =
            "the ranks must reach each other over TCP: see ip route, firewalls and GLOO_SOCKET_IFNAME"}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kBackends.size(); ++i) {
    if (kBackends[i].backend != static_cast<Backend>(i)) return false;
  }
  return true;
}
static_assert(in_order(), "traits_of finds a row by the enumerator's number");

}  // namespace

const BackendTraits& traits_of(Backend backend) {
  return kBackends.at(static_cast<std::size_t>(backend));
}

std::span<const BackendTraits> all_backends() {
  return kBackends;
}

Backend usual_backend(bool on_gpus) {
  return on_gpus ? Backend::nccl : Backend::gloo;
}

}  // namespace nlaunch
