#include "base/backend.h"

#include <algorithm>
#include <array>

namespace nlaunch {
namespace {

constexpr std::array kBackends{
    BackendTraits{
        .backend = Backend::nccl,
        .name = "nccl",
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
            "NCCL's own log says more: --with nccl-debug writes it to the folder nccl beside preflight.json"},
    BackendTraits{
        .backend = Backend::gloo,
        .name = "gloo",
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

std::optional<Backend> backend_of(std::string_view name) {
  const auto* const row = std::ranges::find(kBackends, name, &BackendTraits::name);
  return row == kBackends.end() ? std::nullopt : std::optional(row->backend);
}

Backend usual_backend(bool on_gpus) {
  return on_gpus ? Backend::nccl : Backend::gloo;
}

std::string_view name_of(Backend backend) {
  return traits_of(backend).name;
}

}  // namespace nlaunch
