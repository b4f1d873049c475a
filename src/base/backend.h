#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/collective.h"
#include "base/words.h"

namespace nlaunch {

/// How the communication libraries differ. Code that depends on the backend must query the property that it
/// is about, so that a new backend is one row of the table and its part of the probe.
struct BackendTraits {
  Backend backend;
  std::string_view name;   ///< in files: "nccl"
  std::string_view title;  ///< in messages: "NCCL"
  /// A rank is a GPU, and the GPU part of the probe rehearses it. Otherwise a rank can also be a CPU slot.
  bool needs_gpu;
  /// Library that each rank's program loads; all ranks of a group need the same version: "libnccl". Empty:
  /// none.
  std::string_view library;
  /// Its timings reflect the links, and can be compared with expectations and other nodes. Otherwise they
  /// reflect processors that also do other work.
  bool steady_times;
  /// Operations can run on CUDA streams and in CUDA graphs.
  bool has_streams;
  /// Its log reports the transport between ranks.
  bool logs_transport;
  std::uint64_t largest_message;  ///< bytes; largest message that preflight times
  std::uint64_t
      drill_message;  ///< bytes; large enough that a rank is still busy with it when the next one starts
  std::optional<Collective> lacks;
  std::string_view remedy;  ///< what to check if ranks arrived and an operation did not finish
};

const BackendTraits& traits_of(Backend backend);
/// All backends, in the order in which messages list them.
std::span<const BackendTraits> all_backends();
/// The backend of the learners' own collectives: on GPUs, or on CPU slots.
Backend usual_backend(bool on_gpus);

}  // namespace nlaunch
